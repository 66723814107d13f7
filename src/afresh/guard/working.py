"""Who is being answered now: whoever closes a desk waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident


class AtWork:
    """The calls that are being answered.

    Single steps of the interpreter and no lock: Ctrl-C may come between any two of them.
    """

    def __init__(self, check_open: Callable[[], None]) -> None:
        """Nobody yet; `check_open` raises once nothing may begin."""
        self._check_open = check_open
        self._working: dict[object, int] = {}  # the thread of every call

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Refuse to begin once it is closed, and keep it open until the end."""
        this = object()
        try:
            self._working[this] = get_ident()  # before looking, so that whoever closes it sees this or is seen
            self._check_open()
            yield
        finally:
            self._working.pop(this, None)

    @property
    def others(self) -> bool:
        """Whether another thread is being answered."""
        return any(thread != get_ident() for thread in list(self._working.values()))
