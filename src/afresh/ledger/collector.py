"""Pauses Python's garbage collector, for work that makes very many objects that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Pause the collector; in the block, only objects in reference cycles are kept longer than they are needed.

    The collector would otherwise scan all records of a long chain again and again: a fifth of the time reading takes.
    """
    if not gc.isenabled():  # someone else has paused it, and will resume it
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
