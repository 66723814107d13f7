"""Models scored and compared on rows whose labels, and perhaps features, stay hidden."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.escaping import visible
from afresh.guard.guard import Guard
from afresh.mechanisms.base import FollowsDisagreement
from afresh.models.compare import coarseness_of
from afresh.models.held import Held
from afresh.models.judge import LocalJudge
from afresh.models.paired import resolution
from afresh.results import show

if TYPE_CHECKING:
    from afresh.losses import Loss
    from afresh.models.judge import Judge
    from afresh.models.labelled import LabelledRows
    from afresh.models.predictions import Predicted
    from afresh.models.verdicts import Comparison, Identical, Ranking
    from afresh.results.answer import Answer
    from afresh.results.claims import Claimed, Contested
    from afresh.statistics.scores import ModelStatistic


class Recipe(NamedTuple):
    """How another process opens the same holdout: the function, and the arguments of `afresh.holdout`."""

    reopen: Callable[..., Holdout]
    arguments: dict[str, Any]


def check_holdout(holdout: object) -> Holdout:
    """A holdout made by `afresh.holdout`, or an error."""
    if not isinstance(holdout, Holdout):
        raise InvalidArgument(f"holdout is a {type(holdout).__name__}, must be a holdout from afresh.holdout(X, y).")
    return holdout


class Holdout(Held):
    """Scores and compares models on guarded rows. Make one with `afresh.holdout`."""

    def __init__(
        self, guard: Guard, labelled: LabelledRows, loss: Loss, recipe: Recipe | None, judge: Judge | None = None
    ) -> None:
        """Not for users: `afresh.holdout` combines the parts. The judge has the labels, unless one is given."""
        super().__init__(guard, labelled, loss, LocalJudge(labelled, guard.analyst) if judge is None else judge)
        self._recipe = recipe
        self._incumbents: dict[str, Predicted] = {}  # by loss: predictions are made for one

    def for_analyst(self, analyst: str) -> Holdout:
        """The same holdout under another name; labels and features are not read again. See `Guard.for_analyst`.

        Args:
            analyst: The name of the analyst who asks.

        Returns:
            Another holdout on the same rows, plan and ledger.
        """
        guard = self.guard.for_analyst(analyst)
        recipe = self._recipe
        if recipe is not None:
            recipe = Recipe(recipe.reopen, {**recipe.arguments, "analyst": analyst})
        return Holdout(guard, self.labelled, self.loss, recipe)

    def score(self, model: Any, *, name: str | None = None, loss: Any = None, precision: float | None = None) -> Answer:
        """Estimate the mean loss of a model, or of predictions, with its interval. Costs 1 answer; repeats are free.

        With public features, the same predictions are the same question. With hidden features only models are accepted;
        a model is identified by its `name` and its predictions for made-up rows, never by its predictions for these
        rows. Without a name every call is charged; use one name per model. A row on which it fails has the largest
        loss.

        Args:
            model: An object with `predict` (or `predict_proba`, for losses of probabilities), a function of the
                features, or predictions, one per row in row order.
            name: The model's name in the record.
            loss: A loss to use instead of the holdout's own.
            precision: A half-width that is enough, in units of the loss; the answer then costs less.

        Returns:
            The mean loss and its interval; smaller is better.

        Raises:
            InvalidArgument: The predictions do not suit the loss; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        return self.score_many([model], names=None if name is None else [name], loss=loss, precision=precision)[0]

    def score_many(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        *,
        names: Sequence[str] | None = None,
        loss: Any = None,
        precision: float | None = None,
    ) -> list[Answer]:
        """Estimate the mean losses of several models, for 1 answer each. All are charged, or none.

        Args:
            models: As in `score`, one after the other.
            names: The models' names in the record.
            loss: A loss to use instead of the holdout's own.
            precision: A half-width that is enough, in units of the loss; answers then cost less.

        Returns:
            The answers, in the same order.

        Raises:
            InvalidArgument: Some predictions do not suit the loss; nothing was charged.
            BudgetExhausted: Together they cost more than is left; nothing was charged.
        """
        used = self.settled(loss)
        return self.score_predicted(self.predict(models, names, used), used, precision)

    def compare(
        self,
        a: Any,
        b: Any,
        *,
        names: tuple[str, str] | None = None,
        loss: Any = None,
        precision: float | None = None,
    ) -> Comparison | Identical:
        """Compare two models row by row: is B better than A? Costs 1 or 2 answers; repeats are free.

        With public features, two models with the same predictions are reported as identical on these rows, without an
        interval or a charge. With hidden features they are compared like any others.

        This separates models that rarely disagree far better than two scores do.

        Args:
            a: A model or predictions, as in `score`.
            b: Another model or predictions.
            names: The two names in the record.
            loss: A loss to use instead of the holdout's own.
            precision: A half-width of the difference that is enough, in units of the loss, at a lower charge. It is
                promised for models that disagree on every row, as the charge must not depend on how often they do;
                `resolution` shows what it means for others.

        Returns:
            The difference of their mean losses, A minus B, with its interval and a verdict.

        Raises:
            InvalidArgument: Some predictions do not suit the loss; nothing was charged.
            BudgetExhausted: It costs more than is left; nothing was charged.
        """
        used = self.settled(loss)
        first, second = self.predict([a, b], names, used)
        return self._judge.compare(first, second, used, precision)

    def best_of(
        self, models: Sequence[Any] | Mapping[str, Any], *, names: Sequence[str] | None = None, loss: Any = None
    ) -> Ranking:
        """Rank models, with ties where the data cannot separate them: at most 3 m - 2 answers for m models.

        One answer scores each model; two more, or one with some methods, compare it with the best score.
        In rounds all scores and all pairs are one round, m (m + 1)/2 answers, if as many are left.

        Args:
            models: As in `score`, at least two; the keys of a dict are their names.
            names: What to call them in the record.
            loss: What to average instead of the holdout's own loss.

        Returns:
            The models in order, each with the best and the worst place it may have.

        Raises:
            InvalidArgument: There are fewer than two, or two have the same name; nothing was charged.
            BudgetExhausted: Their scores cost more than is left; nothing was charged.
        """
        used = self.settled(loss)
        return self._judge.best_of(self.predict(models, names, used), used)

    def exam(
        self, models: Sequence[Any] | Mapping[str, Any], *, names: Sequence[str] | None = None, loss: Any = None
    ) -> Ranking:
        """Take the exam, once: score and compare the final models on rows that nothing else has touched.

        All scores and all pairs form one batch of exact answers, m (m + 1)/2 for m models, which share the exam's part
        of the failure probability. The exam costs no answers. Repeating it with the same models gives the same answers.

        Args:
            models: As in `score`, one or more.
            names: What to call them in the record.
            loss: What to average instead of the holdout's own loss.

        Returns:
            The models in order; `ranking.models[0].score` is the number to publish.

        Raises:
            InvalidArgument: The holdout was opened without `exam`, or two models have the same name.
            BudgetExhausted: The exam has been taken, with other models.
        """
        from afresh.guard.exam import check_exam

        self.guard.desk.check_open()
        check_exam(self.guard.plan)
        used = self.settled(loss)
        return self._judge.exam(self.predict(models, names, used), used)

    def claim(
        self,
        model: Any,
        *,
        better_than: Any = None,
        by: float = 0.0,
        between: tuple[float | None, float | None] | None = None,
        names: Sequence[str] | None = None,
        loss: Any = None,
    ) -> Claimed:
        """Claim that a model is better than another, or its mean loss between two ends: pass or fail. 1 answer.

        Nothing else is released, and a pass certifies the claim. It needs method="checked". A failure makes later
        answers wider. Comparing on your own rows first, and claiming what you found, is the narrowest way to use
        the rows.

        Args:
            model: As in `score`.
            better_than: Another model. The claim is that `model` has the smaller mean loss.
            by: The margin by which it is better, in units of the loss.
            between: Instead of `better_than`, two ends for the mean loss; None leaves one side open.
            names: The names of the model and the other one in the record.
            loss: What to average instead of the holdout's own loss.

        Returns:
            Whether it passed. If it did, the claim is true.

        Raises:
            InvalidArgument: An argument is wrong, or the method takes no claims; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        used = self.settled(loss)
        if (better_than is None) == (between is None):
            raise InvalidArgument("a claim needs exactly one of better_than (another model) and between (two ends).")
        if between is not None:
            (only,) = self.predict([model], names, used)
            return self._judge.claim_score(only, between, used)
        b, a = self.predict([model, better_than], names, used)
        return self._judge.claim_better(b, a, by, used, challenge=False)

    def challenge(
        self,
        model: Any,
        *,
        incumbent: Any = None,
        by: float = 0.0,
        names: Sequence[str] | None = None,
        loss: Any = None,
    ) -> Claimed:
        """Challenge the incumbent: a model that certainly beats it becomes the incumbent. 1 answer.

        With the guard's confidence, every challenger ever accepted is a real improvement, however many there are. Most
        are rejected, which costs later answers little; an acceptance costs them some width.

        Args:
            model: As in `score`.
            incumbent: The model to beat, the first time and after a restart; later it is the one accepted last with
                the same loss.
            by: The margin by which it must be better, in units of the loss.
            names: The names of the model (and of the incumbent, if one is given) in the record.
            loss: What to average instead of the holdout's own loss.

        Returns:
            Whether it was accepted. If it was, it is a real improvement, with the guard's confidence.

        Raises:
            InvalidArgument: There is no incumbent yet, or an argument is wrong; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        used = self.settled(loss)
        if incumbent is not None:
            b, a = self.predict([model, incumbent], names, used)
        elif used.words not in self._incumbents:
            raise InvalidArgument(f"there is no incumbent yet for the {used.words}; pass incumbent= the first time.")
        else:
            (b,), a = self.predict([model], names, used), self._incumbents[used.words]
        found = self._judge.claim_better(b, a, by, used, challenge=True)
        if found.passed or incumbent is not None:  # a rejection leaves the model accepted in the meantime
            self._incumbents[used.words] = b if found.passed else a
        return found

    def contest(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        *,
        incumbent: Any = None,
        bins: int | None = None,
        names: Sequence[str] | None = None,
        loss: Any = None,
    ) -> Contested:
        """Find the model with the smallest mean loss on the guarded rows: its place, or "no certified improvement".

        Costs 1 answer for any number of models. Only the winner's place is released and, with `bins`, which of that
        many equal parts contains its mean loss. With an incumbent, there is a winner only if it certainly beats the
        incumbent.

        Args:
            models: As in `score`, one after the other; ties go to the first. The keys of a dict are their names.
            incumbent: A model to beat; beside a dict it is called "incumbent".
            bins: The number of equal parts into which the loss's range is split.
            names: The models' names in the record, the incumbent last.
            loss: What to average instead of the holdout's own loss.

        Returns:
            The winner, if there is one.

        Raises:
            InvalidArgument: An argument is wrong, or the method takes no contests; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        used = self.settled(loss)
        if incumbent is None:
            return self._judge.contest(self.predict(models, names, used), None, bins, used)
        if isinstance(models, Mapping):
            if "incumbent" in models:
                raise InvalidArgument("a model is called 'incumbent', as the one to beat is; give it another name.")
            models = {**models, "incumbent": incumbent}
        else:
            models = [*models, incumbent]
        *first, last = self.predict(models, names, used)
        return self._judge.contest(first, last, bins, used)

    def detects(
        self,
        model: Any,
        *,
        better_than: Any,
        by: float = 0.0,
        disagreement: float | None = None,
        loss: Any = None,
        among: int = 1,
        binned: bool = False,
    ) -> float:
        """Show how much better than `by` a model must be for its claim or challenge to pass now, or to win. Free.

        Args:
            model: As in `claim`.
            better_than: As in `claim`.
            by: As in `claim`.
            disagreement: The share of rows on which the two differ; known if features are public, otherwise all rows.
            loss: What to average instead of the holdout's own loss.
            among: The number of models, this one included, of a contest with `better_than` as the incumbent.
            binned: Whether that contest would also ask for the winner's value (`bins`).

        Returns:
            A difference in units of the loss: a claim about one that large passes about nine times in ten, and in a
            contest the best model wins as often if it is that much better than the incumbent.

        Raises:
            InvalidArgument: An argument is wrong, or the method takes no claims.
        """
        used = self.settled(loss)
        among, binned = checks.whole("among", among, 1), checks.flag("binned", binned)
        b, a = self.predict([model, better_than], None, used)
        return self._judge.detects(b, a, by, disagreement, used, among, binned=binned)

    def measure(self, statistic: ModelStatistic, model: Any, *, name: str | None = None) -> Answer:
        """Measure precision, recall, F1, calibration error or AUC of a model, for at most `statistic.price` answers.

        Args:
            statistic: A statistic from `afresh.statistics` that needs a model.
            model: As in `score`.
            name: The model's name in the record.

        Returns:
            Its value and interval.

        Raises:
            InvalidArgument: The statistic does not suit the labels; nothing was charged.
            BudgetExhausted: It costs more than is left; nothing was charged.
        """
        if isinstance(statistic, type) or not callable(getattr(statistic, "measure_model", None)):
            raise checks.wrong("statistic", statistic, "a statistic from afresh.statistics that needs a model")
        return self._judge.measure(statistic, model, name)

    def resolution(self, disagreement: float, *, precision: float | None = None) -> float:
        """Show the half-width of `compare` for two models that disagree on this share of rows. Free.

        Args:
            disagreement: A share of rows.
            precision: As in `compare`.

        Returns:
            A half-width, in units of the loss.
        """
        disagreement = checks.share("disagreement", disagreement, ", a share of rows")
        low, high = self.loss.bounds
        coarseness = coarseness_of(self.guard.desk, self.loss, precision)
        mechanism = self.guard.plan.mechanism
        if precision is None and self.visibility == "public" and isinstance(mechanism, FollowsDisagreement):
            coarseness = mechanism.noise_following(disagreement)
        return resolution(self.guard.plan, disagreement, coarseness) * (high - low)

    def __repr__(self) -> str:
        """One line."""
        return f"Holdout({visible(self.loss.words)} of {self.label!r}, {self.guard!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle its data and the place of its ledger: another process opens them again and shares the budget."""
        if self._recipe is None:
            raise TypeError(
                "a holdout on a guard, on a ledger in memory or in a simulation cannot be pickled; open the data in "
                "the other process with a ledger in a file; both share one budget."
            )
        return self._recipe.reopen, (
            self._recipe.arguments,
            self.guard.desk.terms.data,
            self.labelled.order,
            self.settled().words,
        )

    def __deepcopy__(self, memo: object) -> Holdout:
        """Return itself: a copy, such as scikit-learn's `clone` makes, must spend from the same guard."""
        return self

    def _blocks(self) -> list[show.Block]:
        facts = {"label": self.label, "features": self.visibility, "loss": self.loss.words}
        if self.classes is not None:
            facts["classes"] = ", ".join(map(str, self.classes))
        return [show.Title("Holdout"), show.Facts(facts), *self.guard.blocks()]
