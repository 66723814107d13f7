"""How much work something is: counted, because a time depends on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

MOST = 1_000_000
"""Of calls, to read any text: at most a few thousand for each character."""


def work(read: Callable[[], Any]) -> int:
    """Count the calls of Python and C functions."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        read()
    finally:
        sys.setprofile(before)
    return calls
