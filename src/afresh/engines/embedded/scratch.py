"""Directories for what does not fit into memory; the next process removes those that a killed process left behind.

A process locks its directories, and the system unlocks them however the process ends. The number of a process would
not tell: it is given again, and in another container it is another's.
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
except ImportError:  # pragma: no cover  # not there on Windows, where nothing is swept
    fcntl = None  # type: ignore[assignment]  # the type is the module's

_PREFIX = "afresh-scratch-"
_MINUTE = 60.0


class Scratch:
    """A new directory that only this user can read."""

    def __init__(self) -> None:
        """Remove what ended processes of this user have left, and make one more."""
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                _remove_if_abandoned(path)
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        self._lock = _lock(self.path)

    def remove(self) -> None:
        """Remove it with all that is in it. Only once."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


def _remove_if_abandoned(path: Path) -> None:
    if fcntl is None:
        return
    status = path.lstat()
    # one that has only just been made may not be locked yet
    if status.st_uid != os.getuid() or time.time() - status.st_mtime < _MINUTE:
        return
    if (lock := _lock(path)) is not None:
        try:
            shutil.rmtree(path)
        finally:
            os.close(lock)


def _lock(path: str | Path) -> int | None:
    """The descriptor that holds the lock; None if another process has it, or there are none here."""
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
