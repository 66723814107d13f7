"""Directories for one process's passing work; the next process removes those a killed process left behind.

A process locks its directories, and the system unlocks them however the process ends. A process number would not do:
numbers are reused, and in another container the same number is a different process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows lacks it, and nothing is swept there
    fcntl = None  # type: ignore[assignment]  # a module's type

_PREFIX = "afresh-scratch-"


class Scratch:
    """A new directory that only this user can read."""

    def __init__(self, prefix: str = _PREFIX, folder: str | None = None) -> None:
        """Remove what this user's dead processes left behind, and make a new directory."""
        sweep(prefix, folder)
        self.path = tempfile.mkdtemp(prefix=prefix, dir=folder)
        self._lock = lock(self.path, wait=True)
        while not os.path.exists(self.path):  # another process took it for abandoned before it was locked
            self._unlock()
            self.path = tempfile.mkdtemp(prefix=prefix, dir=folder)
            self._lock = lock(self.path, wait=True)

    def remove(self) -> None:
        """Remove the directory and its contents. Only once."""
        _remove(self.path)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)


def sweep(prefix: str = _PREFIX, folder: str | None = None) -> list[Path]:
    """Remove what dead processes left behind, and return the directories of living ones. Other users' are not seen."""
    living = []
    for path in Path(folder or tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if fcntl is None or path.lstat().st_uid != os.getuid():
                continue
            if (held := lock(path)) is None:
                living.append(path)
                continue
            try:
                _remove(path)
            finally:
                os.close(held)
    return living


def _remove(path: str | Path) -> None:
    """Remove a directory, whatever modes its directories have by now."""
    for place, folders, _ in os.walk(path):
        for each in (os.path.join(place, name) for name in folders):
            if not os.path.islink(each):
                with contextlib.suppress(OSError):
                    os.chmod(each, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def lock(path: str | Path, *, wait: bool = False) -> int | None:
    """Return the descriptor that holds a directory's lock; None if another has it, or if there is nothing to lock."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
