"""The guard: a dataset, a plan, a ledger. The one stateful object."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from afresh import display, noise
from afresh.answer import Answer, Budget, Interval, Record, Transcript
from afresh.errors import DataError, GuardClosed, InvalidArgument, PlanMismatch, QueryError
from afresh.mechanisms.base import TYPICAL_MEANS
from afresh.plan import FEWEST_ROWS, Plan, Wishes, check_wishes, plan

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.ledger import Entry, Ledger, Question, Terms
    from afresh.queries.asked import Asked
    from afresh.queries.query import Query
    from afresh.queries.tree import Type

DEFAULT_QUESTIONS = 100
DEFAULT_CONFIDENCE = 0.95


def open(  # the name a newcomer expects: afresh.open
    data: Any,
    questions: int | None = None,
    confidence: float | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    method: str | None = None,
    *,
    table: str | None = None,
    must_exist: bool = False,
    simulation_seed: int | None = None,
    _check: Callable[[Mapping[str, Type | None]], object] | None = None,
) -> Guard:
    """Put a guard before a dataset: a Parquet, CSV or DuckDB file, a pandas, Polars, Arrow or Ibis table, a database.

    Tables of Postgres ("postgresql://user@host/database" and `table`) and of Spark (a DataFrame, or a session and
    `table`) are read where they are, and may not change while they are open.

    The first opening fixes the plan for good: `questions` (default 100), `confidence` (default 0.95) and
    `method` (default: the narrowest). Later openings of the same content, under whatever name or encoding, find
    it in the ledger; they may leave these out, and are refused if they say otherwise.

    The guarantee needs rows that are independent draws from one population: duplicated or clustered rows
    void it. So does anything the analyst learns about the rows by another way. It is not a privacy guarantee.

    `table` names the table of a DuckDB file that holds several, or of a database. `must_exist` refuses data that were
    never opened before, instead of fixing a plan for them. `simulation_seed` makes the noise predictable: the
    answers promise nothing and say so, no ledger is kept, and data that have a guard of their own are refused.
    Simulate on data you make, not on rows you mean to guard later: what a simulation shows of them nobody has paid for.
    """
    from afresh.engines.opening import open_engine  # on demand: `import afresh` stays fast

    wanted = check_wishes(questions, confidence, method)
    seed = None if simulation_seed is None else _check_seed(simulation_seed, ledger)
    engine = open_engine(data, table)
    try:
        if engine.rows < FEWEST_ROWS:
            raise DataError(f"the data have {engine.rows} rows; a guard needs at least {FEWEST_ROWS}.")
        if _check is not None:
            _check(engine.schema)
        book = _open_book(ledger, must_exist, seed)
        terms = _settle(engine, book, wanted, must_exist, simulated=seed is not None)
        stored = Plan.thaw(terms.plan)
        if stored.method == "split":
            # The terms' seed is OS entropy, drawn once; a simulation must repeat itself.
            engine.deal(stored.questions, terms.seed if seed is None else f"simulation {seed}")
        draw = noise.from_entropy if seed is None else noise.from_seed(seed)
        return Guard(engine, stored, book, terms, draw, owns_ledger=book is not ledger)
    except BaseException:
        engine.close()
        raise


def _check_seed(seed: int, ledger: object) -> int:
    try:
        seed = operator.index(seed)
    except TypeError:
        raise InvalidArgument(f"simulation_seed == {seed!r}, must be a whole number.") from None
    if ledger is not None:
        raise InvalidArgument("a simulation keeps no ledger; leave out ledger= or simulation_seed=.")
    return seed


def _open_book(ledger: str | os.PathLike[str] | Ledger | None, must_exist: bool, seed: int | None) -> Ledger:
    from afresh.ledger import default_path, open_ledger

    if seed is not None:
        return open_ledger(":memory:")
    where = default_path() if ledger is None else ledger
    if must_exist and isinstance(where, str | os.PathLike) and not os.path.exists(where):
        raise DataError(f"there is no ledger at {os.fspath(where)}, so these data were never opened with it.")
    return open_ledger(where)


def _settle(engine: Engine, book: Ledger, wanted: Wishes, must_exist: bool, simulated: bool) -> Terms:
    """The terms in force: those the ledger knows, or new ones from what is wanted."""
    if simulated and _has_real_guard(engine):
        raise DataError("these data have a guard; a simulation on them would show what nobody has paid for.")
    # A simulation's ledger is its own and holds nothing else, so it needs no name for the data.
    fingerprint = "simulation" if simulated else engine.fingerprint()
    terms = book.terms(fingerprint, simulated=simulated)
    if terms is None and must_exist:
        raise DataError("these data were never opened with this ledger; ask a first question of them.")
    if terms is None:
        made = plan(
            engine.rows,
            DEFAULT_QUESTIONS if wanted.questions is None else wanted.questions,
            DEFAULT_CONFIDENCE if wanted.confidence is None else wanted.confidence,
            method=wanted.method,
        )
        terms = book.open(
            fingerprint,
            plan=made.freeze(),
            rows=made.rows,
            questions=made.questions,
            information=made.information or 0.0,
            simulated=simulated,
        )
    if differing := wanted.differing(Plan.thaw(terms.plan)):
        raise PlanMismatch(
            f"{differing} A plan is fixed when data are first opened, because changing it later would void the "
            "intervals already released. Leave these arguments out to go on with the plan in force."
        )
    return terms


def _has_real_guard(engine: Engine) -> bool:
    """Whether this user's ledger knows the data; a ledger that is not there is not made."""
    from afresh.ledger import default_path, open_ledger

    if not default_path().exists():
        return False
    book = open_ledger()
    try:
        return book.terms(engine.fingerprint()) is not None
    finally:
        book.close()


