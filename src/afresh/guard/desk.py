"""The desk: the one door to recorded answers.

Guards, holdouts, statistics and commands all ask their questions here, each in an analyst's name. Questions that arrive
together wait in line (`line`) and take the path to an answer (`path`) together.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from afresh import checks
from afresh.errors import GuardClosed, InvalidArgument
from afresh.guard.arrange import arranged
from afresh.guard.exam import in_exam, of_exam
from afresh.guard.line import Line
from afresh.guard.path import Path, Reply, Request
from afresh.guard.remembered import Remembered
from afresh.guard.scope import Scope
from afresh.guard.tasked import task_of
from afresh.guard.working import AtWork
from afresh.ledger.base import Question, Statement
from afresh.ledger.reserving import Wish
from afresh.mechanisms.base import (
    AnswersVectors,
    FollowsHint,
    NeverEnds,
    at_coordinate,
    at_levels,
    coarseness_for,
)
from afresh.mechanisms.registry import CLAIMING, GUESSING, HINTED
from afresh.planning.groups import narrower_one_by_one
from afresh.planning.ways import about_numbers, would_tell_mean
from afresh.results import show
from afresh.results.answer import NARROW, WIDE, Answer, Interval, coverage
from afresh.results.progress import waiting
from afresh.results.reading import Number, Reading
from afresh.results.rules import noise_of, share_of, tells

if TYPE_CHECKING:
    from datetime import datetime

    from afresh.engines.base import Engine
    from afresh.guard.noise import Noise
    from afresh.ledger import Ledger, Spent, Terms
    from afresh.moments import Vector
    from afresh.planning.plan import Plan
    from afresh.queries.asked import Asked
    from afresh.queries.base import RowQuestion
    from afresh.queries.tree import Type


_PATIENCE = 0.005  # seconds between checks of whether other threads have finished


class Desk:
    """One opened dataset with its plan, its ledger and its noise, for any number of analysts and threads."""

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        ledger: Ledger,
        terms: Terms,
        draw: Noise,
        *,
        owns_ledger: bool,
        development: Engine | None = None,
        allow_wide: bool = False,
    ) -> None:
        """Take the parts that `afresh.open` assembles. `development` holds the analyst's own rows, used for guesses."""
        self.development, self._allow_wide = development, allow_wide
        self.engine, self.plan, self.ledger, self.terms = engine, plan, ledger, terms
        self.scope, self._declaring = Scope(), Lock()  # a holdout declares more
        self.closed, self._process = False, os.getpid()
        self._owns_ledger = owns_ledger
        self._path = Path(self, draw)
        self._line = Line(self._serve_shown, self._check_process)
        self.kind = "pandas"  # the kind of frame that open rows are returned as
        self.hidden: frozenset[str] = frozenset()  # columns that the service hides from analysts
        self.came = ledger.time  # when a question was asked; a service may know this more precisely
        self.watch: Callable[[Sequence[Reply]], None] = lambda replies: None  # called with all replies, in their thread
        self.pays: Callable[[Sequence[Question]], None] = lambda questions: None  # before these may be paid for
        self._at_work = AtWork(self.check_open)
        self._remembered = Remembered()  # in rounds, what a final look can repeat

    @property
    def rows(self) -> int:
        """The number of rows, which is public."""
        return self.engine.rows

    @property
    def schema(self) -> Mapping[str, Type | None]:
        """The columns that questions may name, and their types."""
        if not self.hidden:
            return self.engine.schema
        return {name: type for name, type in self.engine.schema.items() if name not in self.hidden}

    def answer(
        self,
        asked: Sequence[Asked],
        analyst: str,
        later: int = 0,
        rows: int | None = None,
        exam: bool = False,
        vector: Vector | None = None,
    ) -> list[Reply]:
        """Return what was released for every question, now or earlier. Either all are paid for, or none.

        Refuses if `later` more questions could not be paid for as well. Derived numbers are recorded with the answers.
        In an `exam`, questions are answered from the rows kept for it. With a `vector`, all queries are its
        coordinates, released at once; the caller is responsible for its shape.
        """
        if rows is not None:
            if self.plan.mechanism.batch is None:  # it would be paid for, then evaluated on rows that no method expects
                raise InvalidArgument(f"rows= is for rounds, and method={self.plan.method!r} has none; leave it out.")
            rows = checks.whole("rows", rows, 1, self.engine.rows)
        this = object()
        try:  # as in `during`, which would make more objects for each of many callers who wait
            self._at_work.begin(this)
            return self._answer(self._request(asked, analyst, later, rows, exam, vector))
        finally:
            self._at_work.calls.pop(this, None)

    def _answer(self, request: Request) -> list[Reply]:
        if not request.queries:  # asking nothing writes nothing, not even a plan
            return []
        self._serve(request)
        if self.plan.mechanism.batch is not None:
            self._remembered.asked(request.asked)
        self.watch(request.result)
        return request.result

    def at_once(self, kind: str, size: int, groups: int = 0) -> Vector | None:
        """Return how this many numbers would be released at once; None if that is not cheaper than one by one.

        None also for the means of a number in several groups, if they are clearly narrower one by one.
        """
        mechanism = self.plan.mechanism
        found = mechanism.at_once(kind, size) if isinstance(mechanism, AnswersVectors) else None
        if found is not None and groups and narrower_one_by_one(mechanism, found, groups):
            return None
        return found

    def arranged(self, asked: Sequence[Asked], scope: Scope | None = None, *, exam: bool = False) -> list[Asked]:
        """Return questions that are asked together as this desk asks them."""
        return arranged(asked, self.plan.mechanism, (scope or self.scope).features == "public", exam=exam)

    @property
    def means_within_groups(self) -> bool:
        """Whether a mean within a group is one question."""
        return self.plan.mechanism.exact_moments and self.scope.features != "public"

    def _request(
        self,
        asked: Sequence[Asked],
        analyst: str,
        later: int,
        rows: int | None,
        exam: bool,
        vector: Vector | None,
        came: datetime | None = None,
    ) -> Request:
        """Return a request as this desk makes it; any mistake in the questions is found here."""
        scope = self.scope  # a holdout may declare another one in the meantime
        if vector is None:  # the coordinates of a vector are released as they are
            asked = self.arranged(asked, scope, exam=exam)
        if exam:
            asked = [in_exam(one) for one in asked]
        scope.check(query for one in asked for query in one.queries)
        questions = self.questions(asked, exam=exam, vector=vector)
        if not exam and (why := self.hides(questions)) and self.ledger.unpaid(self.terms, questions):
            raise InvalidArgument(f"{why} Nothing was asked or charged.")
        batch = self.plan.mechanism.batch if rows is None else rows
        self.pays(questions)
        return Request(asked, scope, Wish(questions, analyst, later, batch, exam, came or self.came()))

    def hides(self, questions: Iterable[Question | RowQuestion]) -> str:
        """Say why new questions about numbers are refused, if the plan's noise hides their deviations."""
        number = not self._allow_wide and any(each.levels is None for each in questions)
        return about_numbers(self.plan.mechanism)[0] if number else ""

    def _serve(self, request: Request) -> None:
        """Serve a request together with those of other current callers, if nothing prevents that."""
        if request.apart:
            self._serve_shown([request])
        # While others are being served, whose rows were checked just now, earlier answers need not wait for them.
        elif not (self._line.busy and self._path.repeat(request)):
            self._line.stand(request)

    def _serve_shown(self, requests: Sequence[Request]) -> None:
        """Serve requests, and show it if that takes long; not in each thread that waits for it."""
        with waiting(f"Asking {self.engine.rows:,} rows"):
            self._path.serve(requests)

    def prepared(self, asked: Sequence[Asked], analyst: str, came: datetime) -> Request | None:
        """Return a request for one thread to answer with others; None if it needs `answer`, as repeats do."""
        request = self._request(asked, analyst, 0, None, False, None, came)
        known = self.ledger.seen(self.terms, request.wish.questions)
        return None if known or request.apart else request

    def answer_for(self, requests: Sequence[Request]) -> None:
        """Finish requests of several callers in this one thread; any left unfinished must be answered alone."""
        self._at_work.during(partial(self._line.stand_for, requests))

    def answer_alone(self, request: Request) -> None:
        """Finish a request that `answer_for` left unfinished, or raise the reason why it cannot be."""
        self._at_work.during(partial(self._path.serve, [request]))

    def questions(self, asked: Iterable[Asked], *, exam: bool = False, vector: Vector | None = None) -> list[Question]:
        """Return the questions for the ledger to reserve."""
        if vector is not None:
            return self._coordinates([(query, one) for one in asked for query in one.queries], vector)
        found = [
            self._question(query, self._noise(one), self._guess(one), one.own and one.rule is None)
            for one in asked
            for query in one.queries
        ]
        return [of_exam(each) for each in found] if exam else found

    def _question(
        self, query: RowQuestion, coarseness: float, guess: tuple[float, float] | None, own: bool
    ) -> Question:
        mechanism, digest = at_levels(self.plan.at(coarseness), query.levels), query.digest
        if task_of(query) is not None and not mechanism.symbols:
            those = " or ".join(map(repr, CLAIMING))
            raise InvalidArgument(
                f"claims, challenges and contests need method={those}, but this dataset was opened with "
                f"{self.plan.method!r}; ask for the number instead."
            )
        if guess is not None:  # a different guess makes a different question
            digest = hashlib.sha256(f"{digest} {guess!r}".encode()).hexdigest()
        return Question(
            digest,
            query.text,
            mechanism.charge,
            mechanism.row_charge,
            coarseness,
            query.bounds,
            query.levels,
            own,
            guess,
        )

    def _coordinates(self, asked: Sequence[tuple[RowQuestion, Asked]], vector: Vector) -> list[Question]:
        """Return one question per coordinate, named after the whole vector and with its noise and share."""
        if len(asked) != vector.size:
            raise InvalidArgument(f"a vector of {vector.size} coordinates has {len(asked)} questions.")
        named = json.dumps([vector.kind, vector.answers, *(query.digest for query, _ in asked)])
        found = []
        for place, (query, one) in enumerate(asked):
            own = vector._replace(place=place)
            mechanism = at_coordinate(self.plan.mechanism, own)
            found.append(
                Question(
                    hashlib.sha256(f"vector {place} {named}".encode()).hexdigest(),
                    one.text if len(one.queries) == 1 else query.text,
                    mechanism.charge,
                    mechanism.row_charge,
                    mechanism.coarseness,
                    query.bounds,
                    query.levels,
                    one.own and one.rule is None,
                    vector=(own.kind, own.size, own.answers, own.place),
                )
            )
        return found

    def _noise(self, asked: Asked) -> float:
        if asked.noise is not None:
            return asked.noise
        found = [query.levels for query in asked.queries]
        levels = None if None in found else max(filter(None, found), default=2)
        return self.coarseness(asked.precision, levels, asked.about)

    def coarseness(self, precision: float | None, levels: int | None = 2, about: float | None = None) -> float:
        """Return the multiple of the plan's noise that is enough for a half-width on [0, 1], for values like these.

        Or the multiple that follows from a hint of what the answer is `about`.
        """
        mechanism = self.plan.mechanism
        if about is None:
            return 1.0 if precision is None else coarseness_for(at_levels(mechanism, levels), precision)
        if not isinstance(mechanism, FollowsHint):
            those = " or ".join(f"method={name!r}" for name in HINTED)
            raise InvalidArgument(
                f"about= works only with {those}, but this dataset was opened with "
                f"{self.plan.method!r}; leave about= out."
            )
        if precision is not None:
            raise InvalidArgument("about= and precision= both choose the noise; leave one of them out.")
        return mechanism.noise_about(about)

    def _guess(self, asked: Asked) -> tuple[float, float] | None:
        if asked.guess is not None and not self.plan.mechanism.checks_guesses:
            those = " or ".join(map(repr, GUESSING))
            raise InvalidArgument(
                f"a guess can be checked with method={those} only, and this dataset was opened with "
                f"{self.plan.method!r}; leave it out."
            )
        if asked.guess is not None and len(asked.queries) > 1:
            raise InvalidArgument(
                "guess= is for one answer, but this mean over some of the rows takes two: leave it out, or test it by "
                "claim(..., between=(low, high), where=...)."
            )
        return asked.guess

    def look_again(self, analyst: str) -> list[Reply]:
        """Close the rounds and answer this desk's questions once more, each from all rows that are fresh for it."""
        return self._at_work.during(partial(self._look_again, analyst))

    def _look_again(self, analyst: str) -> list[Reply]:
        self.engine.check_unchanged()
        repeats = self._remembered.repeats(self.scope)
        if not repeats:
            raise InvalidArgument(
                "this process has asked no question about columns to look at again, and closing is final; first "
                "repeat the questions you want to look at, which is free."
            )
        if analyst in self.ledger.shares(self.terms):
            raise InvalidArgument(
                f"closing the rounds ends them for everyone, and {analyst} has only a share of the budget; "
                "the person who divided the budget can do it."
            )
        replies = self._path.look_again(repeats, self.scope, analyst)
        self.watch(replies)
        return replies

    def derived(self, asked: Asked, parts: Sequence[Reading]) -> Statement:
        """Derive a question's number, by its rule, from what was released for it."""
        return self._path.derived(asked, parts)

    def state(self, asked: Sequence[Asked], parts: Sequence[Reading], analyst: str) -> list[Number]:
        """Record what follows from parts released earlier; only what is returned may be reported."""
        stated = self.ledger.state(self.terms, [self.derived(one, parts) for one in asked], analyst)
        if self.plan.mechanism.batch is not None:
            self._remembered.stated(asked, parts)
        return [Number(each.value, each.low, each.high) for each in stated]

    def tell(self, reply: Reply) -> Answer:
        """Return a reply as the answer people see."""
        asked, (value, low, high) = reply.asked, reply.number
        return Answer(
            question=asked.question,
            where=asked.where,
            bounds=asked.bounds,
            value=value,
            interval=Interval(low, high),
            confidence=self.plan.confidence,
            covers=self._covers(asked, len(reply.parts), reply.scope),
            missing=asked.about_missing,
            method=self.plan.method,
            charged=0 if self._examined(reply.parts) else sum(entry.counts for entry in reply.charged),
            charged_information=sum(entry.charge for entry in reply.charged),
            exam=self._examined(reply.parts),
            would_tell=self._would_tell(reply),
            left=reply.left,
            simulated=self.terms.simulated,
            told=tells(asked.rule, low, high, asked.bounds),
            noise=noise_of(asked.rule, reply.parts, asked.bounds[1] - asked.bounds[0], self.plan, asked.parameters),
            confirmed=self.confirmed(reply.parts),
            widened=self.widened(reply.parts),
            fixes=self.fixes(reply),
            ahead=self.ahead(),
        )

    def fixes(self, reply: Reply) -> str | None:
        """The plan in words, if this answer was the first and fixed it."""
        return self.plan.in_words if any(entry.number == 1 for entry in reply.charged) else None

    def _would_tell(self, reply: Reply) -> tuple[str, ...]:
        """Say what would have made a uselessly wide answer narrow enough, from public constants alone."""
        asked, (value, low, high) = reply.asked, reply.number
        scale = asked.bounds[1] - asked.bounds[0]
        reach = (high - low) / 2 / scale
        if reach <= WIDE or self._examined(reply.parts) or self.plan.expected is not None:
            return ()
        if any(task_of(query) is not None for query in asked.queries):
            return ()
        share = share_of(asked.rule, reply.parts, self.plan)
        if share is None:
            return ()
        mean = min(max((value - asked.bounds[0]) / scale, 0.0), 1.0)
        told = float(f"{reach:.2g}"), NARROW, round(mean, 2), float(f"{share:.2g}")
        return would_tell_mean(self.plan.mechanism, *told)

    def _examined(self, parts: Iterable[Reading]) -> bool:
        """Whether these answers come from the exam, which takes nothing from the budget."""
        return self.plan.mechanism.exam_rows is not None and any(part.entry.span is not None for part in parts)

    def ahead(self) -> tuple[float, float] | None:
        """For an endless budget, the half-widths of the next and the hundredth answer at a share of one half."""
        mechanism = self.plan.mechanism
        if self.plan.expected is None or not isinstance(mechanism, NeverEnds):
            return None
        so_far = self.ledger.spent(self.terms).answers
        return mechanism.half_width_at(so_far + 1, 0.5), mechanism.half_width_at(so_far + 100, 0.5)

    def confirmed(self, parts: Iterable[Reading]) -> bool | None:
        """Whether the checks of guesses passed; None if nothing is guessed."""
        outcomes = [part.entry.outcome for part in parts]
        found = [None if each is None else self.plan.mechanism.confirmed(each.released) for each in outcomes]
        return None if None in found else all(found)

    def widened(self, parts: Iterable[Reading]) -> float | None:
        """Return by what share the failed checks widen later answers; None if none failed."""
        outcomes = [part.entry.outcome for part in parts]
        found = [None if each is None else self.plan.mechanism.widened(each.released) for each in outcomes]
        return math.prod(1 + each for each in found if each is not None) - 1 if any(found) else None

    def _covers(self, asked: Asked, parts: int, scope: Scope) -> str:
        about = f"Estimates {asked.about_value}, {self._words(scope)}"
        if asked.queries:
            many = f"up to {self.plan.answers:,}" if self.plan.expected is None else "however many"
            many += "" if self.plan.exam is None else " and those of its exam"
            number = any(query.levels is None for query in asked.queries)
            if number and (width := about_numbers(self.plan.mechanism)[1]):
                about += f" ({width})"
            said = f"{about}. All answers of this guard, {many}, hold at once {self.odds}"
        else:  # it combines questions asked in several steps
            answers = f"{parts:,} answer{'' if parts == 1 else 's'}"
            said = f"{about}: it follows from {answers}, which hold at once with all others of this guard, {self.odds}"
        return self.covers(f"{said}, however the questions were chosen.")

    def covers(self, said: str) -> str:
        """Say what an interval covers: the given words, or nothing in a simulation."""
        return coverage(self.terms.simulated, said)

    @property
    def odds(self) -> str:
        """Say how certain the intervals are."""
        return f"with probability at least {show.percent(self.plan.confidence)}"

    @property
    def target(self) -> str:
        """Say what the true values of the answers are means over."""
        return self._words(self.scope)

    def _words(self, scope: Scope) -> str:
        mechanism = self.plan.mechanism
        every = mechanism.own and mechanism.exam_rows is None  # all rows here are used to confirm
        return scope.words(self.engine.rows, dealt=mechanism.shuffles and not every)

    def declare(self, scope: Scope) -> None:
        """Declare who holds the features, for all analysts; refuse if another holdout has declared otherwise."""
        with self._declaring:
            self.scope = self.scope.joined(scope)

    def spent(self, analyst: str) -> Spent:
        """Return what this analyst has spent, and the caps."""
        return self.ledger.spent(self.terms, analyst)

    def left(self, analyst: str) -> int:
        """Return the number of full-price answers left for this analyst."""
        return self.left_of(self.spent(analyst), analyst)

    def left_of(self, spent: Spent, analyst: str) -> int:
        """Return the same, given what was spent; 0 if too few fresh rows are left for a round of the planned size."""
        batch = self.plan.mechanism.batch
        if batch is not None and self.ledger.rows_left(self.terms, analyst) < batch:
            return 0
        return spent.affordable(self.plan.charge, self.plan.mechanism.row_charge)

    def check_open(self) -> None:
        """Refuse to continue once the desk is closed."""
        if self.closed:
            raise GuardClosed("this guard is closed; open the data again (nothing is lost).")
        self._check_process()

    def _check_process(self) -> None:
        if os.getpid() != self._process:  # there are no engine threads here: a question would be paid for, then hang
            raise GuardClosed(
                "this guard was opened before a fork; open the data again in this process (both share one budget)."
            )

    def close(self) -> None:
        """Free the engine and, unless it was passed in, the ledger. Idempotent; nothing is lost.

        Answers in progress in other threads are finished first.
        """
        self.closed = True
        # A forked process has none of the other threads, and the callers this thread serves would wait for it.
        while os.getpid() == self._process and self._at_work.others and not self._line.mine:
            time.sleep(_PATIENCE)
        try:
            self.engine.close()
            if self.development is not None:
                self.development.close()
        finally:
            if self._owns_ledger:
                self.ledger.close()
