"""A pause of Python's garbage collector, for work that makes very many objects which stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Within it, only objects that refer to each other in a circle are kept longer than they are needed.

    The collector would go through all records of a long chain again and again, a fifth of the time that reading takes.
    """
    if not gc.isenabled():  # someone else has paused it, and will resume it
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
