"""Servers of tests are started by packages that wait for ten seconds, which a busy machine may need."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

_Made = TypeVar("_Made")


def patiently(start: Callable[[], _Made], seconds: float = 180.0) -> _Made:
    """Try again until it has started."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return start()
        except (subprocess.SubprocessError, RuntimeError, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)
