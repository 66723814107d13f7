"""What is behind a holdout: labelled rows in this process, or a service that has them.

`Holdout` runs models and checks what it can; a `Judge` compares predictions with the labels. `LocalJudge` has the
labels; the one in `afresh.client.holdout` sends predictions to a service.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from afresh import checks
from afresh.models.compare import best_of, compare, examine
from afresh.models.score import asked_scores, score

if TYPE_CHECKING:
    from afresh.losses import Loss
    from afresh.models.labelled import LabelledRows
    from afresh.models.predictions import Predicted
    from afresh.models.verdicts import Comparison, Identical, Ranking
    from afresh.results.answer import Answer
    from afresh.results.claims import Claimed, Contested
    from afresh.statistics.scores import ModelStatistic


class Judge(Protocol):
    """What a holdout needs done, in one analyst's name."""

    def score(self, predicted: Sequence[Predicted], loss: Loss, precision: float | None) -> list[Answer]:
        """Their mean losses; all are charged, or none."""
        ...

    def unscored(self, predicted: Sequence[Predicted], loss: Loss) -> int:
        """How many of these scores would be charged."""
        ...

    def compare(self, a: Predicted, b: Predicted, loss: Loss, precision: float | None) -> Comparison | Identical:
        """Whether B is better than A."""
        ...

    def best_of(self, predicted: Sequence[Predicted], loss: Loss) -> Ranking:
        """Many in order."""
        ...

    def exam(self, predicted: Sequence[Predicted], loss: Loss) -> Ranking:
        """The same on the rows that are kept for the exam."""
        ...

    def claim_score(self, model: Predicted, between: Any, loss: Loss) -> Claimed:
        """Whether a mean loss lies between two ends."""
        ...

    def claim_better(self, b: Predicted, a: Predicted, by: float, loss: Loss, *, challenge: bool) -> Claimed:
        """Whether B's is smaller than A's by more than this."""
        ...

    def contest(
        self, models: Sequence[Predicted], incumbent: Predicted | None, bins: int | None, loss: Loss
    ) -> Contested:
        """Which has the smallest mean loss, if it certainly beats the incumbent."""
        ...

    def detects(
        self, b: Predicted, a: Predicted, by: float, disagreement: float | None, loss: Loss, among: int, *, binned: bool
    ) -> float:
        """What a claim that B is better can show, or a contest among so many."""
        ...

    def measure(self, statistic: ModelStatistic, model: Any, name: str | None) -> Answer:
        """A statistic of a model."""
        ...

    def open_rows(self) -> tuple[Any, Any]:
        """Features and labels of the open rows."""
        ...


class LocalJudge:
    """A judge that has the labels."""

    def __init__(self, rows: LabelledRows, analyst: str) -> None:
        """In whose name."""
        self._rows, self._analyst = rows, analyst

    def score(self, predicted: Sequence[Predicted], loss: Loss, precision: float | None) -> list[Answer]:
        """Ask for mean losses."""
        return score(self._rows, predicted, loss, self._analyst, precision)

    def unscored(self, predicted: Sequence[Predicted], loss: Loss) -> int:
        """What the ledger has not."""
        desk = self._rows.desk
        return len(desk.ledger.unpaid(desk.terms, desk.questions(asked_scores(self._rows, predicted, loss))))

    def compare(self, a: Predicted, b: Predicted, loss: Loss, precision: float | None) -> Comparison | Identical:
        """Row by row."""
        return compare(self._rows, a, b, loss, self._analyst, precision)

    def best_of(self, predicted: Sequence[Predicted], loss: Loss) -> Ranking:
        """By scores, then by comparisons."""
        return best_of(self._rows, predicted, loss, self._analyst)

    def exam(self, predicted: Sequence[Predicted], loss: Loss) -> Ranking:
        """All scores and pairs in one batch."""
        return examine(self._rows, predicted, loss, self._analyst)

    def claim_score(self, model: Predicted, between: Any, loss: Loss) -> Claimed:
        """Test a claim."""
        from afresh.models.claims import claim_score

        return claim_score(self._rows, model, between, loss, self._analyst)

    def claim_better(self, b: Predicted, a: Predicted, by: float, loss: Loss, *, challenge: bool) -> Claimed:
        """Test a claim, or a challenge, which is expected to fail."""
        from afresh.models.claims import claim_better

        return claim_better(self._rows, b, a, by, loss, self._analyst, challenge=challenge)

    def contest(
        self, models: Sequence[Predicted], incumbent: Predicted | None, bins: int | None, loss: Loss
    ) -> Contested:
        """Hold one."""
        from afresh.models.claims import contest

        return contest(self._rows, models, incumbent, bins, loss, self._analyst)

    def detects(
        self, b: Predicted, a: Predicted, by: float, disagreement: float | None, loss: Loss, among: int, *, binned: bool
    ) -> float:
        """By how often they differ, as is said or seen."""
        from afresh.guard.claims import present
        from afresh.models.claims import better, differing

        if disagreement is None:
            deviation = differing(self._rows, [(a, b)], loss)
        else:
            scale = loss.bounds[1] - loss.bounds[0]
            deviation = checks.share("disagreement", disagreement, ", a share of rows") ** 0.5 * scale
        claim = better(self._rows, b, a, by, loss)
        return present(self._rows.desk, claim, deviation, among=among, binned=binned)

    def measure(self, statistic: ModelStatistic, model: Any, name: str | None) -> Answer:
        """Ask for its means."""
        return statistic.measure_model(self._rows, model, name, self._analyst)

    def open_rows(self) -> tuple[Any, Any]:
        """Hand them out, which fixes the plan."""
        from afresh.guard.opened import hand_out

        if not self._rows.desk.plan.mechanism.own:
            hand_out(self._rows.desk, self._analyst)
        return self._rows.opened()
