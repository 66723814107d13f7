"""How a question is put to a guard: limits before, a thread to wait in, and the public clock after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from afresh.errors import Frozen, TimedOut, TooMany
from afresh.results.answer import Answer
from afresh.server.clock import leaving
from afresh.server.house import House, Served
from afresh.server.metrics import Metrics
from afresh.server.repeats import Repeats, name_of
from afresh.server.tokens import Caller

_Found = TypeVar("_Found")
_WAITING = 16  # times as many requests may wait as are answered at once


class Rates:
    """How many requests each token made in the present minute."""

    def __init__(self, most: int) -> None:
        """At most so many a minute."""
        self._most, self._minute, self._made = most, 0, dict[str, int]()

    def count(self, who: str) -> None:
        """One more, or `TooMany`."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._made = minute, {}
        self._made[who] = self._made.get(who, 0) + 1
        if self._made[who] > self._most:
            raise TooMany(
                f"a token may make {self._most:,} requests a minute; wait until the next minute. Nothing was charged."
            )


class Asking:
    """Puts work on threads, so that questions that wait together share a scan and a commit."""

    def __init__(self, house: House, metrics: Metrics) -> None:
        """For what a house serves."""
        self.house, self.metrics, limits = house, metrics, house.config.limits
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.scans, "afresh-ask")
        self._readers = ThreadPoolExecutor(4, "afresh-read")
        self._doorkeepers = ThreadPoolExecutor(2, "afresh-door")  # apart: no large upload keeps others at the door
        self._waiting, self._repeats = 0, Repeats()
        self.rates = Rates(limits.requests)

    async def read(self, work: Callable[[], _Found]) -> _Found:
        """Something that asks nothing of the rows."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def look_up(self, work: Callable[[], _Found]) -> _Found:
        """Something small that every request needs: whom its token belongs to."""
        return await asyncio.get_running_loop().run_in_executor(self._doorkeepers, work)

    async def ask(
        self,
        served: Served,
        caller: Caller,
        question: Any,
        work: Callable[[], _Found],
        price: Callable[[], int],
        charged: Callable[[_Found], int],
    ) -> _Found:
        """What the guard says. It leaves on the clock, unless this very question was answered here before.

        `question` is JSON-ready and says all that `work` depends on. `price` is the most it may be charged.
        """
        began, since, name = time.monotonic(), time.time(), name_of(served.name, question)
        known, made = name in self._repeats, set[int]()

        def answered() -> _Found:
            try:
                return self._work(served, caller, work, price, charged)
            finally:
                made.update(served.history.notice(since, caller.name))

        try:
            found = await self._wait(answered)
        finally:
            if not known:
                ready = time.monotonic() - began
                leaves = leaving(ready, self.house.config.tick)
                await asyncio.sleep(leaves - (time.monotonic() - began))
                self.metrics.ticked(late=leaves > self.house.config.tick > 0)
        served.history.show(made)
        # Now that it leaves: until then the same question keeps to the clock as well.
        self._repeats.keep(name, found if isinstance(found, list) else ())
        self.metrics.answered(charged(found))
        return found

    def _work(
        self,
        served: Served,
        caller: Caller,
        work: Callable[[], _Found],
        price: Callable[[], int],
        charged: Callable[[_Found], int],
    ) -> _Found:
        self._check_frozen(served)
        if caller.cap is None:
            found = work()
        else:
            taken, spent = price(), 0
            self.house.tokens.take(caller, taken)
            try:
                found = work()
                spent = charged(found)
            finally:
                self.house.tokens.give_back(caller, taken - spent)
        return found

    async def _wait(self, work: Callable[[], _Found]) -> _Found:
        if self._waiting >= _WAITING * self._limits.scans:
            raise TooMany("the service is busy; ask again later. Nothing was charged.")
        self._waiting += 1
        running: Future[_Found] = self._threads.submit(work)
        running.add_done_callback(_seen)
        try:
            waiting = asyncio.shield(asyncio.wrap_future(running))
            return await asyncio.wait_for(waiting, self._limits.seconds)
        except TimeoutError:
            if running.cancel():
                raise TimedOut(
                    f"it waited {self._limits.seconds:g} seconds and did not start. Nothing was charged; ask again."
                ) from None
            raise TimedOut(
                f"it took more than {self._limits.seconds:g} seconds. It goes on; asking again is free."
            ) from None
        finally:
            self._waiting -= 1

    async def repeat(self, served: Served, caller: Caller, question: Any) -> list[Answer] | None:
        """The answers of questions that were asked here in these very words; None if they were not.

        They are as the ledger has them, and it is read for what is left: without a ledger there is no answer.
        """
        found = self._repeats.get(name_of(served.name, question))
        if not found:
            return None

        def look() -> int:
            self._check_frozen(served)
            served.guard.desk.check_open()
            return served.guard.desk.left(caller.name)

        left = await self.read(look)
        ahead = served.guard.desk.ahead()
        return [replace(each, charged=0, charged_information=0, fixes=None, left=left, ahead=ahead) for each in found]

    def _check_frozen(self, served: Served) -> None:
        if (why := self.house.freezer.why(served.name)) is not None:
            raise Frozen(f"{served.name} is frozen: {why} Its transcript can be read; nothing new is answered.")

    def close(self) -> None:
        """Let what was begun come to its end."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._doorkeepers.shutdown(wait=True, cancel_futures=True)


def _seen(running: Future[Any]) -> None:
    """Nobody waits for work that was abandoned, and asyncio must not complain of its error."""
    if not running.cancelled():
        running.exception()
