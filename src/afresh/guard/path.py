"""The path of an answer: pay, evaluate in one scan, add noise, record; only what is recorded is read.

It takes the requests of several callers at once: one transaction pays for all of them, one scan evaluates, one
transaction records. Each caller keeps its own all or nothing, its own name and its own refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from afresh.errors import BudgetExhausted
from afresh.guard.evaluate import moments_of
from afresh.guard.tasked import task_of
from afresh.ledger.base import Outcome, Statement, outcome
from afresh.ledger.reserving import Wish
from afresh.mechanisms.base import draws_of
from afresh.moments import Span
from afresh.results.reading import Number, Reading, read
from afresh.results.rules import derive, met

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.guard.noise import Noise
    from afresh.guard.scope import Scope
    from afresh.ledger import Entry, Ledger, Spent, Terms
    from afresh.ledger.ledger import Settle
    from afresh.ledger.records import Released
    from afresh.ledger.reserving import Entries
    from afresh.mechanisms.base import Mechanism
    from afresh.planning.plan import Plan
    from afresh.queries.asked import Asked
    from afresh.queries.base import RowQuestion


class Reply(NamedTuple):
    """What the desk says to a question."""

    asked: Asked
    number: Number
    """On the question's own scale."""
    parts: tuple[Reading, ...]
    """What was released for each of its queries."""
    charged: tuple[Entry, ...]
    """Those of them that were paid for just now; the first of two equal questions pays."""
    left: int
    """How many answers at full price this analyst has left."""
    scope: Scope
    """What was declared of the rows when it was asked."""


class Pending(NamedTuple):
    """A question that is paid for, to be evaluated."""

    entry: Entry
    query: RowQuestion
    scope: Scope


class Request:
    """What one caller asks at once, and what became of it."""

    def __init__(self, asked: Sequence[Asked], scope: Scope, wish: Wish) -> None:
        """Nothing is paid for yet."""
        self.asked, self.scope, self.wish = asked, scope, wish
        self.queries = [query for one in asked for query in one.queries]
        self.entries: Entries | None = None
        """Once it is paid for."""
        self.refusal: BudgetExhausted | None = None
        self.replies: list[Reply] | None = None

    @property
    def finished(self) -> bool:
        """Whether it was answered, or refused."""
        return self.replies is not None or self.refusal is not None

    @property
    def result(self) -> list[Reply]:
        """What its caller gets."""
        if self.refusal is not None:
            raise self.refusal
        assert self.replies is not None
        return self.replies

    @property
    def pending(self) -> list[Pending]:
        """What is paid for and not answered."""
        found = zip(self.entries or (), self.queries, strict=True)
        return [Pending(entry, query, self.scope) for entry, query in found if entry.outcome is None]


class Parts(Protocol):
    """What a desk puts together."""

    engine: Engine
    development: Engine | None
    plan: Plan
    ledger: Ledger
    terms: Terms

    def left_of(self, spent: Spent, analyst: str) -> int:
        """How many answers at full price are left for an analyst who has spent this."""
        ...


