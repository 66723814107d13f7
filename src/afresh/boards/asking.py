"""The questions of a board: those of any holdout, recorded under the names of entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from afresh.errors import InvalidArgument
from afresh.mechanisms.registry import AT_ONCE, CLAIMING
from afresh.models.claims import better
from afresh.models.compare import asked_difference, check_scale
from afresh.models.score import asked_scores
from afresh.queries.asked import Asked

if TYPE_CHECKING:
    from afresh.boards.rules import Rules
    from afresh.losses import Loss
    from afresh.models.holdout import Holdout
    from afresh.models.labelled import LabelledRows
    from afresh.models.predictions import Predicted


class Asking:
    """Makes the questions of one board."""

    def __init__(self, rows: LabelledRows, board: str, loss: Loss) -> None:
        """For entries to these rows."""
        self._rows, self._board, self._loss = rows, board, loss

    def _about(self, name: str, entrant: str) -> dict[str, Any]:
        return {
            "board": self._board,
            "entry": name,
            "entrant": entrant,
            "loss": self._loss.words,
            "features": self._rows.visibility,
        }

    def score(self, predicted: Predicted, entrant: str) -> Asked:
        """The mean loss of an entry."""
        (asked,) = asked_scores(self._rows, [predicted], self._loss)
        return replace(asked, rule="entry", parameters=self._about(predicted.name, entrant))

    def difference(self, a: Predicted, b: Predicted) -> Asked:
        """The mean loss of one entry minus that of another."""
        about = {"board": self._board, "a": a.name, "b": b.name, "features": self._rows.visibility}
        return asked_difference(self._rows, a, b, self._loss, about=about)

    def batch(
        self, found: Sequence[Predicted], entrants: Mapping[str, str], pairs: Sequence[tuple[int, int]]
    ) -> list[Asked]:
        """All scores, and the differences of some pairs."""
        scores = [self.score(each, entrants[each.name]) for each in found]
        return [*scores, *(self.difference(found[i], found[j]) for i, j in pairs)]

    def challenge(self, predicted: Predicted, leader: Predicted, entrant: str) -> Asked:
        """Whether an entry certainly beats the leader."""
        tasked = better(self._rows, predicted, leader, 0.0, self._loss, challenge=True)
        return Asked(
            queries=(tasked,),
            question=tasked.text,
            bounds=tasked.bounds,
            about_value="a challenge",
            about_missing="",
            rule="improvement",
            parameters={**self._about(predicted.name, entrant), "over": leader.name},
        )


def check_board(holdout: Holdout, rules: Rules, loss: Loss) -> None:
    """Refuse a holdout whose plan does not suit the rules."""
    check_scale(loss)
    mechanism = holdout.guard.plan.mechanism
    if rules.reveal == "rounds" and mechanism.batch is None:
        raise InvalidArgument(
            'a board with reveal="rounds" needs fresh rows for each round; open the holdout with, say, rounds=52.'
        )
    if rules.reveal != "rounds" and mechanism.batch is not None:
        raise InvalidArgument(
            'every batch of this holdout has rows of its own, so a board on it needs reveal="rounds"; one that reveals '
            f'{rules.reveal!r} needs a holdout opened with method="{AT_ONCE}" or "{CLAIMING[0]}", for example.'
        )
    if rules.reveal == "improvements" and not mechanism.symbols:
        raise InvalidArgument(
            f'a board that reveals only improvements needs claims: open the holdout with method="{CLAIMING[0]}", or '
            "with open=0.5."
        )
