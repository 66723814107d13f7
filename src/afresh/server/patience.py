"""How long the service waits for a client: for the headers of a request, and for its body."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

PACE = 50_000
"""The lowest rate, in bytes per second, for a body that takes longer than a request may wait for its answer."""

_Protocol: Any = AutoHTTPProtocol  # one class or another, depending on what is installed


class Patient(_Protocol):  # type: ignore[misc]  # see above
    """uvicorn's reader of requests, which without this would wait for headers for ever.

    Headers may take as long as the application's state says, counted from the connection or the start of the request.
    """

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start waiting: a client has connected and begins a request."""
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Take in some of a request."""
        super().data_received(data)
        if self._asked:
            self._cancel()
        elif self._limit is None:
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting: the client has gone."""
        self._cancel()
        super().connection_lost(exc)

    @property
    def _asked(self) -> bool:
        """Whether the headers of a request are complete, and its response is not."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_headers(self) -> None:
        self._limit = self.loop.call_later(self.config.loaded_app.state.headers, self._hang_up)

    def _hang_up(self) -> None:
        self._limit = None
        if not self._asked:
            self.transport.close()

    def _cancel(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def patience_left(seconds: float, got: int, patience: float) -> float:
    """How long to wait for more of a body, given how many bytes of it came in how many seconds."""
    return max(patience + got / PACE - seconds, 0.0)
