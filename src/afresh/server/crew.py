"""Threads for work that may take long: reading long questions, decoding uploads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from afresh.errors import TooMany

_Found = TypeVar("_Found")
_Given = TypeVar("_Given")


@dataclass
class _Place:
    """What one analyst has here: how much, and whose turn it is."""

    count: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Crew:
    """Works on one thing at a time of each analyst, so that nobody waits for all that another one has sent.

    For one event loop.
    """

    def __init__(self, name: str, threads: int, each: int, most: int) -> None:
        """Admit so many things of each analyst, and so many in all; whoever sends more is told to come back."""
        self._threads = ThreadPoolExecutor(threads, name)
        self._each, self._most, self._count = each, most, 0
        self._places: dict[str, _Place] = {}

    async def work(self, who: str, work: Callable[[], _Found]) -> _Found:
        """Do something for an analyst, in a thread."""
        async with self._place(who) as place:
            return await self._run(place, work)

    async def take(self, who: str, coming: Callable[[], Awaitable[_Given]], work: Callable[[_Given], _Found]) -> _Found:
        """Do something with what an analyst sends, which is not received before there is room for it."""
        async with self._place(who) as place:
            given = await coming()
            return await self._run(place, lambda: work(given))

    async def _run(self, place: _Place, work: Callable[[], _Found]) -> _Found:
        async with place.turn:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @asynccontextmanager
    async def _place(self, who: str) -> AsyncIterator[_Place]:
        place = self._places.setdefault(who, _Place())
        if place.count >= self._each or self._count >= self._most:
            raise TooMany("the service is busy with what was sent before; send this again later. Nothing was charged.")
        place.count += 1
        self._count += 1
        try:
            yield place
        finally:
            place.count -= 1
            self._count -= 1
            if not place.count:
                del self._places[who]

    def close(self) -> None:
        """Let work that has begun finish."""
        self._threads.shutdown(wait=True, cancel_futures=True)
