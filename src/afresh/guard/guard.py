"""The guard: a dataset, a plan, a ledger. The one stateful object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from afresh import checks
from afresh.errors import GuardClosed, InvalidArgument, QueryError
from afresh.guard import noise
from afresh.guard.desk import Release, Wanted
from afresh.guard.outside import convert
from afresh.guard.scope import Scope
from afresh.ledger.base import Statement
from afresh.mechanisms.base import TYPICAL_MEANS, coarseness_for
from afresh.planning.plan import Plan
from afresh.results import show
from afresh.results.answer import Answer, Interval, coverage
from afresh.results.budget import Budget, Coarser
from afresh.results.reading import Reading
from afresh.results.rules import derive as derive_number
from afresh.results.rules import tells
from afresh.results.transcript import Transcript, transcribed

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.guard.evaluate import AnyAsked
    from afresh.ledger import Entry, Ledger, Spent, Terms
    from afresh.results.price import Price
    from afresh.statistics.base import Measures, Statistic


_COARSER = (2**0.5, 2.0, 4.0)  # what a budget shows beside the full price


class Guard(show.Shown):
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
        left out where they follow from the expression (CASE WHEN a THEN 5 ELSE 0 END). `where` asks for the mean within
        the rows that satisfy it. A question asked before is free.

        Rows where a number is NULL, NaN or infinite are left out, as by AVG in SQL or mean() in pandas; with `missing`
        they count as that number. Of a condition NULL counts as false, with missing=1 as true.

        A mean over some of the rows, because of `where` or of values that may be missing, is made of two answers, and
        both are charged; `missing` keeps it at one, as does a number that always has a value (coalesce(x, 0), CASE with
        an ELSE). `price` says it before.

        `precision` is a half-width, in the answer's units, that is enough: the answer then has more noise and a lower
        charge. Of a mean over some of the rows it is meant for the two charged answers, as parts of all rows. `guess`,
        with method="guess-and-check" only, is a value and a half-width of your own, from training data for example: if
        the rows that check agree, they are the answer, and if not you get a coarser one.
        """
        arguments = {"bounds": bounds, "where": where, "missing": missing, "precision": precision, "guess": guess}
        return self.ask_many([{"expression": expression, **arguments}])[0]

    def price(
        self,
        expression: Any,
        bounds: tuple[float, float] | None = None,
        where: Any = None,
        missing: float | None = None,
        precision: float | None = None,
        guess: tuple[float, float] | None = None,
        *,
        mean: float | None = None,
        share: float = 1.0,
    ) -> Price:
        """What `ask` would charge for the same arguments, and the half-width to expect. Free, and touches no row.

        The half-width is that of an answer that reads `mean` (default: the middle of the bounds) and, of a mean over
        some of the rows, where these are a `share` of all. It takes a statistic as well; these cost at most so much.
        """
        from afresh.results.price import price_of_question, price_of_statistic

        self._check_open()
        if callable(getattr(expression, "measure", None)) and not isinstance(expression, type):
            return price_of_statistic(self, expression)
        arguments = {"bounds": bounds, "where": where, "missing": missing, "precision": precision, "guess": guess}
        return price_of_question(self, {"expression": expression, **arguments}, mean, share)

    def _wanted(self, asked: AnyAsked, *, own: bool = True) -> list[Wanted]:
        """What a question needs to be released."""
        coarseness, guess = self._coarseness(asked.precision), self._guess(asked.guess)
        return [Wanted(query, coarseness, guess, own and len(asked.queries) == 1) for query in asked.queries]

    def ask_many(self, questions: Iterable[Any]) -> list[Answer]:
        """Answer a list in one scan: expressions, or mappings of `ask`'s arguments. All are charged, or none."""
        from afresh.queries.asked import make_asked  # on demand: `import afresh` stays fast

        self._check_open()
        if isinstance(questions, str | bytes | Mapping) or (listed := checks.iterated(questions)) is None:
            raise QueryError(f"ask_many takes a list of questions, not a {type(questions).__name__}; ask takes one.")
        return self._answer_all([make_asked(question, self._engine.schema) for question in listed])

    def _answer_all(self, asked: Sequence[AnyAsked], later: int = 0) -> list[Answer]:
        """Answer questions that were checked, if as many `later` ones can be paid as well."""
        return [answer for answer, _ in self._answered(asked, later)]

    def _answered(
        self, asked: Sequence[AnyAsked], later: int = 0, *, own: bool = True
    ) -> list[tuple[Answer, list[Reading]]]:
        """The same, each with what was released for it; not `own` if they are parts of what will be stated."""
        self._check_open()
        self._scope.check(query for one in asked for query in one.queries)
        wanted = [part for one in asked for part in self._wanted(one, own=own)]

        def derive(readings: Sequence[Reading]) -> list[Statement]:
            return [
                statement
                for one, parts in _dealt(asked, readings)
                if own and (statement := self._statement(one, parts)) is not None
            ]

        readings = self._release(wanted, later, derive)
        stated = iter(self._record(derive(readings)) if own else ())
        left = self._left()
        paid: set[int] = set()
        answers = []
        for one, parts in _dealt(asked, readings):
            statement = next(stated) if own and one.rule else self._statement(one, parts)
            # The first of two equal questions pays.
            charged = [part.entry for part in parts if part.entry.new and part.entry.number not in paid]
            paid.update(entry.number for entry in charged)
            answers.append((self._build(one, parts, statement, charged, left), parts))
        return answers

    def _statement(self, asked: AnyAsked, parts: Sequence[Reading]) -> Statement | None:
        """What follows from the parts of a question that has several."""
        return None if asked.rule is None else self._stated(asked.text, asked.rule, {}, parts, asked.bounds)

    def _stated(
        self, text: str, rule: str, parameters: Mapping[str, Any], parts: Sequence[Reading], bounds: tuple[float, float]
    ) -> Statement:
        numbers = tuple(part.entry.number for part in parts)
        found = derive_number(rule, parts, parameters, bounds, self.plan)
        return Statement(text, rule, parameters, numbers, bounds, *found)

    def _record(self, statements: Sequence[Statement]) -> list[Statement]:
        """Record numbers that follow from answers; what is returned is what may be told."""
        return self._ledger.state(self._terms, statements, self.analyst)

    def measure(self, statistic: Statistic) -> Answer | Measures:
        """More than a mean: a quantile, a variance, a histogram, ..., at no more than `statistic.price` answers."""
        from afresh.statistics.base import Asker

        self._check_open()
        if isinstance(statistic, type) or not callable(getattr(statistic, "measure", None)):
            raise checks.wrong("statistic", statistic, "one of afresh.statistics that needs no model")
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

    def _release(
        self,
        wanted: Sequence[Wanted],
        later: int = 0,
        derive: Callable[[Sequence[Reading]], list[Statement]] | None = None,
    ) -> list[Reading]:
        return self._releasing(wanted, self.analyst, later, derive)

    @property
    def _releasing(self) -> Release:
        return Release(self._engine, self.plan, self._ledger, self._terms, self._draw)

    def _build(
        self, asked: AnyAsked, parts: list[Reading], statement: Statement | None, charged: list[Entry], left: int
    ) -> Answer:
        value, low, high = parts[0].own if statement is None else (statement.value, statement.low, statement.high)
        return Answer(
            question=asked.question,
            where=asked.where,
            bounds=asked.bounds,
            value=value,
            interval=Interval(low, high),
            confidence=self.plan.confidence,
            covers=self._covers(asked),
            missing=asked.about_missing,
            method=self.plan.method,
            charged=len(charged),
            charged_information=sum(entry.charge for entry in charged),
            left=left,
            simulated=self._terms.simulated,
            told=tells(asked.rule, low, high, asked.bounds),
            confirmed=self._confirmed(parts),
            fixes=self.plan.in_words if any(entry.number == 1 for entry in charged) else None,
        )

    def _confirmed(self, parts: Sequence[Reading]) -> bool | None:
        """Whether the checks of guesses passed; None where nothing is guessed."""
        found = [
            self.plan.mechanism.confirmed(part.entry.outcome.released)
            for part in parts
            if part.entry.outcome is not None
        ]
        return None if None in found else all(found)

    @property
    def _target(self) -> str:
        """What the truths of its answers are means over, in words."""
        return self._scope.words(self.rows, dealt=self.plan.mechanism.dealt > 0)

    def _covers(self, asked: AnyAsked) -> str:
        return coverage(
            self._terms.simulated,
            f"Estimates {asked.about_value}, {self._target}. All answers of this guard, up to "
            f"{self.plan.answers:,}, hold at once with probability at least "
            f"{show.percent(self.plan.confidence)}, however the questions were chosen.",
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

        `calibrated` admits all of these, `stabilized` only noise_sd, the others none.
        """
        self._check_open()
        checks.text("revealed", revealed, "words that say what was revealed, for the record")
        nats = None
        if study is not None:
            from afresh.receipts.study import spent_by

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
            raise checks.wrong("shares", shares, "a mapping of names to numbers of answers")
        divided = {
            checks.text("analyst", name, "a name"): checks.whole(f"the share of {checks.shown(name)}", share, 0)
            for name, share in shares.items()
        }
        self._ledger.divide(self._terms, divided, self.analyst)
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
            half_width={mean: self._present_half_width(mean) for mean in TYPICAL_MEANS},
            proviso=self.plan.mechanism.proviso,
            coarser=tuple(self._coarser(spent)),
            analyst=self.analyst if shares else None,
            shares=shares,
            simulated=self._terms.simulated,
        )

    def _present_half_width(self, mean: float) -> float:
        """What the next answer is worth, after all that was released."""
        return self.plan.mechanism.present_half_width(mean, self._ledger.released(self._terms))

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
        entries, stated = self._ledger.entries(self._terms), self._ledger.stated(self._terms)
        return Transcript(transcribed(entries, stated), self.plan.confidence, self._terms.simulated)

    def receipt(self) -> dict[str, Any]:
        """Plan, questions, answers, intervals, charges and chain as one JSON-ready document, for `afresh verify`."""
        from afresh.receipts import make_receipt

        self._check_open()
        return make_receipt(self._ledger.chain(self._terms))

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

    def _blocks(self) -> list[show.Block]:
        columns = ", ".join(f"{name} ({kind})" for name, kind in self.columns.items())
        facts = {"rows": f"{self.rows:,}", "columns": columns}
        return [show.Title("Guard"), show.Facts(facts), *self.budget._blocks()]


def _dealt(asked: Sequence[AnyAsked], readings: Sequence[Reading]) -> Iterator[tuple[AnyAsked, list[Reading]]]:
    """Every question with what was released for it."""
    rest = iter(readings)
    for one in asked:
        yield one, [next(rest) for _ in one.queries]
