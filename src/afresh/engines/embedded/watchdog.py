"""A time limit for statements, by one sleeping thread: to start one for each takes longer than a short statement."""

from __future__ import annotations

import _thread
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Watchdog:
    """Calls `interrupt` for whatever is still going on `seconds` after it began, and again every second.

    Ctrl-C may come between any two steps of the main thread, also just after it took a lock that is written in Python
    (a Condition, an Event, the one that a new `threading.Thread` waits for), which then is never given back. So what
    the two threads share is changed by single steps of the interpreter.
    """

    def __init__(self, seconds: float) -> None:
        """The thread starts with the first use, and ends with `stop`."""
        self._seconds = seconds
        self._running: dict[object, tuple[float, Callable[[], object]]] = {}
        self._starting, self._alive = threading.Lock(), threading.Lock()
        self._stop: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._process: int | None = None  # the one it watches: a fork has no threads
        self._thread: int | None = None

    @contextmanager
    def limit(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Run the body under the limit. An `interrupt` may still come just after it has ended."""
        this = object()
        try:
            self._running[this] = (time.monotonic() + self._seconds, interrupt)
            # The thread never has to be woken: it wakes up when the oldest it knew is due, which is before this one.
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
        """End the thread. Idempotent. Must come before the interpreter ends, which at times aborts on such threads."""
        self._stop.put(None)
        if self._process == os.getpid() and self._thread != threading.get_ident():
            with self._alive:
                pass

    def _watch(self) -> None:
        with self._alive:
            self._thread = threading.get_ident()
            while not self._stopped_within(self._due(time.monotonic())):
                pass
            self._stop.put(None)  # for one more, if Ctrl-C came between the start of a thread and the note of it

    def _due(self, now: float) -> float:
        """Interrupt what is over time, and say when to look again."""
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
