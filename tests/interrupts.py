"""Ctrl-C at a chosen point of a program."""

from __future__ import annotations

import dis
import itertools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any


def interrupt_at(place: int, work: Callable[[], object], files: tuple[str, ...]) -> bool:
    """Run it with KeyboardInterrupt at the `place`-th point of these files where CPython looks for signals.

    False if there were fewer. It runs in a thread of its own: an exception at the end of a handler leaves CPython 3.11
    with the one that was handled, which would be the context of all that the thread raises from then on.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_interrupt_at, place, work, files).result()


def _interrupt_at(place: int, work: Callable[[], object], files: tuple[str, ...]) -> bool:
    seen, last = itertools.count(), dict[FrameType, str]()

    def trace(frame: FrameType, kind: str, _: object) -> Any:
        if not frame.f_code.co_filename.endswith(files):  # such as a finaliser, which swallows whatever is raised in it
            return None
        frame.f_trace_opcodes = True
        if kind == "opcode":
            looked = last.get(frame, "").startswith(("CALL", "RESUME", "JUMP_BACKWARD"))
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if looked and next(seen) == place:
                raise KeyboardInterrupt
        return trace

    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks only here whether any frame wants opcodes
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False
