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
        self._working: dict[object, int] = {}  # the thread of every call

    def during(self, work: Callable[[], _Result]) -> _Result:
        """Work, and keep the desk open until that ends; refuse to begin once it is closed."""
        this = object()
        try:
            self._working[this] = get_ident()  # before checking: either the closing thread sees this, or this sees it
            self._check_open()
            return work()
        finally:
            self._working.pop(this, None)

    @property
    def others(self) -> bool:
        """Whether another thread is being answered."""
        return any(thread != get_ident() for thread in list(self._working.values()))
