"""How to know that a file is still the one that was read, in this process or a later one."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from afresh.errors import DataChanged

DUCKDB = (".duckdb", ".db")
# A file written to just before it is checked can be written to again within one tick of its clock and would look the
# same. Ticks are milliseconds on these file systems, but two seconds on some old ones.
_SETTLED = 2.0  # seconds
# Linux file systems that keep the time of every change, by this machine's clock. A network file system has another
# clock, and one in memory does not notice writes through a mapping.
_LASTING = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "xfs", "zfs"}

_Status = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Stamp:
    """Shows whether a file was written to or replaced, even if its size and time are the same."""

    path: Path
    statuses: tuple[_Status | None, ...]
    taken: float = field(compare=False)  # when, just before the statuses were read

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Stamp a file as it is now, including what DuckDB has written beside it but not yet into it."""
        beside = (path.with_name(f"{path.name}.wal"),) if path.name.lower().endswith(DUCKDB) else ()
        taken = time.time()
        statuses = tuple(map(_status, (path, *beside)))
        if statuses[0] is None:  # this one must exist; the other need not
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        return cls(path, statuses, taken)

    @classmethod
    def flushed(cls, path: Path) -> Stamp:
        """Do the same before anything is read from the file.

        A write through a mapping changes the file's times only if the page was clean. So dirty pages are flushed to
        disk first, or more could be written to them unnoticed.
        """
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        return cls.of(path)

    def check(self) -> None:
        """Raise `DataChanged` unless the file is as it was."""
        try:
            same = Stamp.of(self.path) == self
        except OSError:
            same = False
        if not same:
            raise DataChanged(
                f"{self.path} was changed, replaced or removed after it was opened; nothing was answered. Open it again"
            )

    def lasting(self) -> list[object] | None:
        """Return what shows a later process, until this machine restarts, that the file is unchanged; or None.

        The boot id binds it to the machine: other machines' inodes and times mean nothing here.
        """
        times = [moment for status in self.statuses if status is not None for moment in status[3:]]
        if max(times) / 1e9 > self.taken - _SETTLED or not _keeps_times(self.path):
            return None
        started = _started()
        return None if started is None else [started, os.fspath(self.path), self.statuses]


def _status(path: Path) -> _Status | None:
    """Return a file's status. A program that writes to a file can set its modification time, not its change time."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@functools.cache
def _started() -> str | None:
    """Return the boot id, a random number that Linux draws when it starts."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() or None
    except (OSError, ValueError):
        return None


def _keeps_times(path: Path) -> bool:
    """Whether the file is on a file system that keeps the time of every change; known only on Linux."""
    try:
        real, mounts = os.path.realpath(path), Path("/proc/self/mountinfo").read_text()
    except (OSError, ValueError):
        return False
    longest, kind = "", ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape").encode("latin-1").decode(errors="surrogateescape")
        if len(point) >= len(longest) and (real == point or real.startswith(point.rstrip("/") + "/")):
            longest, kind = point, after.split()[0]  # the later of two mounts hides the earlier
    return kind in _LASTING