class Path:
    """From requests to replies, on one opened dataset."""

    def __init__(self, desk: Parts, draw: Noise) -> None:
        """Of a desk."""
        self._desk, self._draw = desk, draw

    def serve(self, requests: Sequence[Request]) -> None:
        """Finish every request: with replies, or with a refusal of what it cannot pay.

        Where the engine or the ledger fails it raises, and what was paid for stays so: serving again goes on from
        there. Of several requests it finishes those that nothing speaks against serving together.
        """
        self._pay([each for each in requests if each.entries is None and not each.finished])
        self._finish([each for each in requests if not each.finished])

    def repeat(self, request: Request) -> bool:
        """Finish a request that was answered before, and say whether it was: it needs no rows, and no turn."""
        found = self._desk.ledger.answered(self._desk.terms, request.wish.questions, request.wish.analyst)
        if found is None:
            return False
        request.entries = found
        self._finish([request])
        return True

    def _pay(self, requests: Sequence[Request]) -> None:
        if not requests:
            return
        self._desk.engine.check_unchanged()
        self._desk.ledger.reserve_each(self._desk.terms, [each.wish for each in requests])
        for request in requests:
            found = request.wish.found
            if isinstance(found, BudgetExhausted):
                request.refusal = found
            else:
                request.entries = found

    def _finish(self, requests: Sequence[Request]) -> None:
        waiting: list[Request] = []
        for request in requests:
            if request.pending:
                waiting.append(request)
            else:
                stated = self._desk.ledger.state(self._desk.terms, self._stated(request, {}), request.wish.analyst)
                self._reply(request, {}, stated, _entries(request).spent)
        if len(waiting) > 1:
            # What was paid for earlier and never answered may fail again, or take all of its time: not others' time.
            fresh = {entry.number for each in waiting for entry in _entries(each) if entry.new}
            waiting = [each for each in waiting if fresh.issuperset(one.entry.number for one in each.pending)]
        if not waiting:
            return
        # Paid stays paid if the engine fails, whatever the rows; asking again completes it.
        pending = {one.entry.number: one for each in reversed(waiting) for one in reversed(each.pending)}
        outcomes = self.outcomes([pending[number] for number in sorted(pending)])
        callers = [(partial(self._stated, each), each.wish.analyst) for each in waiting]
        for request, recorded in zip(
            waiting, self._desk.ledger.record_each(self._desk.terms, outcomes, callers), strict=True
        ):
            stored = {entry.number: entry for entry in recorded}
            self._reply(request, stored, recorded.statements, recorded.spent)

    def _stated(self, request: Request, stored: Mapping[int, Entry]) -> list[Statement]:
        """What follows from the answers to a request."""
        readings = [read(stored.get(entry.number, entry)) for entry in _entries(request)]
        return self.stated(request.asked, readings)

    def _reply(
        self, request: Request, stored: Mapping[int, Entry], statements: Sequence[Statement], spent: Spent
    ) -> None:
        readings = [read(replace(stored.get(each.number, each), new=each.new)) for each in _entries(request)]
        left = self._desk.left_of(spent, request.wish.analyst)
        request.replies = list(self.replies(request.asked, readings, statements, left, request.scope))

    def outcomes(
        self, pending: Sequence[Pending], first: Mapping[int, Entry] = {}
    ) -> list[tuple[Entry, Outcome | Settle]]:
        """Evaluate in one scan and add noise. Only what the ledger has recorded of it may be released.

        `first` are the answers, by number, that final looks look at again.
        """
        found: list[tuple[Entry, Outcome | Settle]] = []
        exam = self._desk.plan.mechanism.exam_rows
        taken = None if exam is None else self._desk.ledger.examined(self._desk.terms)
        for (entry, query, scope), moments in zip(pending, self._moments(pending), strict=True):
            mechanism = self._desk.plan.of(entry)
            options: dict[str, Any] = {} if entry.guess is None else {"guess": entry.guess}
            if mechanism.symbols:
                options |= {"task": task_of(query), "levels": entry.levels, "unequal": scope.features == "public"}
            if exam is not None and entry.span == exam:
                options["exam"] = taken
            before = None if entry.again is None else first[entry.again].outcome
            if before is not None:  # with public features, other rows have another truth
                options["look"] = 2 if scope.features == "public" else 3
            with np.errstate(all="ignore"):  # that a mean is nearly 0, say, is for the answer to tell
                released = mechanism.release(moments, self._noise(mechanism, entry.number), **options)
            settle = partial(_settle, mechanism, entry.levels, self._desk.plan.ends, released, before)
            found.append((entry, settle if callable(released) else settle(())))
        return found

    def _noise(self, mechanism: Mechanism, number: int) -> Any:
        """A standard normal number, or as many as the mechanism draws."""
        draws = draws_of(mechanism)
        return self._draw(number) if draws is None else [self._draw(number, which) for which in range(draws)]

    def _moments(self, pending: Sequence[Pending]) -> list[Any]:
        """Of every entry the moments of all rows, or of each span of rows its mechanism wants."""
        spans = [self._desk.plan.mechanism.spans(entry.number, _span(entry)) for entry, _, _ in pending]
        if not any(spans):
            return list(moments_of(self._desk.engine, [each.query for each in pending]))
        wanted = [(each.query, span) for each, own in zip(pending, spans, strict=True) for span in own]
        found = iter(moments_of(self._desk.engine, [query for query, _ in wanted], [span for _, span in wanted]))
        parts = [tuple(next(found) for _ in own) for own in spans]
        if self._desk.plan.mechanism.own and self._desk.development is not None:
            places = [place for place, each in enumerate(pending) if each.entry.span is None]
            guesses = moments_of(self._desk.development, [pending[place].query for place in places])
            for place, guess in zip(places, guesses, strict=True):
                parts[place] = (guess, *parts[place])
        return [own[0] if len(own) == 1 else own for own in parts]

    def stated(self, asked: Sequence[Asked], readings: Sequence[Reading]) -> list[Statement]:
        """What follows from what was released, of questions that were asked for themselves."""
        found = _dealt(asked, readings)
        return [self.derived(one, parts) for one, parts in found if one.rule is not None and one.own]

    def derived(self, asked: Asked, parts: Sequence[Reading]) -> Statement:
        """What follows by its rule from what was released for a question."""
        assert asked.rule is not None
        numbers = tuple(part.entry.number for part in parts)
        found = derive(asked.rule, parts, asked.parameters, asked.bounds, self._desk.plan)
        return Statement(asked.text, asked.rule, asked.parameters, numbers, asked.bounds, *found)

    def replies(
        self,
        asked: Sequence[Asked],
        readings: Sequence[Reading],
        statements: Sequence[Statement],
        left: int,
        scope: Scope,
    ) -> Iterator[Reply]:
        """What is said to each question."""
        stated, owed = iter(statements), {reading.entry.number for reading in readings if reading.entry.new}
        for one, parts in _dealt(asked, readings):
            charged = []
            for entry in (part.entry for part in parts):
                if entry.number in owed:
                    owed.remove(entry.number)
                    charged.append(entry)
            if one.rule is None:
                number = parts[0].own
            else:
                found = next(stated) if one.own else self.derived(one, parts)
                number = Number(found.value, found.low, found.high)
            yield Reply(one, number, tuple(parts), tuple(charged), left, scope)


def _settle(
    mechanism: Mechanism,
    levels: int | None,
    ends: float,
    released: Any,
    before: Outcome | None,
    earlier: Sequence[Released],
) -> Outcome:
    """What is recorded: the released number with its value and interval, which nobody computes again.

    `before` is the outcome that a final look looks at again; both intervals hold.
    """
    made = released(earlier) if callable(released) else released
    with np.errstate(all="ignore"):  # whatever a process asked of numpy
        low, high = mechanism.interval(made, levels=levels)
        if before is not None and mechanism.meets_first(made):
            low, high = met(low, high, before.low, before.high)
        return outcome(made, mechanism.value(made), low, high, ends=ends)


def _entries(request: Request) -> Entries:
    """Of a request that is paid for."""
    assert request.entries is not None
    return request.entries


def _span(entry: Entry) -> Span | None:
    return None if entry.span is None else Span(*entry.span)


def _dealt(asked: Sequence[Asked], readings: Sequence[Reading]) -> Iterator[tuple[Asked, list[Reading]]]:
    """Every question with what was released for it."""
    rest = iter(readings)
    for one in asked:
        yield one, [next(rest) for _ in one.queries]
