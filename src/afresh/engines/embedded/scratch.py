"""Directories for what does not fit into memory; the next process removes those a killed process left behind.

A process locks its directories, and the system unlocks them however the process ends. A process number would not do:
numbers are reused, and in another container the same number is a different process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows lacks it, and nothing is swept there
    fcntl = None  # type: ignore[assignment]  # a module's type

_PREFIX = "afresh-scratch-"
_MINUTE = 60.0


class Scratch:
    """A new directory that only this user can read."""

    def __init__(self) -> None:
        """Remove what this user's dead processes left behind, and make a new directory."""
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                _remove_if_abandoned(path)
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        self._lock = _lock(self.path)

    def remove(self) -> None:
        """Remove the directory and its contents. Only once."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


def _remove_if_abandoned(path: Path) -> None:
    if fcntl is None:
        return
    status = path.lstat()
    # a directory that was just made may not be locked yet
    if status.st_uid != os.getuid() or time.time() - status.st_mtime < _MINUTE:
        return
    if (lock := _lock(path)) is not None:
        try:
            shutil.rmtree(path)
        finally:
            os.close(lock)


def _lock(path: str | Path) -> int | None:
    """Return the descriptor that holds the lock; None if another process has it, or if there are no locks here."""
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
