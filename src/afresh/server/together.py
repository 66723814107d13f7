"""Look things up for many requests at once: a turn in a thread costs more than the lookup itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from itertools import chain
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Found = TypeVar("_Found")
_Waiting = dict[_Key, list[asyncio.Future[_Found]]]


class Together(Generic[_Key, _Found]):
    """Requests that come while one lookup runs share the next one, which begins after they came: nothing is kept.

    For one event loop. Requests for the same thing get the same result.
    """

    def __init__(self, look: Callable[[_Key], _Found], threads: Executor) -> None:
        """Take the function that finds one thing, and the threads to run it in."""
        self._look, self._threads = look, threads
        self._next: _Waiting[_Key, _Found] = {}
        self._looking = False

    async def find(self, key: _Key) -> _Found:
        """Return what is found, or raise the error of the lookup."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[_Found] = loop.create_future()  # its own: a request that goes away does not affect others
        self._next.setdefault(key, []).append(found)
        if not self._looking:
            self._looking = True
            loop.call_soon(self._begin)  # for all that come in the same turn of the loop
        return await found

    def _begin(self) -> None:
        batch, self._next = self._next, {}
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._look_all, list(batch))
        running.add_done_callback(lambda done: self._end(batch, done))

    def _look_all(self, keys: Sequence[_Key]) -> list[_Found | Exception]:
        return [self._look_at(key) for key in keys]

    def _look_at(self, key: _Key) -> _Found | Exception:
        try:
            return self._look(key)
        except Exception as error:
            return error

    def _end(self, batch: _Waiting[_Key, _Found], done: asyncio.Future[list[_Found | Exception]]) -> None:
        if done.cancelled():  # the service is stopping
            self._looking = False
            for waiting in chain(*batch.values(), *self._next.values()):
                waiting.cancel()
            return
        if self._next:
            self._begin()
        else:
            self._looking = False
        for those, found in zip(batch.values(), done.result(), strict=True):
            for waiting in those:
                if waiting.done():  # the request has gone
                    continue
                if isinstance(found, Exception):
                    waiting.set_exception(found)
                else:
                    waiting.set_result(found)
