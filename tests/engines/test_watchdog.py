from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import threading
import time
from functools import partial

from afresh.engines.embedded.watchdog import Watchdog
from interrupts import interrupt_at

OURS = ("test_watchdog.py", "watchdog.py", "contextlib.py", "threading.py")


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
    while not dog._alive.locked():  # it has been started, but it starts when it likes
        time.sleep(0.001)
    dog.stop()
    assert not dog._alive.locked()
    assert told == []


def test_an_engine_that_nobody_closed_lets_the_interpreter_end() -> None:
    code = """
import pyarrow as pa
from afresh.engines.embedded.engine import EmbeddedEngine
engine = EmbeddedEngine(pa.table({"a": [1.0]}))
engine.identity()
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_an_interrupt_anywhere_leaves_nothing_locked() -> None:
    def use(dog: Watchdog) -> None:
        with dog.limit(int):
            pass

    for place in itertools.count():
        dog = Watchdog(3600)
        interrupted = interrupt_at(place, partial(use, dog), OURS)
        with contextlib.suppress(KeyboardInterrupt):  # the thread's own start may have been cut short
            use(dog)
        ending = threading.Thread(target=dog.stop, daemon=True)
        ending.start()
        ending.join(30)
        assert not ending.is_alive(), f"interrupted at {place}"
        assert not dog._alive.locked()
        if not interrupted:
            break
    assert place > 10  # it was interrupted everywhere, not nowhere
