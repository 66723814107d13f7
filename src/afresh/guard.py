"""The guard: a dataset, a plan, a ledger. The one stateful object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from afresh import display, noise
from afresh.answer import Answer, Budget, Coarser, Interval, Transcript, coverage
from afresh.errors import GuardClosed, InvalidArgument, QueryError
from afresh.mechanisms.base import TYPICAL_MEANS, coarseness_for
from afresh.outside import convert, spent_by
from afresh.plan import Plan
from afresh.reading import Reading, record_of, rescaled
from afresh.releasing import Release, Wanted
from afresh.scope import Scope

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.evaluation import AnyAsked
    from afresh.ledger import Entry, Ledger, Spent, Terms
    from afresh.statistics.base import Measures, Statistic


_COARSER = (2**0.5, 2.0, 4.0)  # what a budget shows beside the full price


class Guard(display.Shown):
    """Stands between the analyst and the rows. Make one with `afresh.open`."""

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        ledger: Ledger,
        terms: Terms,
        draw: noise.Noise,
        *,
        analyst: str,
        owns_ledger: bool,
    ) -> None:
        """Not for users: `afresh.open` puts the parts together."""
        self.plan, self.analyst = plan, analyst
        self._engine, self._ledger, self._terms, self._draw = engine, ledger, terms, draw
        self._owns_ledger, self._closed = owns_ledger, False
        self._scope = Scope()  # a holdout declares more

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
        bounds: tuple[float, float] | None = None,
        where: Any = None,
        missing: float | None = None,
        precision: float | None = None,
        guess: tuple[float, float] | None = None,
    ) -> Answer:
        """The mean of a row expression, in SQL or as an Ibis expression, with an interval that holds.

        A condition gives the share of rows that satisfy it; a number is clipped to `bounds`, row by row, which may be
        left out where they follow from the expression (CASE WHEN a THEN 5 ELSE 0 END). NULL counts as false; NULL, NaN
        and infinite numbers count as `missing` (default: the lower bound). `where` asks for the mean within the rows
        that satisfy it, from two charged answers. A question asked before is free.

        `precision` is a half-width, in the answer's units, that is enough: the answer then has more noise and a lower
        charge. Within a group it is meant for the two charged answers, as parts of all rows. `guess`, with
        method="guess-and-check" only, is a value and a half-width of your own, from training data for example: if the
        rows that check agree, they are the answer, and if not you get a coarser one.
        """
        arguments = {"bounds": bounds, "where": where, "missing": missing, "precision": precision, "guess": guess}
        return self.ask_many([{"expression": expression, **arguments}])[0]

    def ask_many(self, questions: Iterable[Any]) -> list[Answer]:
        """Answer a list in one scan: expressions, or mappings of `ask`'s arguments. All are charged, or none."""
        from afresh.queries.asked import make_asked  # on demand: `import afresh` stays fast

        self._check_open()
        if isinstance(questions, str | bytes | Mapping) or not isinstance(questions, Iterable):
            raise QueryError(f"ask_many takes a list of questions, not a {type(questions).__name__}; ask takes one.")
        return self._answer_all([make_asked(question, self._engine.schema) for question in questions])

    def _answer_all(self, asked: Sequence[AnyAsked], later: int = 0) -> list[Answer]:
        """Answer questions that were checked, if as many `later` ones can be paid as well."""
        self._check_open()
        self._scope.check(query for one in asked for query in one.queries)
        wanted = [
            Wanted(query, self._coarseness(one.precision), self._guess(one.guess))
            for one in asked
            for query in one.queries
        ]
        readings = iter(self._release(wanted, later))
        left = self._left()
        paid: set[int] = set()
        answers = []
        for one in asked:
            own = [next(readings) for _ in one.queries]
            # The first of two equal questions pays.
            charged = [entry for entry, _, _ in own if entry.new and entry.number not in paid]
            paid.update(entry.number for entry in charged)
            answers.append(self._build(one, own, charged, left))
        return answers

    def measure(self, statistic: Statistic) -> Answer | Measures:
        """More than a mean: a quantile, a variance, a histogram, ..., at no more than `statistic.price` answers."""
        from afresh.statistics.base import Asker

        self._check_open()
        if isinstance(statistic, type) or not callable(getattr(statistic, "measure", None)):
            raise InvalidArgument(f"statistic == {statistic!r}, must be one of afresh.statistics that needs no model.")
        return statistic.measure(Asker(self))

    def _coarseness(self, precision: float | None) -> float:
        """How many times the plan's noise is still enough for a half-width on [0, 1]."""
        return 1.0 if precision is None else coarseness_for(self.plan.mechanism, precision)

    def _guess(self, guess: tuple[float, float] | None) -> tuple[float, float] | None:
        if guess is not None and self.plan.method != "guess-and-check":
            raise InvalidArgument(
                f"a guess can be checked with method='guess-and-check' only, and these data were opened with "
                f"{self.plan.method!r}; leave it out."
            )
        return guess

    def _release(self, wanted: Sequence[Wanted], later: int = 0) -> list[Reading]:
        release = Release(self._engine, self.plan, self._ledger, self._terms, self._draw)
        return release(wanted, self.analyst, later)

    def _build(self, asked: AnyAsked, readings: list[Reading], charged: list[Entry], left: int) -> Answer:
        _, value, interval = readings[0]
        if asked.where is not None:
            value, interval = _within_group(*readings)
        interval = interval.rescaled(asked.bounds)
        return Answer(
            question=asked.question,
            where=asked.where,
            bounds=asked.bounds,
            value=rescaled(value, asked.bounds, interval),
            interval=interval,
            confidence=self.plan.confidence,
            covers=self._covers(asked),
            missing=asked.about_missing,
            method=self.plan.method,
            charged=len(charged),
            charged_information=sum(entry.charge for entry in charged),
            left=left,
            simulated=self._terms.simulated,
        )

    @property
    def _target(self) -> str:
        """What the truths of its answers are means over, in words."""
        return self._scope.words(self.rows, dealt=self.plan.mechanism.dealt > 0)

    def _covers(self, asked: AnyAsked) -> str:
        return coverage(
            self._terms.simulated,
            f"It covers {asked.about_value}, {self._target}. All answers of this guard, up to "
            f"{self.plan.answers:,}, hold at once with probability at least "
            f"{display.percent(self.plan.confidence)}, however the questions were chosen.",
        )

    def charge(
        self,
        revealed: str,
        *,
        kl: float | None = None,
        zcdp: float | None = None,
        pure_dp: float | None = None,
        noise_sd: float | None = None,
        study: object = None,
        rows: int | None = None,
        count: int = 1,
    ) -> Budget:
        """Record what was revealed about the rows outside of this guard, so that later intervals stay honest.

        `revealed` says in words what it was. One of the others says how it was protected: `kl`, a KL stability
        (nats, between datasets that differ in one row), `zcdp`, a rho of zero-concentrated differential privacy,
        `pure_dp`, an epsilon of pure differential privacy, `noise_sd`, the standard deviation of Gaussian noise on a
        published mean of values in [0, 1], `study`, the receipt of another guard over some of the rows that is finished
        (a document or its file). `rows` says how many of the rows were used, if not all, and `count` how many such
        releases there were. The same words and numbers again are not charged again.

        `calibrated` admits all of these, `stabilized` only noise_sd, `split` none.
        """
        self._check_open()
        if not isinstance(revealed, str):
            raise InvalidArgument(f"revealed == {revealed!r}, must be words that say what was revealed.")
        nats = None
        if study is not None:
            head, nats = spent_by(study)
            revealed = f"{revealed} (receipt {head})"
        basis = {"kl": kl, "zcdp": zcdp, "pure_dp": pure_dp, "noise_sd": noise_sd, "study": nats}
        self._ledger.charge(self._terms, convert(self.plan, revealed, basis, rows, count), self.analyst)
        return self.budget

    def divide(self, shares: Mapping[str, int]) -> Budget:
        """Divide the budget: how many full-price answers each named analyst may have in all; the others share the rest.

        A later division replaces it, within the whole and what everybody has spent. Names are taken on trust: whoever
        can write the ledger can ask under any name. The guarantee stays the whole's: all intervals hold at once.
        """
        self._check_open()
        if not isinstance(shares, Mapping):
            raise InvalidArgument(f"shares == {shares!r}, must be a mapping of names to numbers of answers.")
        self._ledger.divide(self._terms, shares, self.analyst)
        return self.budget

    @property
    def budget(self) -> Budget:
        """What was spent, what is left for this analyst, and what an answer is worth."""
        self._check_open()
        spent = self._ledger.spent(self._terms, self.analyst)
        shares = self._ledger.shares(self._terms)
        return Budget(
            questions=self.plan.questions,
            answers=spent.cap_answers,
            spent=spent.answers,
            left=spent.affordable(self.plan.charge, self.plan.mechanism.row_charge),
            information=None if self.plan.information is None else spent.cap_information,
            spent_information=spent.information,
            outside_information=spent.outside,
            confidence=self.plan.confidence,
            method=self.plan.method,
            half_width={mean: self.plan.half_width(mean) for mean in TYPICAL_MEANS},
            coarser=tuple(self._coarser(spent)),
            analyst=self.analyst if shares else None,
            shares=shares,
            simulated=self._terms.simulated,
        )

    def _left(self) -> int:
        spent = self._ledger.spent(self._terms, self.analyst)
        return spent.affordable(self.plan.charge, self.plan.mechanism.row_charge)

    def _coarser(self, spent: Spent) -> Iterable[Coarser]:
        if self.plan.answers > self.plan.questions:
            for factor in _COARSER:
                coarse = self.plan.at(factor)
                left = spent.affordable(coarse.charge, coarse.row_charge)
                yield Coarser(coarse.half_width(0.5), coarse.charge / self.plan.charge, left)

    @property
    def transcript(self) -> Transcript:
        """Everything this guard has released, by whichever process, in order."""
        self._check_open()
        records = tuple(record_of(self.plan, entry) for entry in self._ledger.entries(self._terms))
        return Transcript(records, self.plan.confidence, self._terms.simulated)

    def receipt(self) -> dict[str, Any]:
        """Plan, questions, answers, intervals, charges and chain as one JSON-ready document, for `afresh verify`."""
        from afresh.receipts import make_receipt

        self._check_open()
        return make_receipt(self.plan, self._ledger.chain(self._terms))

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


def _within_group(inside: Reading, outside: Reading) -> tuple[float, Interval]:
    """Section 12: E[A | B] from A 1_B and (1 - A) 1_B. 0/0 says nothing: [0, 1]."""
    (_, v1, n1), (_, v0, n0) = inside, outside
    low = n1.low / (n1.low + n0.high) if n1.low + n0.high > 0 else 0.0
    high = n1.high / (n1.high + n0.low) if n1.high + n0.low > 0 else 1.0
    value = v1 / (v1 + v0) if v1 + v0 > 0 else (low + high) / 2
    return value, Interval(low, high)
