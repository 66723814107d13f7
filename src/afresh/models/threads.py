"""Work on large arrays, shared between a few threads: NumPy and BLAKE3 release Python's lock while they compute."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

_MOST = min(4, os.cpu_count() or 1)  # more would wait for Python's lock


class _Inside(threading.local):
    """Whether this thread is doing shared work: a signal handler, or its own nested work, must not wait for itself."""

    now = False

    def enter(self) -> None:
        self.now = True


_INSIDE = _Inside()


@cache
def _helpers(process: int) -> ThreadPoolExecutor:
    """Threads that stay alive, since starting them takes as long as their work. A forked process gets its own."""
    return ThreadPoolExecutor(max(1, _MOST - 1), f"afresh-{process}", initializer=_INSIDE.enter)


def for_all(work: Callable[[Any], Any], parts: Sequence[Any], threads: int = _MOST) -> list[Any]:
    """What `work` gives for each part."""
    threads = min(threads, len(parts))

    def share(first: int) -> list[Any]:
        return [work(part) for part in parts[first::threads]]

    if threads < 2 or _INSIDE.now:
        return [work(part) for part in parts]
    try:
        _INSIDE.enter()
        try:
            others = [_helpers(os.getpid()).submit(share, first) for first in range(1, threads)]
        except RuntimeError:  # no more threads can be started, or the interpreter ends
            return [work(part) for part in parts]
        shares = [share(0), *(other.result() for other in others)]
    finally:
        _INSIDE.now = False
    return [shares[place % threads][place // threads] for place in range(len(parts))]


@contextmanager
def one_thread() -> Iterator[None]:
    """Use only one thread in the body, to measure what the others gain."""
    before, _INSIDE.now = _INSIDE.now, True
    try:
        yield
    finally:
        _INSIDE.now = before


def slices(length: int, size: int) -> list[slice]:
    """The parts of an array of this length, each of `size` items but the last."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]
