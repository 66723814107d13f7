"""The guard: an analyst's access to a dataset. A thin layer over a desk, in one analyst's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from afresh import checks
from afresh.errors import InvalidArgument, QueryError
from afresh.guard.doors import Doors, LocalDoors, claimed
from afresh.guard.exam import check_exam
from afresh.guard.opened import KINDS
from afresh.guard.round import Round
from afresh.results import show
from afresh.results.answers import Answers
from afresh.results.closing import Closing

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.planning.plan import Plan
    from afresh.results.answer import Answer
    from afresh.results.budget import Budget
    from afresh.results.claims import Claimed
    from afresh.results.fitted import Fitted, Task
    from afresh.results.price import Price
    from afresh.results.transcript import Transcript
    from afresh.statistics.base import Measures, Statistic


class Guard(show.Shown, Closing):
    """Answers questions about rows without showing them. Make one with `afresh.open`."""

    def __init__(self, desk: Desk, analyst: str, doors: Doors | None = None) -> None:
        """Not for users: call `afresh.open`, or `for_analyst` for another name.

        `doors` lead to the desk; by default, to one in this process.
        """
        self.desk, self.analyst = desk, analyst
        self._doors: Doors = LocalDoors(desk, analyst) if doors is None else doors

    def for_analyst(self, analyst: str) -> Guard:
        """Return the same opened data under another name, for the record and for shares of a divided budget.

        It costs nothing: any number of analysts, in any number of threads, share one opened dataset. Closing one of
        these guards closes them all.

        Args:
            analyst: The name of the analyst who asks.

        Returns:
            Another guard on the same rows, plan and ledger.
        """
        name = checks.analyst(analyst)
        return Guard(self.desk, name, self._doors.named(name))

    @property
    def plan(self) -> Plan:
        """What is promised: rows, questions, confidence, method."""
        return self.desk.plan

    @property
    def rows(self) -> int:
        """The number of rows, which is public."""
        return self.desk.rows

    @property
    def columns(self) -> dict[str, str]:
        """Column names and types, which are public."""
        schema = self.desk.schema
        return {name: type.value if type is not None else "not supported" for name, type in schema.items()}

    def ask(
        self,
        expression: Any,
        bounds: tuple[float, float] | None = None,
        where: Any = None,
        missing: float | None = None,
        precision: float | None = None,
        guess: tuple[float, float] | None = None,
        about: float | None = None,
    ) -> Answer:
        """Ask for the mean of a row expression. Repeating a question is free.

        A mean over some of the rows, because of `where` or of values that may be missing, consists of two answers, and
        both are charged. `missing` keeps it at one, as does a number that always has a value (coalesce(x, 0), CASE with
        an ELSE). `price` shows the charge in advance.

        Args:
            expression: In SQL, or an Ibis expression. A condition gives the share of rows where it is true.
            bounds: Each row's number is clipped to these. Choose them without looking at the data; leave them out if
                they follow from the expression (CASE WHEN a THEN 5 ELSE 0 END).
            where: A condition: asks for the mean within the rows where it is true.
            missing: What a NULL, NaN or infinite number counts as. By default such rows are left out, as by AVG in SQL
                or mean() in pandas. In a condition NULL counts as false, or with missing=1 as true.
            precision: A half-width that is enough, in the answer's units: more noise, a lower charge. For a mean over
                some of the rows it applies to the two charged answers, as shares of all rows.
            guess: Your own value and half-width, from training data for example, if the method checks guesses: if the
                checking rows agree, they become the answer; if not, you get a coarser one.
            about: Roughly what the answer will be, with method="settled": the noise follows it, instead of a coarse
                first draw. A wrong hint makes later answers a little wider; all intervals still hold.

        Returns:
            The value, its interval, what the interval covers, and what it cost.

        Raises:
            QueryError: The question cannot be asked of these columns; nothing was charged.
            InvalidArgument: Another argument is wrong; nothing was charged.
            BudgetExhausted: It costs more than is left; nothing was charged.
            DataChanged: The rows have changed since they were opened; nothing was charged.
            EngineError: The engine failed. The question is paid for, and asking again completes it.
        """
        question = {"expression": expression, "bounds": bounds, "where": where, "missing": missing}
        return self.ask_many([{**question, "precision": precision, "guess": guess, "about": about}])[0]

    def price(
        self,
        expression: Any,
        bounds: tuple[float, float] | None = None,
        where: Any = None,
        missing: float | None = None,
        precision: float | None = None,
        guess: tuple[float, float] | None = None,
        about: float | None = None,
        *,
        mean: float | Sequence[float] | None = None,
        share: float | None = None,
        exam: int | None = None,
        deviation: float | Sequence[float] | None = None,
    ) -> Price:
        """Show what `ask` would charge for the same arguments, and the half-width to expect. Free; reads no rows.

        Args:
            expression: As in `ask`; or a statistic, for which the price is the most it can cost.
            bounds: As in `ask`.
            where: As in `ask`.
            missing: As in `ask`.
            precision: As in `ask`.
            guess: As in `ask`.
            about: As in `ask`.
            mean: The mean you expect, by default the middle of the bounds; of two numbers, one for each.
            share: For a group, the share of rows you expect in it; by default a half, a tenth and a hundredth.
            exam: Show the width to expect in the exam instead, as one of this many questions.
            deviation: The standard deviation you expect of a number; by default the largest, or that of a bell curve.

        Returns:
            The price in answers and in nats, and the half-width to expect.

        Raises:
            QueryError: The question cannot be asked of these columns.
            InvalidArgument: Another argument is wrong.
        """
        self.desk.check_open()
        arguments = {"bounds": bounds, "where": where, "missing": missing, "precision": precision, "guess": guess}
        arguments["about"] = about
        expected = {"mean": mean, "share": share, "deviation": deviation}
        if not callable(getattr(expression, "measure", None)) or isinstance(expression, type):
            return self._doors.price({"expression": expression, **arguments}, {**expected, "exam": exam})
        if any(each is not None for each in (*arguments.values(), exam)):
            raise InvalidArgument("with a statistic, price takes no more than mean=, share= and deviation=.")
        return self._doors.price_of(expression, expected)

    def ask_many(self, questions: Iterable[Any]) -> Answers:
        """Answer a list of questions in one scan. All are charged, or none.

        Args:
            questions: Expressions, or mappings of `ask`'s arguments.

        Returns:
            The answers in the same order: a list that displays as a table.

        Raises:
            QueryError: One of them cannot be asked; nothing was charged.
            BudgetExhausted: Together they cost more than is left; nothing was charged.
        """
        self.desk.check_open()
        return self.ask_checked(self.checked(questions))

    def ask_vector(
        self,
        expressions: Sequence[str] | Mapping[str, str],
        radius: float,
        centre: float | Sequence[float] = 0.0,
    ) -> Measures:
        """Ask for the means of several numbers at once, for the price of one answer. Each row is moved into a ball.

        A row outside the ball counts as the point where the line from the center to the row leaves the ball. The noise
        follows the radius and hardly depends on how many expressions there are: gradients, moments, embeddings. Methods
        that cannot release a vector charge one answer for each number; the price of
        `afresh.statistics.VectorMean(...)` says so in advance.

        Args:
            expressions: Numbers in SQL: a list, or a mapping of names to expressions.
            radius: The ball's radius, in the units the numbers share. Choose it without looking at the data.
            centre: The ball's center: one number for all coordinates, or one for each. Missing values count as it.

        Returns:
            An answer for each number, by its name or expression.

        Raises:
            QueryError: One of them cannot be asked of these columns; nothing was charged.
            InvalidArgument: The radius or center is wrong; nothing was charged.
            BudgetExhausted: It costs more than is left; nothing was charged.
        """
        from afresh.statistics import VectorMean

        return cast("Measures", self.measure(VectorMean(expressions, radius, centre)))

    def checked(self, questions: Iterable[Any]) -> list[Any]:
        """Check a list of questions for `ask_checked`; every mistake is an error here, and free.

        Args:
            questions: Expressions, or mappings of `ask`'s arguments.

        Returns:
            The questions, checked against the columns of these rows.

        Raises:
            QueryError: One of them cannot be asked.
        """
        if isinstance(questions, str | bytes | Mapping) or (listed := checks.iterated(questions)) is None:
            raise QueryError(f"ask_many takes a list of questions, not a {type(questions).__name__}; ask takes one.")
        return self._doors.checked(listed)

    def round(self, rows: int | None = None) -> Round:
        """Collect the questions of a round, and answer them together from fresh rows when it ends.

        Write `with guard.round(rows=5000) as r:`, and in its body `r.ask(...)` and `r.ask_many(...)`; afterwards
        `r.answers` has the answers. If the body fails, nothing is asked or charged.

        Args:
            rows: The number of fresh rows for this round (default: all rows divided by the plan's rounds).

        Returns:
            A context manager that collects questions.

        Raises:
            InvalidArgument: The dataset was not opened in rounds, or the number of rows is wrong.
        """
        self.desk.check_open()
        if self.plan.rounds is None:
            raise InvalidArgument(
                f"this dataset was opened with method={self.plan.method!r}, which has no rounds; they must be "
                "planned before the first answer: afresh.open(data, rounds=10)."
            )
        return Round(self, None if rows is None else checks.whole("rows", rows, 1, self.rows))

    def close_rounds(self) -> list[Answer]:
        """Take a final look: answer every question once more, from all rows that were fresh for it.

        A question from the first round then gets all rows. Afterwards nobody can ask this dataset anything new.
        Questions asked in another process must first be repeated here, which is free; then call this again. Models are
        not scored again: one may by now predict differently under the same name. Statistics of rows are derived again.

        Returns:
            An answer for each question and statistic about columns that was asked through this guard and those that
            share its data, in order; its interval lies within the first one and holds at once with all others.

        Raises:
            InvalidArgument: The dataset was not opened in rounds, nothing was asked here, or you have only a share.
        """
        self.desk.check_open()
        if self.plan.rounds is None:
            raise InvalidArgument(f"method={self.plan.method!r} has no rounds to close.")
        return self._doors.close_rounds()

    def ask_checked(self, asked: Sequence[Any], rows: int | None = None) -> Answers:
        """Answer questions that `checked` returned, for callers that check before anything is asked.

        Args:
            asked: Questions that were checked against the columns of these rows.
            rows: With rounds, the number of fresh rows they get (default: the plan's).

        Returns:
            The answers, in the same order. All are charged, or none.
        """
        return Answers(self._doors.answers(asked, rows))

    def claim(
        self,
        expression: Any,
        between: tuple[float | None, float | None],
        bounds: tuple[float, float] | None = None,
        missing: float | None = None,
        where: Any = None,
    ) -> Claimed:
        """Claim that a mean lies between two ends: it passes or fails, and nothing else is released. Costs 1 answer.

        It needs method="checked". A pass certifies the claim. A failure makes later answers wider, as a failed guess
        does; `detects` shows in advance what such a claim can establish.

        Args:
            expression: As in `ask`.
            between: The two ends, in the answer's units; None leaves one side open.
            bounds: As in `ask`.
            missing: As in `ask`.
            where: As in `ask`: the claim is about the mean within the group, and costs one answer too.

        Returns:
            Whether it passed. If it did, the claim is true.

        Raises:
            QueryError: The question cannot be asked of these columns; nothing was charged.
            InvalidArgument: Another argument is wrong, or the method takes no claims; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        self.desk.check_open()
        return self._doors.claim(claimed(expression, bounds, missing, where), between)

    def detects(
        self,
        expression: Any,
        between: tuple[float | None, float | None],
        bounds: tuple[float, float] | None = None,
        missing: float | None = None,
        where: Any = None,
        *,
        deviation: float | None = None,
        share: float | None = None,
    ) -> float:
        """Show how far inside the ends the truth must lie for a `claim` to pass. Free; reads no rows.

        Args:
            expression: As in `claim`.
            between: As in `claim`.
            bounds: As in `claim`.
            missing: As in `claim`.
            where: As in `claim`.
            deviation: The standard deviation you expect of a number; by default the largest possible.
            share: The share of rows you expect in the group; by default all, so that a claim detects no less than this.

        Returns:
            A distance in the answer's units: a claim whose truth lies that far inside passes about nine times in ten.
        """
        self.desk.check_open()
        question = claimed(expression, bounds, missing, where)
        return self._doors.detects(question, between, deviation=deviation, share=share)

    def open_rows(self, kind: str | None = None) -> Any:
        """Return the open rows, for you to inspect, plot and fit models on. The first call fixes the plan.

        Args:
            kind: "pandas", "polars" or "arrow"; by default the kind that was opened, and pandas for a file.

        Returns:
            A frame of that kind (an Arrow table if pandas is not installed), the same in every process. The index of a
            pandas frame shows which rows of the data these are.

        Raises:
            InvalidArgument: The dataset was opened without `open`.
        """
        self.desk.check_open()
        return self._doors.open_rows(None if kind is None else checks.one_of("kind", kind, KINDS))

    def exam(self, questions: Iterable[Any]) -> list[Answer]:
        """Take the exam, once: a few final questions, answered exactly from rows that nothing else has touched.

        The questions form one batch, share the exam's part of the failure probability equally, and cost no answers.
        Repeating them gives the same answers; other questions are refused.

        Args:
            questions: Expressions, or mappings of `ask`'s arguments.

        Returns:
            The answers, in the same order.

        Raises:
            QueryError: One of them cannot be asked; nothing was asked.
            InvalidArgument: The dataset was opened without `exam`, or you have only a share of the budget.
            BudgetExhausted: The exam has been taken, with other questions.
        """
        self.desk.check_open()
        check_exam(self.plan)
        return self._doors.exam(self.checked(questions))

    def measure(self, statistic: Statistic) -> Answer | Measures:
        """Measure more than a mean: a quantile, a variance, a histogram, ..., for at most `statistic.price` answers.

        Args:
            statistic: A statistic from `afresh.statistics` that needs no model.

        Returns:
            Its answer, or several answers with names.

        Raises:
            InvalidArgument: It is not such a statistic; nothing was charged.
            QueryError: It cannot be measured on these columns; nothing was charged.
            BudgetExhausted: It costs more than is left; nothing was charged.
        """
        self.desk.check_open()
        if isinstance(statistic, type) or not callable(getattr(statistic, "measure", None)):
            raise checks.wrong("statistic", statistic, "a statistic from afresh.statistics that needs no model")
        return self._doors.measure(statistic)

    def fit(self, task: Task) -> Fitted:
        """Fit a model by noisy gradients, for the estimators of `afresh.learn`, which check the task.

        Args:
            task: What to fit, and to which columns.

        Returns:
            Weights, and a certificate of how good they are.
        """
        self.desk.check_open()
        return self._doors.fit(task)

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
        """Record what was revealed about the rows outside this guard, to keep later intervals honest.

        State with one of `kl`, `zcdp`, `pure_dp`, `noise_sd` and `study` how it was protected; a method that does not
        admit that kind names the kinds it admits. Charging the same text and numbers again is free.

        Args:
            revealed: A description of what was revealed.
            kl: A KL stability, in nats, between datasets that differ in one row.
            zcdp: A rho of zero-concentrated differential privacy.
            pure_dp: An epsilon of pure differential privacy.
            noise_sd: The standard deviation of Gaussian noise on a published mean of values in [0, 1].
            study: The receipt of another, finished guard over some of the rows: a document or its file.
            rows: The number of rows used, if not all.
            count: The number of such releases.

        Returns:
            What is left.

        Raises:
            InvalidArgument: The method admits no such charge, or a number is wrong.
            BudgetExhausted: It costs more than is left; nothing was recorded.
        """
        self.desk.check_open()
        checks.text("revealed", revealed, "text that says what was revealed, for the record")
        basis = {"kl": kl, "zcdp": zcdp, "pure_dp": pure_dp, "noise_sd": noise_sd, "study": study}
        return self._doors.charge(revealed, basis, rows, count)

    def divide(self, shares: Mapping[str, int]) -> Budget:
        """Divide the budget: set how many full-price answers each named analyst may have; all others share the rest.

        A later division replaces this one, within the whole budget and what everyone has spent. Names are taken on
        trust: anyone who can write to the ledger can ask under any name. The intervals of all analysts hold at once.

        Args:
            shares: Analysts' names, and how many answers each may have.

        Returns:
            What is left.

        Raises:
            InvalidArgument: The shares exceed the whole budget, or one is less than its analyst has spent.
        """
        self.desk.check_open()
        return self._doors.divide(checks.shares(shares))

    @property
    def budget(self) -> Budget:
        """What was spent, what is left for this analyst, and how accurate an answer is."""
        self.desk.check_open()
        return self._doors.budget()

    @property
    def transcript(self) -> Transcript:
        """Everything this guard has released, from any process, in order."""
        self.desk.check_open()
        return self._doors.transcript()

    def receipt(self) -> dict[str, Any]:
        """Plan, questions, answers, intervals, charges and chain as one JSON-ready document, for `afresh verify`."""
        self.desk.check_open()
        return self._doors.receipt()

    def close(self) -> None:
        """Free the engine and, unless it was passed in, the ledger. Idempotent; nothing is lost."""
        self.desk.close()

    def __repr__(self) -> str:
        """One line."""
        if self.desk.closed:
            return f"Guard({self.rows:,} rows, closed)"
        budget, mark = self.budget, ", simulated" if self.desk.terms.simulated else ""
        some, endless = f"{budget.left:,} of {budget.questions:,} answers left", budget.ahead is not None
        left = f"{budget.spent:,} answers so far, and no limit" if endless else some
        return f"Guard({self.rows:,} rows, {left}, {self.plan.method}{mark})"

    def __reduce__(self) -> NoReturn:
        """Refuse to pickle: a guard holds connections."""
        raise TypeError("a guard cannot be pickled; open the data in the other process instead (they share one budget)")

    def _blocks(self) -> list[show.Block]:
        columns = ", ".join(f"{name} ({kind})" for name, kind in self.columns.items())
        facts = show.Facts({"rows": f"{self.rows:,}", "columns": columns})
        return [show.Title("Guard"), facts, *self.budget.blocks()]
