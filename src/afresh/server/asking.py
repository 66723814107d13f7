"""How a question is put to a guard: limits before, a thread to wait in, and the public clock after."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from math import inf
from typing import Any, TypeVar

from afresh.errors import TimedOut, TooMany
from afresh.results.answer import Answer
from afresh.server.clock import next_tick
from afresh.server.crew import Crew
from afresh.server.gathering import Gathering, Put, refuse_frozen
from afresh.server.house import House, Served
from afresh.server.metrics import Metrics
from afresh.server.repeats import Again, Repeats, name_of
from afresh.server.together import Together
from afresh.server.tokens import Caller

_Found = TypeVar("_Found")
_WAITING = 16  # how many requests may wait for each one that can be answered at once
_SHORT = 800  # the most characters of JSON that are worked on without a thread: it costs more than a short question
_PATIENCE = 0.1  # seconds after which we check again whether a dataset is frozen


WEIGHT = 2_000
"""The bytes of JSON that count as a request: they are read before anything else can be."""


class Rates:
    """How many requests each token has made in the current minute."""

    def __init__(self, most: int) -> None:
        """Allow at most `most` requests a minute."""
        self._most, self._minute, self._made = most, 0.0, dict[str, int]()

    def count(self, who: str, size: int = 0) -> None:
        """Count one more request with so many bytes to read at once, or raise `TooMany`."""
        minute, seconds = divmod(time.monotonic(), 60)
        if minute != self._minute:
            self._minute, self._made = minute, {}
        self._made[who] = self._made.get(who, 0) + min(1 + size // WEIGHT, self._most)
        if self._made[who] > self._most:
            refused = TooMany(
                f"a token may make {self._most:,} requests per minute, and each {WEIGHT:,} bytes of JSON count as one "
                "more; wait until the next minute. Nothing was charged."
            )
            refused.after = 60 - seconds
            raise refused


class Asking:
    """Runs work in threads, so that questions that wait together share a scan and a commit."""

    def __init__(self, house: House, metrics: Metrics) -> None:
        """Answer for everything a house serves."""
        self.house, self.metrics, limits = house, metrics, house.config.limits
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.scans, "afresh-ask")
        self._readers = ThreadPoolExecutor(4, "afresh-read")
        # Separate pools: neither large uploads, nor long questions, nor an identity provider that is slow to send its
        # keys hold up others.
        self._thinkers = Crew("afresh-think", 2, each=64, most=512)
        self.files = Crew("afresh-file", 2, each=8, most=32)
        self._doorkeepers = ThreadPoolExecutor(2, "afresh-door")
        self._strangers = ThreadPoolExecutor(2, "afresh-jwt")
        self._waiting, self._repeats = 0, Repeats()
        self._callers = Together(house.tokens.find, self._doorkeepers)
        self._frozen = Together(house.freezer.why, self._doorkeepers)
        self._left = Together(self._look_left, self._readers)
        self._gatherings = {
            name: Gathering(house, served, self._threads, limits.scans) for name, served in house.served.items()
        }
        self.rates = Rates(limits.requests)

    async def read(self, work: Callable[[], _Found]) -> _Found:
        """Do work that asks nothing about the rows."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def think(self, caller: Caller, given: Any, work: Callable[[], _Found]) -> _Found:
        """Do work that takes as long as what was given, as JSON, is long: read questions, or estimate a price."""
        if len(json.dumps(given)) <= _SHORT:
            return work()
        return await self._thinkers.work(caller.name, work)

    async def estimate(self, caller: Caller, work: Callable[[], _Found]) -> _Found:
        """Do work that may take long, whatever was given, and asks nothing about the rows."""
        return await self._thinkers.work(caller.name, work)

    async def caller(self, token: str) -> Caller:
        """The owner of one of this service's tokens."""
        return await self._callers.find(token)

    async def look_up(self, work: Callable[[], _Found]) -> _Found:
        """Look up a token issued elsewhere, which may take a while."""
        return await asyncio.get_running_loop().run_in_executor(self._strangers, work)

    async def ask(
        self,
        served: Served,
        caller: Caller,
        question: Any,
        work: Callable[[], _Found],
        price: Callable[[], int],
        charged: Callable[[_Found], int],
    ) -> _Found:
        """Ask the guard, and return its answer when the clock lets it leave.

        `question` is JSON-ready and has everything that `work` depends on. `price` is the most that may be charged.
        """
        came, leaves = time.time(), inf
        await self._check_frozen(served)

        def answered() -> _Found:
            nonlocal leaves
            if time.time() - came > _PATIENCE:  # it waited for others, and may be frozen by now
                refuse_frozen(served, self.house.freezer.why(served.name))
            with served.history.noting(came) as numbers:
                found = self._work(served, caller, work, price, charged)
            leaves = served.history.leaves(numbers) if numbers else inf
            return found

        try:
            found = await self._wait(answered)
        finally:
            await self._leave(came, leaves)
        # Kept only now that it leaves: until then, the same question has to wait for the clock too.
        if isinstance(found, list):
            self._repeats.keep(name_of(served.name, question), found)
        self.metrics.answered(charged(found))
        return found

    async def answer(
        self,
        served: Served,
        caller: Caller,
        question: Any,
        asked: Sequence[Any],
        other: Callable[[], Awaitable[list[Any]]],
    ) -> list[Answer]:
        """Do the same for questions that have been checked, answering them together with all others that wait.

        Questions that were asked before, or cannot be answered with others, take the `other` way.
        """
        came, gathering = time.time(), self._gatherings[served.name]
        request = await self.think(caller, question, lambda: gathering.prepared(asked, caller, came))
        if request is None:
            return await other()
        put = Put(request, caller)
        self._check_room()
        self._waiting += 1
        try:
            gathering.put(put)
            async with asyncio.timeout(self._limits.seconds):
                found = await put.done
        except TimeoutError:
            raise self._timed_out(begun=not gathering.withdraw(put)) from None
        finally:
            self._waiting -= 1
            await self._leave(came, inf if put.leaves is None else put.leaves)
        self._repeats.keep(name_of(served.name, question), found)
        self.metrics.answered(sum(each.charged for each in found))
        return found

    async def _leave(self, came: float, leaves: float) -> None:
        """Wait until the clock lets answers leave; if nothing was answered, wait for a tick that everybody shares."""
        tick = self.house.config.tick
        if leaves == inf:  # nothing was answered, and the time of saying so could reveal when others' scans ended
            leaves = next_tick(max(time.time(), came + tick), tick)
        elif leaves > came:  # it is new
            self.metrics.ticked(late=leaves > came + 1.5 * tick > came)
        if (rest := leaves - time.time()) > 0:
            await asyncio.sleep(rest)

    def _work(
        self,
        served: Served,
        caller: Caller,
        work: Callable[[], _Found],
        price: Callable[[], int],
        charged: Callable[[_Found], int],
    ) -> _Found:
        holds = self.house.holds
        hold = None if caller.cap is None else holds.take(caller, served.name, price())
        if hold is None:
            return work()
        try:
            with served.history.telling(partial(holds.note, hold)):
                found = work()
            holds.end(hold, charged(found))
        except BaseException:
            holds.end_as_paid(hold)
            raise
        return found

    async def _wait(self, work: Callable[[], _Found]) -> _Found:
        self._check_room()
        self._waiting += 1
        running: Future[_Found] = self._threads.submit(work)
        running.add_done_callback(_seen)
        try:
            waiting = asyncio.shield(asyncio.wrap_future(running))
            return await asyncio.wait_for(waiting, self._limits.seconds)
        except TimeoutError:
            raise self._timed_out(begun=not running.cancel()) from None
        finally:
            self._waiting -= 1

    def _check_room(self) -> None:
        if self._waiting >= _WAITING * self._limits.scans:
            raise TooMany("the service is busy; ask again later. Nothing was charged.")

    def _timed_out(self, *, begun: bool) -> TimedOut:
        if begun:
            return TimedOut(
                f"it took more than {self._limits.seconds:g} seconds and is still running; asking again is free."
            )
        return TimedOut(
            f"it waited {self._limits.seconds:g} seconds and did not start. Nothing was charged; ask again."
        )

    async def repeat(self, served: Served, caller: Caller, question: Any) -> Again | None:
        """The answers to questions asked here before in exactly these words; None if they were not.

        They are what the ledger has, and what is left is read from it: without a ledger there is no answer.
        """
        kept = self._repeats.get(name_of(served.name, question))
        if kept is None:
            return None
        why, left, ahead = await self._left.find((served.name, caller.name))
        refuse_frozen(served, why)
        return kept.again(left, ahead)

    def _look_left(self, whose: tuple[str, str]) -> tuple[str | None, int, Any]:
        """Look up why a dataset is frozen, if it is, and what is left for an analyst."""
        dataset, analyst = whose
        desk = self.house.served[dataset].guard.desk
        desk.check_open()
        return self.house.freezer.why(dataset), desk.left(analyst), desk.ahead()

    async def _check_frozen(self, served: Served) -> None:
        refuse_frozen(served, await self._frozen.find(served.name))

    def close(self) -> None:
        """Let work that has begun finish."""
        self._thinkers.close()
        self.files.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._doorkeepers.shutdown(wait=True, cancel_futures=True)
        self._strangers.shutdown(wait=True, cancel_futures=True)


def _seen(running: Future[Any]) -> None:
    """Take the error of abandoned work, so that asyncio does not complain that nobody did."""
    if not running.cancelled():
        running.exception()
