"""Shared work gives what a loop gives."""

import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.models.threads import for_all, slices


@given(st.lists(st.integers(), max_size=20), st.integers(1, 4))
def test_all_parts_in_their_order(parts: list[int], threads: int) -> None:
    assert for_all(lambda part: part * 2, parts, threads) == [part * 2 for part in parts]


@given(st.integers(0, 100), st.integers(1, 30))
def test_slices_cover_everything_once(length: int, size: int) -> None:
    items = list(range(length))
    parts = slices(length, size)
    assert [item for part in parts for item in items[part]] == items
    assert all(part.stop - part.start == size for part in parts[:-1])


@pytest.mark.parametrize("bad", range(4))
def test_an_error_in_any_thread_is_told(bad: int) -> None:
    with pytest.raises(ZeroDivisionError):
        for_all(lambda part: 1 / (part - bad), range(4), 2)
    assert for_all(abs, [-1, -2], 2) == [1, 2]  # and the threads go on


def test_several_callers_at_once() -> None:
    found: list[list[int]] = []
    callers = [threading.Thread(target=lambda: found.append(for_all(abs, range(-50, 0), 4))) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [list(range(50, 0, -1))] * 8


def test_work_within_work() -> None:
    """Helpers must not wait for themselves."""
    assert for_all(lambda part: for_all(abs, [part] * 3, 2), range(-4, 0), 2) == [[4] * 3, [3] * 3, [2] * 3, [1] * 3]


_HANDLER = """
import signal, threading
from afresh.models import threads

real, found = threads.ThreadPoolExecutor.submit, []

def submit(pool, *work):
    with pool._shutdown_lock:  # where a handler finds the thread that it interrupts
        signal.raise_signal(signal.SIGUSR1)
    return real(pool, *work)

signal.signal(signal.SIGUSR1, lambda *_: found.append(threads.for_all(abs, [-1, -2], 2)))
threads.ThreadPoolExecutor.submit = submit
signal.alarm(60)
print(threads.for_all(abs, [-3, -4], 2), found)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")
def test_work_in_a_signal_handler() -> None:
    done = subprocess.run([sys.executable, "-c", _HANDLER], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[3, 4] [[1, 2]]\n", "")


_LATE = """
import atexit
from afresh.models.threads import for_all

atexit.register(lambda: print(for_all(abs, [-1, -2], 2)))
for_all(abs, [-1, -2], {threads})
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_work_is_done_when_the_interpreter_ends(threads: int) -> None:
    """Also by threads that were never started before."""
    done = subprocess.run([sys.executable, "-c", _LATE.format(threads=threads)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[1, 2]\n", "")