class Guard(display.Shown):
    """Stands between the analyst and the rows. Make one with `afresh.open`."""

    def __init__(
        self, engine: Engine, plan: Plan, ledger: Ledger, terms: Terms, draw: noise.Noise, *, owns_ledger: bool
    ) -> None:
        """Not for users: `afresh.open` puts the parts together."""
        self.plan = plan
        self._engine, self._ledger, self._terms, self._draw = engine, ledger, terms, draw
        self._owns_ledger, self._closed = owns_ledger, False

    @property
    def rows(self) -> int:
        """The number of rows, which is public."""
        return self._engine.rows

    @property
    def columns(self) -> dict[str, str]:
        """Column names and types, which are public."""
        return {name: type.value if type is not None else "not supported" for name, type in self._engine.schema.items()}

    def ask(
        self,
        expression: Any,
        bounds: tuple[float, float] | None = (0, 1),
        where: Any = None,
        missing: float | None = None,
    ) -> Answer:
        """The mean of a row expression, in SQL or as an Ibis expression, with an interval that holds.

        A condition gives the share of rows that satisfy it; a number is clipped to `bounds`, row by row. None
        takes the bounds from the expression, where they follow from it (CASE WHEN a THEN 5 ELSE 0 END). NULL
        counts as false; NULL, NaN and infinite numbers count as `missing` (default: the lower bound). `where` asks
        for the mean within the rows that satisfy it, from two charged answers. A question asked before is free.
        """
        return self.ask_many([{"expression": expression, "bounds": bounds, "where": where, "missing": missing}])[0]

    def ask_many(self, questions: Iterable[Any]) -> list[Answer]:
        """Answer a list in one scan: expressions, or mappings of `ask`'s arguments. All are charged, or none."""
        from afresh.queries.asked import make_asked  # on demand: `import afresh` stays fast

        self._check_open()
        if isinstance(questions, str | bytes | Mapping) or not isinstance(questions, Iterable):
            raise QueryError(f"ask_many takes a list of questions, not a {type(questions).__name__}; ask takes one.")
        asked = [make_asked(question, self._engine.schema) for question in questions]
        queries = {query.digest: query for one in asked for query in one.queries}
        self._engine.check_unchanged()
        reserved = self._ledger.reserve(self._terms, [self._question(q) for q in queries.values()])
        entries = {entry.digest: entry for entry in reserved}
        paid = {entry.digest for entry in reserved if entry.new}
        if pending := [entry for entry in reserved if entry.released is None]:
            # Reserved stays charged if the engine fails, whatever the rows; asking again completes it.
            entries.update((entry.digest, entry) for entry in self._answer(pending, queries))
        spent = self._ledger.spent(self._terms)[0]
        answers = []
        for one in asked:
            own = [entries[query.digest] for query in one.queries]
            charged = [entry for entry in own if entry.digest in paid]
            paid.difference_update(entry.digest for entry in charged)  # the first of two equal questions pays
            answers.append(self._build(one, own, charged, spent))
        return answers

    def _question(self, query: Query) -> Question:
        from afresh.ledger import Question

        detail = {"bounds": query.bounds, "missing": query.missing, "binary": query.binary}
        return Question(query.digest, query.text, json.dumps(detail), self.plan.charge)

    def _answer(self, pending: list[Entry], queries: Mapping[str, Query]) -> list[Entry]:
        """Evaluate in one scan, add noise, record. Only what the ledger returns may be released."""
        blocks = [entry.number - 1 for entry in pending] if self.plan.method == "split" else None
        moments = self._engine.moments([queries[entry.digest] for entry in pending], blocks)
        release = self.plan.mechanism.release
        return self._ledger.record_many(
            self._terms,
            [(entry, release(m, self._draw(entry.number))) for entry, m in zip(pending, moments, strict=True)],
        )

    def _read(self, entry: Entry, binary: bool) -> tuple[float, Interval]:
        """Value and interval of a released number, on [0, 1]: functions of it and public constants alone."""
        assert entry.released is not None
        mechanism = self.plan.mechanism
        return mechanism.value(entry.released), Interval(*mechanism.interval(entry.released, binary=binary))

    def _build(self, asked: Asked, entries: list[Entry], charged: list[Entry], spent: int) -> Answer:
        read = [self._read(entry, query.binary) for entry, query in zip(entries, asked.queries, strict=True)]
        value, interval = read[0] if asked.where is None else _within_group(*read)
        interval = interval.rescaled(asked.bounds)
        return Answer(
            question=asked.question,
            where=asked.where,
            bounds=asked.bounds,
            value=_rescaled(value, asked.bounds, interval),
            interval=interval,
            confidence=self.plan.confidence,
            covers=self._covers(asked),
            missing=asked.about_missing,
            method=self.plan.method,
            charged=len(charged),
            charged_information=sum(entry.charge for entry in charged),
            left=self.plan.questions - spent,
            simulated=self._terms.simulated,
        )

    def _covers(self, asked: Asked) -> str:
        if self._terms.simulated:
            return "It covers nothing: the noise came from a seed, so that anyone could subtract it."
        return (
            f"It covers {asked.about_value}, in the population the {self.rows:,} rows were drawn from. All "
            f"answers of this guard, up to {self.plan.questions:,}, hold at once with probability at least "
            f"{display.percent(self.plan.confidence)}, however the questions were chosen."
        )

    @property
    def budget(self) -> Budget:
        """What was spent, what is left, and what an answer is worth."""
        self._check_open()
        spent, information = self._ledger.spent(self._terms)
        return Budget(
            questions=self.plan.questions,
            spent=spent,
            information=self.plan.information,
            spent_information=information,
            confidence=self.plan.confidence,
            method=self.plan.method,
            half_width={mean: self.plan.half_width(mean) for mean in TYPICAL_MEANS},
            simulated=self._terms.simulated,
        )

    @property
    def transcript(self) -> Transcript:
        """Everything this guard has released, by whichever process, in order."""
        self._check_open()
        records = tuple(map(self._record, self._ledger.entries(self._terms)))
        return Transcript(records, self.plan.confidence, self._terms.simulated)

    def _record(self, entry: Entry) -> Record:
        value = low = high = None
        if entry.released is not None:
            detail = json.loads(entry.detail)
            bounds = tuple(detail["bounds"])
            read, interval = self._read(entry, detail["binary"])
            interval = interval.rescaled(bounds)
            value, low, high = _rescaled(read, bounds, interval), interval.low, interval.high
        return Record(entry.number, entry.text, value, low, high, entry.charge, entry.reserved_at.isoformat())

    def close(self) -> None:
        """Free the engine and, unless it was passed in, the ledger. Idempotent; nothing is lost."""
        self._closed = True
        self._engine.close()
        if self._owns_ledger:
            self._ledger.close()

    def _check_open(self) -> None:
        if self._closed:
            raise GuardClosed("this guard is closed; open the data again, nothing is lost.")

    def __enter__(self) -> Self:
        """A guard is its own context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """One line."""
        if self._closed:
            return f"Guard({self.rows:,} rows, closed)"
        budget, mark = self.budget, ", simulated" if self._terms.simulated else ""
        left = f"{budget.left:,} of {budget.questions:,} answers left"
        return f"Guard({self.rows:,} rows, {left}, {self.plan.method}{mark})"

    def __reduce__(self) -> NoReturn:
        """A guard holds connections, so it stays where it is."""
        raise TypeError("a guard cannot be pickled; open the data in the other process, they share one budget.")

    def _blocks(self) -> list[display.Block]:
        columns = ", ".join(f"{name} ({kind})" for name, kind in self.columns.items())
        facts = {"rows": f"{self.rows:,}", "columns": columns}
        return [display.Title("Guard"), display.Facts(facts), *self.budget._blocks()]


def _rescaled(value: float, bounds: tuple[float, float], interval: Interval) -> float:
    """A value on [0, 1] on the scale of its question, kept inside its interval whatever the rounding."""
    return min(max(bounds[0] + (bounds[1] - bounds[0]) * value, interval.low), interval.high)


def _within_group(inside: tuple[float, Interval], outside: tuple[float, Interval]) -> tuple[float, Interval]:
    """Section 12: E[A | B] from A 1_B and (1 - A) 1_B. 0/0 says nothing: [0, 1]."""
    (v1, n1), (v0, n0) = inside, outside
    low = n1.low / (n1.low + n0.high) if n1.low + n0.high > 0 else 0.0
    high = n1.high / (n1.high + n0.low) if n1.high + n0.low > 0 else 1.0
    value = v1 / (v1 + v0) if v1 + v0 > 0 else (low + high) / 2
    return value, Interval(low, high)
