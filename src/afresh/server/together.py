"""Looking things up for many requests at once: a turn in a thread costs more than what is looked up there."""

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
    """Those who come while one look runs share the next one, which begins after they came: nothing is kept.

    For one event loop. Whoever asks for the same gets the same.
    """

    def __init__(self, look: Callable[[_Key], _Found], threads: Executor) -> None:
        """How to find one thing, and where."""
        self._look, self._threads = look, threads
        self._next: _Waiting[_Key, _Found] = {}
        self._looking = False

    async def find(self, key: _Key) -> _Found:
        """What is found, or the error that looking raised."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[_Found] = loop.create_future()  # its own: whoever goes away takes nothing from others
        self._next.setdefault(key, []).append(found)
        if not self._looking:
            self._looking = True
            loop.call_soon(self._begin)  # for all who come in the same turn of the loop
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
        if done.cancelled():  # the service stops
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
                if waiting.done():  # whoever asked has gone
                    continue
                if isinstance(found, Exception):
                    waiting.set_exception(found)
                else:
                    waiting.set_result(found)
