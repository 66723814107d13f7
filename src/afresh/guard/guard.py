"""The guard: what an analyst holds of a dataset. A thin face on a desk, in one analyst's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from afresh import checks
from afresh.errors import InvalidArgument, QueryError
from afresh.guard.doors import LocalDoors
from afresh.guard.opened import KINDS
from afresh.guard.round import Round
from afresh.results import show
from afresh.results.answers import Answers
from afresh.results.closing import Closing

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.guard.doors import Doors
    from afresh.planning.plan import Plan
    from afresh.results.answer import Answer
    from afresh.results.budget import Budget
    from afresh.results.claims import Claimed
    from afresh.results.fitted import Fitted, Task
    from afresh.results.price import Price
    from afresh.results.transcript import Transcript
    from afresh.statistics.base import Measures, Statistic


class Guard(show.Shown, Closing):
    """Stands between the analyst and the rows. Make one with `afresh.open`."""

    def __init__(self, desk: Desk, analyst: str, doors: Doors | None = None) -> None:
        """Not for users: `afresh.open` opens the desk, `for_analyst` gives it another face.

        `doors` lead to the desk; to one in this process unless they are given.
        """
        self.desk, self.analyst = desk, analyst
        self._doors: Doors = LocalDoors(desk, analyst) if doors is None else doors

    def for_analyst(self, analyst: str) -> Guard:
        """The same opened data in another name, for the record and for shares of a divided budget.

        It costs nothing: any number of analysts, in any number of threads, share one opened dataset. Closing one of
        these guards closes them all.

        Args:
            analyst: Who asks.

        Returns:
            Another guard on the same rows, plan and ledger.
        """
        name = checks.text("analyst", analyst, "a name")
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
                first draw. A wrong hint makes later answers a little wider; all intervals hold all the same.

        Returns:
            The value, its interval, what the interval is about, and what it cost.

        Raises:
            QueryError: The question cannot be asked of these columns; nothing was charged.
            InvalidArgument: Another argument is wrong; nothing was charged.
            BudgetExhausted: It costs more than is left; nothing was charged.
            DataChanged: The rows are no longer those that were opened; nothing was charged.
            EngineError: The engine failed. The question is paid for, and asking again completes it.
        """
        arguments = {"bounds": bounds, "where": where, "missing": missing, "precision": precision, "guess": guess}
        arguments["about"] = about
        return self.ask_many([{"expression": expression, **arguments}])[0]

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
        mean: float | None = None,
        share: float | None = None,
        exam: int | None = None,
        deviation: float | None = None,
    ) -> Price:
        """Show what `ask` would charge for the same arguments, and the half-width to expect. Free; touches no row.

        Args:
            expression: As in `ask`; or a statistic, for which the price is the most it can cost.
            bounds: As in `ask`.
            where: As in `ask`.
            missing: As in `ask`.
            precision: As in `ask`.
            guess: As in `ask`.
            about: As in `ask`.
            mean: The answer you expect; by default the middle of the bounds.
            share: Within a group, the share of rows you expect in it; by default a half, a tenth and a hundredth.
            exam: The width to expect in the exam, as one of this many questions.
            deviation: The standard deviation you expect of a number, in its own units, if the guard was opened with
                `deviation`; without it the width is that of a share of rows.

        Returns:
            The price in answers and in nats, and the half-width to expect.

        Raises:
            QueryError: The question cannot be asked of these columns.
            InvalidArgument: Another argument is wrong.
        """
        self.desk.check_open()
        if callable(getattr(expression, "measure", None)) and not isinstance(expression, type):
            return self._doors.price_of(expression)
        arguments = {"bounds": bounds, "where": where, "missing": missing, "precision": precision, "guess": guess}
        arguments["about"] = about
        expected = {"mean": mean, "share": share, "exam": exam, "deviation": deviation}
        return self._doors.price({"expression": expression, **arguments}, expected)

    def ask_many(self, questions: Iterable[Any]) -> Answers:
        """Answer a list of questions in one scan. All are charged, or none.

        Args:
            questions: Expressions, or mappings of `ask`'s arguments.

        Returns:
            Their answers in the same order: a list that displays itself as a table.

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
        """Ask for the means of several numbers at once, for one answer. On every row they are moved into a ball.

        A row outside the ball counts as the point where the line from the center to it leaves the ball. The noise
        follows the radius and hardly depends on how many expressions there are: gradients, moments, embeddings. Methods
        that cannot release a vector charge one answer for each number; the price of
        `afresh.statistics.VectorMean(...)` says so in advance.

        Args:
            expressions: Numbers in SQL: a list, or a mapping of names to expressions.
            radius: Of the ball, in the units that the numbers share. Choose it without looking at the data.
            centre: Of the ball: one number for all coordinates, or one for each. A missing value counts as the center.

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
        """What `ask_checked` answers, of a list of questions; every mistake is an error here, and free.

        Args:
            questions: Expressions, or mappings of `ask`'s arguments.

        Returns:
            The same, checked against the columns of these rows.

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
            rows: How many fresh rows the round gets (default: the rows over the plan's rounds).

        Returns:
            A context that takes questions.

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

        A question of the first round then gets all rows. Afterwards nobody can ask anything new of this dataset.
        Questions asked in another process must first be repeated here, which is free; then call this again. Models are
        not scored again: one may by now predict differently under the same name.

        Returns:
            An answer for each question about columns that was asked through this guard and those that share its data,
            in order; its interval lies within the first one, and holds at once with all others.

        Raises:
            InvalidArgument: These data were not opened in rounds, nothing was asked here, or you have only a share.
        """
        self.desk.check_open()
        if self.plan.rounds is None:
            raise InvalidArgument(f"method={self.plan.method!r} has no rounds to close.")
        return self._doors.close_rounds()

    def ask_checked(self, asked: Sequence[Any], rows: int | None = None) -> Answers:
        """Answer what `checked` gave, for faces that check questions before anything is asked.

        Args:
            asked: Questions that were checked against the columns of these rows.
            rows: In rounds, how many fresh rows they get (default: the plan's).

        Returns:
            Their answers, in the same order. All are charged, or none.
        """
        return Answers(self._doors.answers(asked, rows))

    def claim(
        self,
        expression: Any,
        between: tuple[float | None, float | None],
        bounds: tuple[float, float] | None = None,
        missing: float | None = None,
    ) -> Claimed:
        """Claim that a mean lies between two ends: it passes or fails, and nothing else is released. 1 answer.

        It needs method="checked". A pass certifies the claim. A failure makes later answers wider, as a failed guess
        does; `detects` says in advance what such a claim can show.

        Args:
            expression: As in `ask`.
            between: The two ends, in the answer's units; None leaves one side open.
            bounds: As in `ask`.
            missing: As in `ask`.

        Returns:
            Whether it passed. If it did, the claim is true.

        Raises:
            QueryError: The question cannot be asked of these columns; nothing was charged.
            InvalidArgument: Another argument is wrong, or the method takes no claims; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        self.desk.check_open()
        return self._doors.claim({"expression": expression, "bounds": bounds, "missing": missing}, between)

    def detects(
        self,
        expression: Any,
        between: tuple[float | None, float | None],
        bounds: tuple[float, float] | None = None,
        missing: float | None = None,
        *,
        deviation: float | None = None,
    ) -> float:
        """Show how far inside its ends the truth must lie for a `claim` to pass. Free; touches no row.

        Args:
            expression: As in `claim`.
            between: As in `claim`.
            bounds: As in `claim`.
            missing: As in `claim`.
            deviation: The standard deviation you expect of a number; by default the largest possible.

        Returns:
            A distance in the answer's units: a truth that far inside passes about nine times in ten.
        """
        self.desk.check_open()
        question = {"expression": expression, "bounds": bounds, "missing": missing}
        return self._doors.detects(question, between, deviation)

    def open_rows(self, kind: str | None = None) -> Any:
        """Return the open rows, to look at, plot and fit: the same in every process. The first call fixes the plan.

        Args:
            kind: "pandas", "polars" or "arrow"; by default the kind that was opened, and pandas for a file.

        Returns:
            A frame of that kind (an Arrow table without pandas). The index of a pandas frame says which rows of the
            data these are.

        Raises:
            InvalidArgument: The data were opened without `open`.
        """
        self.desk.check_open()
        return self._doors.open_rows(None if kind is None else checks.one_of("kind", kind, KINDS))

    def exam(self, questions: Iterable[Any]) -> list[Answer]:
        """Take the exam: a few final questions, answered exactly from rows that nothing else has touched. Once.

        The questions are one batch, share the exam's part of the failure probability equally, and cost no answers.
        Repeating them gives the same answers; other questions are refused.

        Args:
            questions: Expressions, or mappings of `ask`'s arguments.

        Returns:
            Their answers, in the same order.

        Raises:
            QueryError: One of them cannot be asked; nothing was asked.
            InvalidArgument: The data were opened without `exam`, or you have only a share of the budget.
            BudgetExhausted: The exam has been taken, with other questions.
        """
        from afresh.guard.exam import check_exam

        self.desk.check_open()
        check_exam(self.plan)
        return self._doors.exam(self.checked(questions))

    def measure(self, statistic: Statistic) -> Answer | Measures:
        """Measure more than a mean: a quantile, a variance, a histogram, ..., for at most `statistic.price` answers.

        Args:
            statistic: One of `afresh.statistics` that needs no model.

        Returns:
            Its answer, or several with names.

        Raises:
            InvalidArgument: It is not one of these; nothing was charged.
            QueryError: It cannot be measured on these columns; nothing was charged.
            BudgetExhausted: It costs more than is left; nothing was charged.
        """
        self.desk.check_open()
        if isinstance(statistic, type) or not callable(getattr(statistic, "measure", None)):
            raise checks.wrong("statistic", statistic, "one of afresh.statistics that needs no model")
        return self._doors.measure(statistic)

    def fit(self, task: Task) -> Fitted:
        """Fit a model by noisy gradients, for the estimators of `afresh.learn`, which check the task.

        Args:
            task: What is to be fitted to which columns.

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
        """Record what was revealed about the rows outside this guard, so that later intervals stay honest.

        Say with one of `kl`, `zcdp`, `pure_dp`, `noise_sd` and `study` how it was protected; a method that does not
        admit it says which it admits. Charging the same text and numbers again is free.

        Args:
            revealed: What it was, as text.
            kl: A KL stability, in nats, between datasets that differ in one row.
            zcdp: A rho of zero-concentrated differential privacy.
            pure_dp: An epsilon of pure differential privacy.
            noise_sd: The standard deviation of Gaussian noise on a published mean of values in [0, 1].
            study: The receipt of another, finished guard over some of the rows: a document or its file.
            rows: How many of the rows were used, if not all.
            count: How many such releases there were.

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
        """Divide the budget: how many full-price answers each named analyst may have in all; the others share the rest.

        A later division replaces it, within the whole budget and what everybody has spent. Names are taken on trust:
        anyone who can write to the ledger can ask under any name. All intervals of all analysts hold at once.

        Args:
            shares: Names, and how many answers each may have.

        Returns:
            What is left.

        Raises:
            InvalidArgument: The shares add up to more than the whole, or to less than somebody has spent.
        """
        self.desk.check_open()
        return self._doors.divide(checks.shares(shares))

    @property
    def budget(self) -> Budget:
        """What was spent, what is left for this analyst, and what an answer is worth."""
        self.desk.check_open()
        return self._doors.budget()

    @property
    def transcript(self) -> Transcript:
        """Everything this guard has released, by whichever process, in order."""
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
        left = f"{budget.left:,} of {budget.questions:,} answers left"
        if budget.ahead is not None:
            left = f"{budget.spent:,} answers so far, and no limit"
        return f"Guard({self.rows:,} rows, {left}, {self.plan.method}{mark})"

    def __reduce__(self) -> NoReturn:
        """A guard holds connections, so it stays where it is."""
        raise TypeError("a guard cannot be pickled; open the data in the other process; both share one budget.")

    def _blocks(self) -> list[show.Block]:
        columns = ", ".join(f"{name} ({kind})" for name, kind in self.columns.items())
        facts = show.Facts({"rows": f"{self.rows:,}", "columns": columns})
        return [show.Title("Guard"), facts, *self.budget.blocks()]
