"""A time limit for statements, kept by one sleeping thread: starting one each time takes longer than a short query."""

from __future__ import annotations

import _thread
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Watchdog:
    """Calls `interrupt` for anything still running `seconds` after it began, and again every second.

    Ctrl-C may come between any two steps of the main thread, even just after it took a lock that is written in Python
    (a Condition, an Event, the one that a new `threading.Thread` waits for), which is then never released. So what
    the two threads share changes only in single interpreter steps.
    """

    def __init__(self, seconds: float) -> None:
        """Set the limit. The thread starts on first use, and ends with `stop`."""
        self._seconds = seconds
        self._running: dict[object, tuple[float, Callable[[], object]]] = {}
        self._starting, self._alive = threading.Lock(), threading.Lock()
        self._stop: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._process: int | None = None  # the process it watches: a fork has no threads
        self._thread: int | None = None

    @contextmanager
    def limit(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Run the body under the limit. An `interrupt` may still come just after it ends."""
        this = object()
        try:
            self._running[this] = (time.monotonic() + self._seconds, interrupt)
            # The thread need not be woken: it wakes when the oldest statement it knew is due, which is before this one.
            self._start()
            yield
        finally:
            self._running.pop(this, None)

    def _start(self) -> None:
        with self._starting:
            if self._process != (process := os.getpid()):
                _thread.start_new_thread(self._watch, ())
                self._process = process

    def stop(self) -> None:
        """End the thread. Idempotent. Call it before the interpreter ends, which sometimes aborts on such threads."""
        self._stop.put(None)
        if self._process == os.getpid() and self._thread != threading.get_ident():
            with self._alive:
                pass

    def _watch(self) -> None:
        with self._alive:
            self._thread = threading.get_ident()
            while not self._stopped_within(self._due(time.monotonic())):
                pass
            self._stop.put(None)  # for one more, if Ctrl-C came between starting a thread and noting it

    def _due(self, now: float) -> float:
        """Interrupt what is over time, and return when to check again."""
        running = list(self._running.values())
        for due, interrupt in running:
            if due <= now:
                interrupt()
        return min((due - now if due > now else 1.0 for due, _ in running), default=self._seconds)

    def _stopped_within(self, seconds: float) -> bool:
        try:
            self._stop.get(timeout=seconds)
        except queue.Empty:
            return False
        return True
