"""The path of an answer: pay, evaluate in one scan, add noise, record; only the record is read.

It takes the requests of several callers at once: one transaction pays for all of them, one scan evaluates them, and
one transaction records them. Each caller keeps its own all-or-nothing, its own name and its own refusal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.guard.evaluate import moments_of
from afresh.guard.tasked import task_of
from afresh.ledger.base import Outcome, Statement, outcome
from afresh.ledger.reserving import Wish
from afresh.mechanisms.base import AimsInGroups, DrawsSeveral
from afresh.moments import Grouped, Span
from afresh.queries.group import OfGroup
from afresh.results.reading import Number, Reading, read
from afresh.results.rules import derive, met

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.guard.noise import Noise
    from afresh.guard.remembered import Repeat
    from afresh.guard.scope import Scope
    from afresh.ledger import Entry, Ledger, Spent, Terms
    from afresh.ledger.ledger import Derive, Settle
    from afresh.ledger.records import Released
    from afresh.ledger.reserving import Entries
    from afresh.mechanisms.base import Mechanism
    from afresh.planning.plan import Plan
    from afresh.queries.asked import Asked
    from afresh.queries.base import RowQuestion

    Dealt = tuple[Asked, list[Reading]]
    """A question with what was released for it."""


class Reply(NamedTuple):
    """The desk's reply to a question."""

    asked: Asked
    number: Number
    """On the question's own scale."""
    parts: tuple[Reading, ...]
    """What was released for each of its queries."""
    charged: tuple[Entry, ...]
    """The entries that were paid for just now; the first of two equal questions pays."""
    left: int
    """The number of full-price answers this analyst has left."""
    scope: Scope
    """What was declared about the rows when the question was asked."""


class Pending(NamedTuple):
    """A question that is paid for and still to be evaluated."""

    entry: Entry
    query: RowQuestion
    scope: Scope


class Request:
    """What one caller asks at once, and its outcome."""

    def __init__(self, asked: Sequence[Asked], scope: Scope, wish: Wish) -> None:
        """Make a request for which nothing is paid yet."""
        self.asked, self.scope, self.wish = asked, scope, wish
        self.queries = [query for one in asked for query in one.queries]
        self.entries: Entries | None = None
        """Set once the request is paid for."""
        self.refusal: BudgetExhausted | None = None
        self.replies: list[Reply] | None = None

    @property
    def finished(self) -> bool:
        """Whether it was answered or refused."""
        return self.replies is not None or self.refusal is not None

    @property
    def apart(self) -> bool:
        """Whether it is served apart: a batch is its own round, and a user's function runs in its caller's thread."""
        return self.wish.batch is not None or self.wish.exam or any(query.alone for query in self.queries)

    @property
    def result(self) -> list[Reply]:
        """The caller's replies; raises the refusal if there is one."""
        if self.refusal is not None:
            raise self.refusal
        assert self.replies is not None
        return self.replies

    @property
    def pending(self) -> list[Pending]:
        """The questions that are paid for but not answered."""
        found = zip(self.entries or (), self.queries, strict=True)
        return [Pending(entry, query, self.scope) for entry, query in found if entry.outcome is None]


class Parts(Protocol):
    """The parts that a desk brings together."""

    engine: Engine
    development: Engine | None
    plan: Plan
    ledger: Ledger
    terms: Terms
    scope: Scope

    def left_of(self, spent: Spent, analyst: str) -> int:
        """Return how many full-price answers are left for an analyst who has spent this."""
        ...


