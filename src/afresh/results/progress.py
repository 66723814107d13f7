"""A sign of life for work that takes more than two seconds: on a terminal or in a notebook, never in a pipe."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

SECONDS = 2.0
_one = threading.Lock()  # whoever waits outermost says so, and nobody within


def watched() -> bool:
    """Whether a person looks at what this process writes: its messages go to a terminal, or to a notebook's cell."""
    try:
        if sys.stderr is not None and sys.stderr.isatty():
            return True
    except ValueError:  # it was closed
        return False
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Say what is being done, and for how long, if it takes more than two seconds."""
    if not watched() or not _one.acquire(blocking=False):
        yield
        return
    shown = _Shown(words)
    timer = threading.Timer(SECONDS, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        shown.stop()
        _one.release()


class _Shown:
    """A line that moves, from `start` to `stop`, whichever of them comes first."""

    def __init__(self, words: str) -> None:
        self._words, self._lock, self._over = words, threading.Lock(), False
        self._progress: Any = None

    def start(self) -> None:
        from rich.console import Console
        from rich.errors import LiveError
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            made = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            made.add_task(self._words, total=None)
            with suppress(LiveError):  # another one is shown: a command has its own
                made.start()
                self._progress = made

    def stop(self) -> None:
        with self._lock:
            self._over = True
            if self._progress is not None:
                self._progress.stop()
