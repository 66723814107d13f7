"""The calls being answered now, which closing a desk waits for."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident


class AtWork:
    """The calls that are being answered.

    Uses single interpreter steps and no lock: Ctrl-C may come between any two steps. A call makes an object of its own,
    begins with it inside a `try`, and pops it from `calls` as the first step of the `finally`: CPython checks for no
    signal before that step.
    """

    def __init__(self, check_open: Callable[[], None]) -> None:
        """Start with no calls; `check_open` raises once no call may begin."""
        self._check_open = check_open
        self.calls: dict[object, int] = {}
        """The thread of every call."""

    def begin(self, this: object) -> None:
        """Refuse to begin once the desk is closed, and keep it open until the call ends."""
        self.calls[this] = get_ident()  # before checking: either the closing thread sees this, or this sees it
        self._check_open()

    @property
    def others(self) -> bool:
        """Whether another thread is being answered."""
        return any(thread != get_ident() for thread in list(self.calls.values()))