class Path:
    """Takes requests to replies, on one opened dataset."""

    def __init__(self, desk: Parts, draw: Noise) -> None:
        """Make the path of a desk."""
        self._desk, self._draw = desk, draw

    def serve(self, requests: Sequence[Request]) -> None:
        """Finish every request: with replies, or with a refusal if it cannot be paid for.

        If the engine or the ledger fails, this raises, and what was paid for stays paid: serving again continues from
        there. Given several requests, it finishes those that can safely be served together.
        """
        self._pay([each for each in requests if each.entries is None and not each.finished])
        self._finish([each for each in requests if not each.finished])

    def repeat(self, request: Request) -> bool:
        """Finish a request if it was answered before, and return whether it was: that needs no rows, and no turn."""
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
                self._reply(request, {}, stated, self._desk.left_of(_entries(request).spent, request.wish.analyst))
        if len(waiting) > 1:
            # A question paid for earlier but never answered may fail again, or be slow: it must not hold others up.
            fresh = {entry.number for each in waiting for entry in _entries(each) if entry.new}
            waiting = [each for each in waiting if fresh.issuperset(one.entry.number for one in each.pending)]
        if not waiting:
            return
        # Paid stays paid if the engine fails, whatever the rows; asking again completes it.
        outcomes = self.outcomes(_in_order(waiting))
        callers = [(self._deriving(each), each.wish.analyst) for each in waiting]
        found = self._desk.ledger.record_each(self._desk.terms, outcomes, callers)
        stored = {entry.number: entry for entry in found[0]}  # each has all entries
        left: dict[tuple[Spent, str | None], int] = {}
        rounds = self._desk.plan.mechanism.batch is not None  # then it depends on the analyst, too
        for request, recorded in zip(waiting, found, strict=True):
            analyst = request.wish.analyst
            whose = recorded.spent, analyst if rounds else None
            if whose not in left:
                left[whose] = self._desk.left_of(recorded.spent, analyst)
            self._reply(request, stored, recorded.statements, left[whose])

    def _deriving(self, request: Request) -> Derive | None:
        """Return what derives the statements of a request; None if it has none, as most."""
        return partial(self._stated, request) if any(map(_is_stated, request.asked)) else None

    def _stated(self, request: Request, stored: Mapping[int, Entry]) -> list[Statement]:
        """Return what follows from the answers to a request."""
        readings = [read(stored.get(entry.number, entry)) for entry in _entries(request)]
        return self.stated(_dealt(request.asked, readings))

    def _reply(self, request: Request, stored: Mapping[int, Entry], statements: Sequence[Statement], left: int) -> None:
        readings = [read(replace(stored.get(each.number, each), new=each.new)) for each in _entries(request)]
        request.replies = list(self.replies(list(_dealt(request.asked, readings)), statements, left, request.scope))

    def outcomes(
        self, pending: Sequence[Pending], first: Mapping[int, Entry] = {}
    ) -> list[tuple[Entry, Outcome | Settle]]:
        """Evaluate in one scan and add noise. Only what the ledger has recorded of it may be released.

        `first` holds, by number, the answers that final looks repeat.
        """
        evaluated = list(zip(pending, self._moments(pending), strict=True))
        with np.errstate(all="ignore"):  # a mean near 0, for example, is for the answer to report
            return self._released(evaluated, first)

    def _released(
        self, evaluated: Sequence[tuple[Pending, Any]], first: Mapping[int, Entry]
    ) -> list[tuple[Entry, Outcome | Settle]]:
        found: list[tuple[Entry, Outcome | Settle]] = []
        rough: dict[tuple[str, float], tuple[float, float]] = {}  # draws that both answers about a group release
        exam = self._desk.plan.mechanism.exam_rows
        taken = None if exam is None else self._desk.ledger.examined(self._desk.terms)
        for (entry, query, scope), moments in evaluated:
            mechanism = self._desk.plan.of(entry)
            options: dict[str, Any] = {} if entry.guess is None else {"guess": entry.guess}
            if mechanism.symbols:
                options |= {"task": task_of(query), "levels": entry.levels, "unequal": scope.features == "public"}
            if exam is not None and entry.span == exam:
                options["exam"] = taken
            before = None if entry.again is None else first[entry.again].outcome
            if before is not None:  # with public features, other rows have a different true value
                options["look"] = 2 if scope.features == "public" else 3
            noise = self._noise(mechanism, entry.number)
            if isinstance(query, OfGroup) and isinstance(moments, Grouped) and isinstance(mechanism, AimsInGroups):
                group = query.of, entry.coarseness
                rough[group] = rough.get(group) or mechanism.rough(moments, noise)
                moments = replace(moments, rough=rough[group])
            released = mechanism.release(moments, noise, **options)
            settle = partial(_settle, mechanism, entry.levels, self._desk.plan.ends, released, before)
            found.append((entry, partial(_quietly, settle) if callable(released) else settle(())))
        return found

    def _noise(self, mechanism: Mechanism, number: int) -> Any:
        """Draw a standard normal number, or as many as the mechanism needs."""
        if isinstance(mechanism, DrawsSeveral):
            return [self._draw(number, which) for which in range(mechanism.draws)]
        return self._draw(number)

    def _moments(self, pending: Sequence[Pending]) -> list[Any]:
        """Return, for every entry, the moments of all rows, or of each span of rows its mechanism wants."""
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

    def look_again(self, repeats: Sequence[Repeat], scope: Scope, analyst: str) -> list[Reply]:
        """Close the rounds, and answer questions once more, each from all rows that are fresh for it.

        What was derived from their answers is derived again.
        """
        desk, ledger = self._desk, self._desk.ledger
        queries = {query.digest: query for one in repeats for query in one.queries}
        entries = ledger.look_again(desk.terms, queries.keys(), analyst)
        first = {entry.number: entry for entry in ledger.entries(desk.terms)}
        looks = {first[entry.again].digest: entry for entry in entries if entry.again is not None}
        found = [(one.asked, one.entries(first, looks)) for one in repeats]
        told = [(one, parts) for one, parts in found if parts is not None]

        def dealt(stored: Mapping[int, Entry]) -> list[Dealt]:
            return [(one, [read(stored.get(entry.number, entry)) for entry in parts]) for one, parts in told]

        pending = [Pending(each, queries[name], scope) for name, each in looks.items() if each.outcome is None]
        recorded = ledger.record_many(
            desk.terms, self.outcomes(pending, first), lambda stored: self.stated(dealt(stored)), analyst
        )
        final = dealt({entry.number: entry for entry in recorded})
        return list(self.replies(final, recorded.statements, 0, scope))

    def stated(self, dealt: Iterable[Dealt]) -> list[Statement]:
        """Return what follows from what was released, for questions asked in their own right."""
        return [self.derived(one, parts) for one, parts in dealt if _is_stated(one)]

    def derived(self, asked: Asked, parts: Sequence[Reading]) -> Statement:
        """Derive a question's number, by its rule, from what was released for it."""
        assert asked.rule is not None
        if self._desk.scope.features == "public" and len({self._desk.plan.rows_of(part.entry) for part in parts}) > 1:
            raise InvalidArgument(
                f"{asked.text} was not derived: its parts are about the features of different rows, and no rule may "
                "combine their true values."
            )
        numbers = tuple(part.entry.number for part in parts)
        found = derive(asked.rule, parts, asked.parameters, asked.bounds, self._desk.plan)
        return Statement(asked.text, asked.rule, asked.parameters, numbers, asked.bounds, *found)

    def replies(
        self,
        dealt: Sequence[Dealt],
        statements: Sequence[Statement],
        left: int,
        scope: Scope,
    ) -> Iterator[Reply]:
        """Return the reply to each question."""
        stated, owed = iter(statements), {part.entry.number for _, parts in dealt for part in parts if part.entry.new}
        for one, parts in dealt:
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
    """Return what is recorded: the released number with its value and interval, which are never computed again.

    `before` is the outcome that a final look repeats; both intervals hold.
    """
    made = released(earlier) if callable(released) else released
    low, high = mechanism.interval(made, levels=levels)
    if before is not None and mechanism.meets_first(made):
        low, high = met(low, high, before.low, before.high)
    return outcome(made, mechanism.value(made), low, high, ends=ends)


def _quietly(settle: Settle, earlier: Sequence[Released]) -> Outcome:
    """Settle an outcome later, whatever error handling the process has set in numpy."""
    with np.errstate(all="ignore"):
        return settle(earlier)


def _in_order(requests: Sequence[Request]) -> list[Pending]:
    """Return what is pending, by number; of two requests that wait for one question, the first one's."""
    found = {one.entry.number: one for each in reversed(requests) for one in reversed(each.pending)}
    return [found[number] for number in sorted(found)]


def _entries(request: Request) -> Entries:
    """Return the entries of a request that is paid for."""
    assert request.entries is not None
    return request.entries


def _is_stated(asked: Asked) -> bool:
    """Whether its number is derived and recorded, because it is asked in its own right."""
    return asked.rule is not None and asked.own


def _span(entry: Entry) -> Span | None:
    return None if entry.span is None else Span(*entry.span)


def _dealt(asked: Sequence[Asked], readings: Sequence[Reading]) -> Iterator[Dealt]:
    """Pair every question with what was released for it."""
    rest = iter(readings)
    for one in asked:
        yield one, [next(rest) for _ in one.queries]
