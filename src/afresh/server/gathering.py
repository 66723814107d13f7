"""Put the questions of many requests to their desk in one thread: one thread each would cost more than the answers.

Questions that come while a group is answered form the next group. Each one is treated as if it were alone: it has its
own charge, cap, refusal and error. A question that cannot be answered with others is answered in a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from afresh.errors import Frozen
from afresh.results.answer import Answer

if TYPE_CHECKING:
    from afresh.guard.path import Request
    from afresh.server.holds import Hold
    from afresh.server.house import House, Served
    from afresh.server.tokens import Caller


class Put:
    """What one request asks, and what becomes of it."""

    def __init__(self, request: Request, caller: Caller) -> None:
        """Prepare to answer in the name of a caller."""
        self.request, self.caller = request, caller
        self.done: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self.done.add_done_callback(_seen)
        self.answers: list[Answer] = []
        self.error: Exception | None = None
        self.leaves: float | None = None
        """When its answers leave, by the clock on the wall, once there are some."""
        self.hold: Hold | None = None
        """What is counted against the cap of its token."""

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do for it."""
        return self.error is not None or self.request.finished

    def tell(self) -> None:
        """Give the outcome to the request that waits for it."""
        if self.done.done():  # nobody is waiting any more
            return
        if self.error is None:
            self.done.set_result(self.answers)
        else:
            self.done.set_exception(self.error)


class Gathering:
    """The waiting questions of one dataset. For one event loop."""

    def __init__(self, house: House, served: Served, threads: Executor, most: int) -> None:
        """Answer at most so many together."""
        self._house, self._served, self._threads, self._most = house, served, threads, most
        self._waiting: list[Put] = []
        self._busy = False

    def prepared(self, asked: Sequence[Any], caller: Caller, came: float) -> Request | None:
        """Prepare questions that came at this time to be put with others; None if they have to take another way."""
        return self._served.guard.desk.prepared(asked, caller.name, datetime.fromtimestamp(came, UTC))

    def put(self, put: Put) -> None:
        """Queue it to be answered."""
        self._waiting.append(put)
        self._next()

    def withdraw(self, put: Put) -> bool:
        """Forget it, if it has not begun."""
        if put not in self._waiting:
            return False
        self._waiting.remove(put)
        return True

    def _next(self) -> None:
        if self._waiting and not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._begin)  # with all that come in the same turn of the loop

    def _begin(self) -> None:
        group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._answer, group)
        running.add_done_callback(lambda done: self._end(group, done))

    def _end(self, group: Sequence[Put], done: asyncio.Future[None]) -> None:
        self._busy = False
        if done.cancelled():  # the service is stopping
            for put in (*group, *self._waiting):
                put.done.cancel()
            return
        self._next()
        for put in group:
            if put.settled:
                put.tell()
            else:
                running = asyncio.get_running_loop().run_in_executor(self._threads, self._answer_alone, put)
                running.add_done_callback(partial(_tell, put))

    def _answer(self, group: Sequence[Put]) -> None:
        """Run in a thread: settle all except those that have to be answered alone."""
        try:
            refuse_frozen(self._served, self._house.freezer.why(self._served.name))
            begun = [put for put in group if self._counted(put)]
            with suppress(Exception):  # each one, asked alone, finds out whether the error concerns it
                self._served.guard.desk.answer_for([put.request for put in begun])
            for put in begun:
                if put.request.finished:
                    self._finish(put)
        except Exception as error:
            for put in group:
                put.error = put.error or error

    def _counted(self, put: Put) -> bool:
        """Count it against its token's cap, if there is one; returns whether the cap admits it."""
        try:
            if put.caller.cap is not None:
                desk = self._served.guard.desk
                unpaid = desk.ledger.unpaid(desk.terms, put.request.wish.questions)
                digests = (each.digest for each in unpaid)
                put.hold = self._house.holds.take(put.caller, self._served.name, len(unpaid), digests)
            return True
        except Exception as error:
            put.error = error
            return False

    def _answer_alone(self, put: Put) -> None:
        """Run in a thread of its own: settle it."""
        try:
            self._served.guard.desk.answer_alone(put.request)
        except Exception as error:
            put.error = error
        self._finish(put)

    def _finish(self, put: Put) -> None:
        """Record when it leaves and what it says, and count what was charged."""
        try:
            if put.error is None:
                replies = put.request.result
                numbers = {part.entry.number for reply in replies for part in reply.parts}
                put.leaves = self._served.history.leaves(numbers)
                put.answers = [self._served.guard.desk.tell(reply) for reply in replies]
                if put.hold is not None:
                    self._house.holds.end(put.hold, sum(answer.charged for answer in put.answers))
            elif put.hold is not None:
                self._house.holds.end_as_paid(put.hold)
        except Exception as error:
            put.error = error


def _tell(put: Put, done: asyncio.Future[None]) -> None:
    if done.cancelled():
        put.done.cancel()
    else:
        put.tell()


def refuse_frozen(served: Served, why: str | None) -> None:
    """Refuse to answer anything about a frozen dataset."""
    if why is not None:
        raise Frozen(f"{served.name} is frozen: {why} Its transcript can be read; nothing new is answered.")


def _seen(done: asyncio.Future[list[Answer]]) -> None:
    """Take the error in case the request has gone, so that asyncio does not complain that nobody did."""
    if not done.cancelled():
        done.exception()
