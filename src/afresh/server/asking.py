"""How a question is put to a guard: limits before, a thread to wait in, and the public clock after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf
from typing import Any, TypeVar

from afresh.errors import TimedOut, TooMany
from afresh.results.answer import Answer
from afresh.server.clock import next_tick
from afresh.server.gathering import Gathering, refuse_frozen
from afresh.server.house import House, Served
from afresh.server.metrics import Metrics
from afresh.server.repeats import Again, Repeats, name_of
from afresh.server.together import Together
from afresh.server.tokens import Caller

_Found = TypeVar("_Found")
_WAITING = 16  # how many requests may wait for each one that can be answered at once
_PATIENCE = 0.1  # seconds after which we check again whether a dataset is frozen


class Rates:
    """How many requests each token has made in the current minute."""

    def __init__(self, most: int) -> None:
        """Allow at most `most` requests a minute."""
        self._most, self._minute, self._made = most, 0, dict[str, int]()

    def count(self, who: str) -> None:
        """Count one more request, or raise `TooMany`."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._made = minute, {}
        self._made[who] = self._made.get(who, 0) + 1
        if self._made[who] > self._most:
            raise TooMany(
                f"a token may make {self._most:,} requests per minute; wait until the next minute. Nothing was charged."
            )


class Asking:
    """Runs work in threads, so that questions that wait together share a scan and a commit."""

    def __init__(self, house: House, metrics: Metrics) -> None:
        """Answer for everything a house serves."""
        self.house, self.metrics, limits = house, metrics, house.config.limits
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.scans, "afresh-ask")
        self._readers = ThreadPoolExecutor(4, "afresh-read")
        # Separate pools: neither large uploads nor an identity provider that is slow to send its keys hold up others.
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
        put = gathering.prepared(asked, caller, came)
        if put is None:
            return await other()
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
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._doorkeepers.shutdown(wait=True, cancel_futures=True)
        self._strangers.shutdown(wait=True, cancel_futures=True)


def _seen(running: Future[Any]) -> None:
    """Take the error of abandoned work, so that asyncio does not complain that nobody did."""
    if not running.cancelled():
        running.exception()
