"""Counters in Prometheus's text format. No label comes from data, questions or names of people."""

from __future__ import annotations

import threading
from collections import Counter

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What one worker has done since it started."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._answers = self._on_time = self._late = 0

    def requested(self, route: str, status: int) -> None:
        """A request was answered; `route` is the pattern of its path."""
        with self._lock:
            self._requests[route, status] += 1

    def answered(self, charged: int) -> None:
        """So many answers were charged."""
        with self._lock:
            self._answers += charged

    def ticked(self, *, late: bool) -> None:
        """An answer left with the first tick, or with a later one."""
        with self._lock:
            if late:
                self._late += 1
            else:
                self._on_time += 1

    def text(self) -> str:
        """For Prometheus to read."""
        with self._lock:
            lines = [
                "# TYPE afresh_requests_total counter",
                *(
                    f'afresh_requests_total{{route="{route}",status="{status}"}} {count}'
                    for (route, status), count in sorted(self._requests.items())
                ),
                "# TYPE afresh_answers_charged_total counter",
                f"afresh_answers_charged_total {self._answers}",
                "# TYPE afresh_ticks_total counter",
                f'afresh_ticks_total{{late="false"}} {self._on_time}',
                f'afresh_ticks_total{{late="true"}} {self._late}',
            ]
        return "\n".join(lines) + "\n"
