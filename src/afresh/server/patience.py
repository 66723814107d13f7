"""How much the service takes in from a client, and how long it waits for the headers and the body of a request."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from afresh.errors import AfreshError, InvalidArgument, TooLarge
from afresh.wire import problems

PACE = 50_000
"""The lowest rate, in bytes per second, for a body that takes longer than a request may wait for its answer."""
HEAD = 32_768
"""The most bytes of a request that are not its body: the address, headers, and what frames chunks. One read more is
taken in before it is noticed."""
_FRAME = 16  # bytes that frame a chunk of a body

_Protocol: Any = HttpToolsProtocol  # its methods have no types that could be overridden


class Patient(_Protocol):  # type: ignore[misc]  # see above
    """uvicorn's reader of requests, which without this would wait for headers for ever, and keep however many come.

    Headers may take as long as the application's state says, counted from the connection or the start of the request.
    """

    _limit: asyncio.TimerHandle | None = None
    _head = 0  # bytes of the current request that are not its body
    _body = 0  # bytes of bodies in the data that is being read
    _ended = False  # whether a request ended in it
    _kept = 0  # bytes of the current request that are kept as its address and headers
    _large = False  # whether too much of a request is not its body

    def connection_made(self, transport: Any) -> None:
        """Start waiting: a client has connected and begins a request."""
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Take in some of a request."""
        self._body, self._ended = 0, False
        super().data_received(data)
        self._head = 0 if self._ended else self._head + max(len(data) - self._body, 0)
        if self.transport.is_closing():
            self._cancel()
        elif self._head > HEAD:
            self._large = True  # headers without an end, or what follows a body without one
            self.send_400_response("")
        elif self._asked:
            self._cancel()
        elif self._limit is None:
            self._await_headers()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._kept = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Keep the address, or some of it."""
        self._keep(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, before or after the body."""
        self._keep(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _keep(self, size: int) -> None:
        self._kept += size
        if self._kept > HEAD:
            self._large = True
            raise ValueError("the parser stops, and its caller refuses the request")

    def on_body(self, body: bytes) -> None:
        """Count what belongs to a body."""
        self._body += len(body) + _FRAME
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Start counting again."""
        self._ended = True
        super().on_message_complete()

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

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has headers that are too large, and hang up."""
        if self._asked and self.cycle.response_started:  # another response is on its way
            self.transport.close()
        elif self._large:
            said = f"the address and the headers of a request may have at most {HEAD:,} bytes; send less."
            self._refuse("431 Request Header Fields Too Large", TooLarge(f"{said} Nothing was charged."))
        else:
            self._refuse("400 Bad Request", InvalidArgument("this is not an HTTP request. Nothing was charged."))

    def _refuse(self, status: str, error: AfreshError) -> None:
        said = json.dumps({**problems.to_problem(error), "status": int(status[:3])}).encode()
        head = f"content-type: {problems.MEDIA_TYPE}\r\ncontent-length: {len(said)}\r\nconnection: close\r\n\r\n"
        self.transport.write(f"HTTP/1.1 {status}\r\n{head}".encode() + said)
        self.transport.close()

    def _cancel(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def patience_left(seconds: float, got: int, patience: float) -> float:
    """How long to wait for more of a body, given how many bytes of it came in how many seconds."""
    return max(patience + got / PACE - seconds, 0.0)
