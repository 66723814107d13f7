"""A progress bar for work that takes more than two seconds: on a terminal or in a notebook, never in a pipe."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

_Item = TypeVar("_Item")
SECONDS = 2.0
_one = threading.Lock()  # only the outermost wait shows a bar


def watched() -> bool:
    """Whether a person sees what this process writes: its messages go to a terminal or a notebook cell."""
    try:
        if sys.stderr is not None and sys.stderr.isatty():
            return True
    except ValueError:  # stderr was closed
        return False
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def waiting(words: str, total: int | None = None) -> AbstractContextManager[Callable[[int], None]]:
    """Show what is being done, and for how long, if it takes more than two seconds.

    Call the yielded function with the amount of work just done. With a `total` the bar fills; without, it only moves.
    """
    return _showing(words, total) if watched() else _UNSEEN


def _ignore(more: int) -> None:
    """Take no notice of work done."""


_UNSEEN = nullcontext(_ignore)  # one for all: most questions of a program are asked where nobody sees a bar


@contextmanager
def _showing(words: str, total: int | None) -> Iterator[Callable[[int], None]]:
    if not _one.acquire(blocking=False):
        yield _ignore
        return
    shown = _Shown(words, total)
    timer = threading.Timer(SECONDS, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield shown.advance
    finally:
        timer.cancel()
        shown.stop()
        _one.release()


def counted(items: Sequence[_Item], words: str) -> Iterator[_Item]:
    """Iterate over the items while a bar fills."""
    with waiting(words, len(items)) as advance:
        for each in items:
            yield each
            advance(1)


class _Shown:
    """A bar from `start` to `stop`, whichever of them comes first."""

    def __init__(self, words: str, total: int | None = None) -> None:
        self._words, self._total, self._done = words, total, 0
        self._lock, self._over = threading.Lock(), False
        self._progress: Any = None

    def advance(self, more: int) -> None:
        self._done += more
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=self._done)

    def start(self) -> None:
        from rich.console import Console
        from rich.errors import LiveError
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        with self._lock:
            if self._over:
                return
            known = [] if self._total is None else [TextColumn("{task.percentage:.0f}%"), TimeRemainingColumn()]
            made = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                *known,
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            made.add_task(self._words, total=self._total, completed=self._done)
            with suppress(LiveError):  # another bar is shown: a command has its own
                made.start()
                self._progress = made

    def stop(self) -> None:
        with self._lock:
            self._over = True
            if self._progress is not None:
                self._progress.stop()
