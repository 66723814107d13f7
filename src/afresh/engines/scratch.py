"""Directories for what does not fit into memory; those that a killed process left behind are removed by the next."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

_DAY = 86_400.0


def make_scratch() -> str:
    """A new directory that only this user can read."""
    for path in Path(tempfile.gettempdir()).glob("afresh-*-*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(path):
                shutil.rmtree(path)
    return tempfile.mkdtemp(prefix=f"afresh-{os.getpid()}-")


def _is_abandoned(path: Path) -> bool:
    """Whether its process has ended. Of another container one cannot tell, hence the day."""
    named = re.fullmatch(r"afresh-([0-9]+)-[^-]+", path.name)
    if os.name != "posix" or named is None or time.time() - path.lstat().st_mtime < _DAY:
        return False
    try:
        os.kill(int(named[1]), 0)
    except ProcessLookupError:
        return True
    return False
