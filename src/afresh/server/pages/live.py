"""Keep open pages up to date by server-sent events, which say only that something new can be shown.

They leave on the history's clock, so the time of an event reveals no more than the time of an answer.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from afresh.errors import AfreshError, TooMany
from afresh.server.pages.datasets import enter
from afresh.server.pages.entries import Entries
from afresh.server.pages.frame import HEADERS, PageRoute, visitor

if TYPE_CHECKING:
    from afresh.server.app import Desk
    from afresh.server.house import Served

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_PERIOD = 0.5  # seconds between two looks at the ledger, for all pages of a dataset together
_LASTS = 600  # seconds after which a browser reconnects on its own
_MOST = 2000  # the most streams per worker
_QUIET = 15  # seconds after which a comment keeps a silent connection open


class Watch:
    """Looks at the histories of a house on behalf of all open pages, while there are any."""

    def __init__(self, desk: Desk) -> None:
        """Start without any open page."""
        self._desk = desk
        self._changed: dict[str, asyncio.Event] = {}
        self._watched: dict[str, int] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self.ending = asyncio.Event()

    async def next(self, served: Served, patience: float) -> bool:
        """Wait at most so many seconds; returns whether something new can be shown."""
        changed = self._changed.setdefault(served.name, asyncio.Event())
        waiting = [asyncio.ensure_future(each.wait()) for each in (changed, self.ending)]
        try:
            await asyncio.wait(waiting, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
        return changed.is_set()

    @property
    def open(self) -> int:
        """How many pages are open."""
        return sum(self._watched.values())

    def begin(self, served: Served) -> None:
        """Count one more open page of a dataset."""
        self._watched[served.name] = self._watched.get(served.name, 0) + 1
        looking = self._looking.get(served.name)
        if looking is None or looking.done():
            self._looking[served.name] = asyncio.create_task(self._look(served))

    def end(self, served: Served) -> None:
        """Count one fewer."""
        self._watched[served.name] -= 1

    async def _look(self, served: Served) -> None:
        state = await self._state(served)
        while self._watched[served.name] > 0 and not self.ending.is_set():
            await asyncio.sleep(_PERIOD)
            if (found := await self._state(served)) != state:
                state = found
                self._changed.pop(served.name, asyncio.Event()).set()

    async def _state(self, served: Served) -> Any:
        def look() -> tuple[Any, int]:
            entries = 0 if served.holdout is None else Entries(self._desk.house.store).count(served.name)
            return served.history.state(), entries

        try:
            return await self._desk.asking.read(look)
        except AfreshError:  # the ledger cannot be read now; pages say so when they are asked for
            return None


def end_with_the_process(watch: Watch) -> Callable[[], None]:
    """End the streams of open pages when a signal stops the server, so they do not delay it. Returns how to undo it.

    A server waits for its connections before it announces that it is stopping, so the signal is the only notice.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    loop, before = (
        asyncio.get_running_loop(),
        {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)},
    )

    def told(number: int, frame: Any) -> None:
        loop.call_soon_threadsafe(watch.ending.set)
        then: Any = before[signal.Signals(number)]
        if callable(then):
            then(number, frame)

    for each in before:
        signal.signal(each, told)

    def undo() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    return undo


@router.get("/datasets/{name}/events")
async def events(request: Request, name: str) -> Response:
    """Send a line whenever something new can be shown."""
    _, served, _ = await enter(request, name)
    watch: Watch = request.app.state.watch
    if watch.open >= _MOST:
        raise TooMany("too many pages are open; this one does not refresh itself.")

    async def told() -> AsyncIterator[bytes]:
        watch.begin(served)
        try:
            yield b"retry: 2000\n\n"
            for _ in range(_LASTS // _QUIET):
                changed = await watch.next(served, _QUIET)
                if watch.ending.is_set():
                    return
                await visitor(request)  # a token may have been revoked meanwhile
                yield b"event: changed\ndata: 1\n\n" if changed else b": still here\n\n"
        except AfreshError:
            return
        finally:
            watch.end(served)

    return StreamingResponse(told(), headers={**HEADERS, "Cache-Control": "no-store"}, media_type="text/event-stream")
