"""Counters in Prometheus's text format. No label comes from data, questions or people's names."""

from __future__ import annotations

import threading
from collections import Counter

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What one worker has done since it started."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._answers = self._on_time = self._late = 0

    def requested(self, route: str, status: int) -> None:
        """Count a request that was answered; `route` is the pattern of its path."""
        with self._lock:
            self._requests[route, status] += 1

    def answered(self, charged: int) -> None:
        """Count answers that were charged."""
        with self._lock:
            self._answers += charged

    def ticked(self, *, late: bool) -> None:
        """Count an answer that left at the first tick, or at a later one."""
        with self._lock:
            if late:
                self._late += 1
            else:
                self._on_time += 1

    def text(self) -> str:
        """All counters, for Prometheus to read."""
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
