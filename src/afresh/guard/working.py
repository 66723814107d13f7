"""The calls being answered now, which closing a desk waits for."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TypeVar

_Result = TypeVar("_Result")


class AtWork:
    """The calls that are being answered.

    Uses single interpreter steps and no lock: Ctrl-C may come between any two steps, but CPython checks for no signal
    before the first step of a `finally`.
    """

    def __init__(self, check_open: Callable[[], None]) -> None:
        """Start with no calls; `check_open` raises once no call may begin."""
        self._check_open = check_open
        self.calls: dict[object, int] = {}
        """The thread of every call."""

    def during(self, work: Callable[[], _Result]) -> _Result:
        """Work, and keep the desk open until that ends; refuse to begin once it is closed."""
        this = object()
        try:
            self.begin(this)
            return work()
        finally:
            self.calls.pop(this, None)

    def begin(self, this: object) -> None:
        """Begin a call, which ends when it is taken out of `calls`; refuse once the desk is closed."""
        self.calls[this] = get_ident()  # before checking: either the closing thread sees this, or this sees it
        self._check_open()

    @property
    def others(self) -> bool:
        """Whether another thread is being answered."""
        return any(thread != get_ident() for thread in list(self.calls.values()))
