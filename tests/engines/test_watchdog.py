from __future__ import annotations

import subprocess
import sys
import threading

from afresh.engines.embedded.watchdog import Watchdog


def test_what_takes_too_long_is_interrupted_until_it_ends() -> None:
    dog, told = Watchdog(0.01), threading.Semaphore(0)
    with dog.limit(told.release):
        assert told.acquire(timeout=30)
        assert told.acquire(timeout=30)  # and again: the first may have come too early
    dog.stop()
    dog.stop()


def test_what_ends_in_time_is_left_alone() -> None:
    dog, told = Watchdog(3600), []
    for _ in range(3):
        with dog.limit(lambda: told.append(1)):
            pass
    thread = dog._thread
    assert thread is not None
    assert thread.is_alive()
    dog.stop()
    assert not thread.is_alive()
    assert told == []


def test_an_engine_that_nobody_closed_lets_the_interpreter_end() -> None:
    code = """
import pyarrow as pa
from afresh.engines.embedded.engine import EmbeddedEngine
engine = EmbeddedEngine(pa.table({"a": [1.0]}))
engine.identity()
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
