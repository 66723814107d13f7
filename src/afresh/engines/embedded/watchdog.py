"""A time limit for statements, by one sleeping thread: to start one for each takes longer than a short statement."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Watchdog:
    """Calls `interrupt` for whatever is still going on `seconds` after it began, and again every second."""

    def __init__(self, seconds: float) -> None:
        """The thread starts with the first use, and ends with `stop`."""
        self._seconds = seconds
        self._changed = threading.Condition()
        self._running: dict[object, tuple[float, Callable[[], object]]] = {}
        self._thread: threading.Thread | None = None
        self._stopped = False

    @contextmanager
    def limit(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Run the body under the limit. Once it has ended, `interrupt` is not called any more."""
        this = object()
        with self._changed:
            self._running[this] = (time.monotonic() + self._seconds, interrupt)
            # The thread never has to be woken: it wakes up when the oldest it knew is due, which is before this one.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="afresh-watchdog", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                del self._running[this]

    def stop(self) -> None:
        """End the thread. Idempotent. Must come before the interpreter ends, which at times aborts on such threads."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                for due, interrupt in self._running.values():
                    if due <= now:
                        interrupt()
                waits = [due - now if due > now else 1.0 for due, _ in self._running.values()]
                self._changed.wait(min(waits, default=self._seconds))
