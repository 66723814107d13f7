"""The guard: a dataset, a plan, a ledger. The one stateful object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from afresh import display, noise
from afresh.answer import Answer, Budget, Interval, Record, Transcript
from afresh.errors import DataError, PlanMismatch
from afresh.mechanisms.base import TYPICAL_MEANS
from afresh.plan import FEWEST_ROWS, Plan, plan

if TYPE_CHECKING:
    import os

    from afresh.engines.base import Engine
    from afresh.ledger import Entry, Ledger, Question, Terms
    from afresh.queries.asked import Asked
    from afresh.queries.query import Query

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
) -> Guard:
    """Put a guard before a dataset: a Parquet, CSV or DuckDB file, or a pandas, Polars, Arrow or Ibis table.

    The first opening fixes the plan for good: `questions` (default 100), `confidence` (default 0.95) and
    `method` (default: the narrowest). Later openings of the same content, under whatever name or encoding, find
    it in the ledger; they may leave these out, and are refused if they say otherwise.

    The guarantee needs rows that are independent draws from one population: duplicated or clustered rows
    void it. So does anything the analyst learns about the rows by another way. It is not a privacy guarantee.

    `table` names the table of a DuckDB file that holds several. `must_exist` refuses data that were never opened
    before, instead of fixing a plan for them. `simulation_seed` makes the noise predictable and
    keeps the guard apart from real ones: its answers promise nothing, and say so.
    """
    from afresh.engines.opening import open_engine  # on demand: `import afresh` stays fast
    from afresh.ledger import open_ledger

    simulated = simulation_seed is not None
    engine = open_engine(data, table)
    try:
        if engine.rows < FEWEST_ROWS:
            raise DataError(f"the data have {engine.rows} rows; a guard needs at least {FEWEST_ROWS}.")
        book = open_ledger(":memory:" if simulated and ledger is None else ledger)
        fingerprint = engine.fingerprint()
        terms = book.terms(fingerprint, simulated=simulated)
        if terms is None and must_exist:
            raise DataError("these data were never opened with this ledger; ask a first question of them.")
        if terms is None:
            made = plan(
                engine.rows,
                DEFAULT_QUESTIONS if questions is None else questions,
                DEFAULT_CONFIDENCE if confidence is None else confidence,
                method=method,
            )
            terms = book.open(
                fingerprint,
                plan=made.freeze(),
                rows=made.rows,
                questions=made.questions,
                information=made.information or 0.0,
                simulated=simulated,
            )
        stored = Plan.thaw(terms.plan)
        _check_same_plan(stored, questions, confidence, method)
        if stored.method == "split":
            # The terms' seed is OS entropy, drawn once; a simulation must repeat itself.
            engine.deal(stored.questions, terms.seed if simulation_seed is None else f"simulation {simulation_seed}")
        draw = noise.from_entropy if simulation_seed is None else noise.from_seed(simulation_seed)
        return Guard(engine, stored, book, terms, draw)
    except BaseException:
        engine.close()
        raise


def _check_same_plan(stored: Plan, questions: int | None, confidence: float | None, method: str | None) -> None:
    wanted = {"questions": questions, "confidence": confidence, "method": method}
    differing = {name: value for name, value in wanted.items() if value is not None and value != getattr(stored, name)}
    if differing:
        said = ", ".join(f"{name}={value!r}" for name, value in differing.items())
        kept = ", ".join(f"{name}={getattr(stored, name)!r}" for name in wanted)
        raise PlanMismatch(
            f"these data were first opened with {kept}, and now with {said}. A plan is fixed before the data are "
            "seen, because changing it later would void the intervals already released. Leave these arguments "
            "out to go on with the plan in force."
        )


class Guard(display.Shown):
    """Stands between the analyst and the rows. Make one with `afresh.open`."""

    def __init__(self, engine: Engine, plan: Plan, ledger: Ledger, terms: Terms, draw: noise.Noise) -> None:
        """Not for users: `afresh.open` puts the parts together."""
        self.plan = plan
        self._engine, self._ledger, self._terms, self._draw = engine, ledger, terms, draw

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
        expression: str,
        bounds: tuple[float, float] = (0, 1),
        where: str | None = None,
        missing: float | None = None,
    ) -> Answer:
        """The mean of a row expression, written in SQL, with an interval that holds.

        A condition gives the share of rows that satisfy it; a number is clipped to `bounds`, row by row. NULL
        counts as false; NULL, NaN and infinite numbers count as `missing` (default: the lower bound). `where` asks
        for the mean within the rows that satisfy it, from two charged answers. A question asked before is free.
        """
        return self.ask_many([{"expression": expression, "bounds": bounds, "where": where, "missing": missing}])[0]

    def ask_many(self, questions: Iterable[str | Mapping[str, Any]]) -> list[Answer]:
        """Answer a list in one scan: expressions, or mappings of `ask`'s arguments. All are charged, or none."""
        from afresh.queries.asked import make_asked  # on demand: `import afresh` stays fast

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
        lower, upper = asked.bounds

        def scale(x: float) -> float:
            return lower + (upper - lower) * x

        return Answer(
            question=asked.question,
            where=asked.where,
            bounds=asked.bounds,
            value=scale(value),
            interval=Interval(scale(interval.low), scale(interval.high)),
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
        return (
            f"It covers {asked.about_value}, in the population the {self.rows:,} rows were drawn from. All "
            f"answers of this guard, up to {self.plan.questions:,}, hold at once with probability at least "
            f"{display.percent(self.plan.confidence)}, however the questions were chosen."
        )

    @property
    def budget(self) -> Budget:
        """What was spent, what is left, and what an answer is worth."""
        spent, information = self._ledger.spent(self._terms)
        return Budget(
            questions=self.plan.questions,
            spent=spent,
            information=self.plan.information,
            spent_information=information,
            confidence=self.plan.confidence,
            method=self.plan.method,
            half_width={mean: self.plan.half_width(mean) for mean in TYPICAL_MEANS},
        )

    @property
    def transcript(self) -> Transcript:
        """Everything this guard has released, by whichever process, in order."""
        return Transcript(tuple(map(self._record, self._ledger.entries(self._terms))), self.plan.confidence)

    def _record(self, entry: Entry) -> Record:
        value = low = high = None
        if entry.released is not None:
            detail = json.loads(entry.detail)
            lower, upper = detail["bounds"]
            read, interval = self._read(entry, detail["binary"])
            value, low, high = (lower + (upper - lower) * x for x in (read, interval.low, interval.high))
        return Record(entry.number, entry.text, value, low, high, entry.charge, entry.reserved_at.isoformat())

    def close(self) -> None:
        """Free the engine and the ledger's connections. Idempotent; nothing is lost."""
        self._engine.close()
        self._ledger.close()

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
        budget = self.budget
        return f"Guard({self.rows:,} rows, {budget.left:,} of {budget.questions:,} answers left, {self.plan.method})"

    def _blocks(self) -> list[display.Block]:
        columns = ", ".join(f"{name} ({kind})" for name, kind in self.columns.items())
        facts = {"rows": f"{self.rows:,}", "columns": columns}
        return [display.Title("Guard"), display.Facts(facts), *self.budget._blocks()]


def _within_group(inside: tuple[float, Interval], outside: tuple[float, Interval]) -> tuple[float, Interval]:
    """Section 12: E[A | B] from A 1_B and (1 - A) 1_B. 0/0 says nothing: [0, 1]."""
    (v1, n1), (v0, n0) = inside, outside
    low = n1.low / (n1.low + n0.high) if n1.low + n0.high > 0 else 0.0
    high = n1.high / (n1.high + n0.low) if n1.high + n0.low > 0 else 1.0
    value = v1 / (v1 + v0) if v1 + v0 > 0 else (low + high) / 2
    return value, Interval(low, high)
