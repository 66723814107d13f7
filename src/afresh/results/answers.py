"""Several answers: a list that displays as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from afresh.results import show
from afresh.results.answer import Answer, cost_line, noise_column, said_of_all, simulation_mark
from afresh.results.frames import Tabular


class Answers(list[Answer], show.Told, Tabular):
    """Answers in the order of their questions: a list that displays as a table in a terminal or a notebook."""

    __slots__ = ()

    def rows(self) -> list[dict[str, Any]]:
        """One row per answer.

        Returns:
            Mappings with the same keys.
        """
        return [
            {
                "question": each.question,
                "where": each.where,
                "value": each.value if each.told else None,
                "low": each.low,
                "high": each.high,
                "confidence": each.confidence,
                "charged": each.charged,
            }
            for each in self
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"answers": [each.to_dict() for each in self]}

    def plot(self, ax: Any = None) -> Any:
        """Draw the answers as a forest plot, if they share one scale.

        Args:
            ax: Matplotlib axes to draw on; by default, those of a new figure.

        Returns:
            The axes.

        Raises:
            InvalidArgument: The questions have different bounds, or there are no answers.
            MissingExtra: matplotlib is not installed.
        """
        from afresh.results.plots import draw

        return draw(show.one_scale([(forest_mark(str(i), each), each.bounds) for i, each in enumerate(self, 1)]), ax)

    def __repr__(self) -> str:
        """The table, as a prompt shows it."""
        return str(self)

    def __str__(self) -> str:
        """The table."""
        return show.Shown.__str__(self)

    def _blocks(self) -> Sequence[show.Block]:
        if not self:
            return [show.Title("No answers.")]
        last = self[-1]
        scales = {each.bounds for each in self}
        noise = noise_column(self)
        header = ["", "question", "value", *(["noise"] if noise else []), "low", "high", ""]
        table = show.Table(header, self._lines(scales, noise), code=["question"])
        return [
            *simulation_mark(any(each.simulated for each in self)),
            show.Title(f"{len(self):,} answers, all intervals hold at once at {show.percent(last.confidence)}"),
            table,
            *said_of_all({f"{place}": each for place, each in enumerate(self, 1)}),
            cost_line(sum(each.charged for each in self), last.left),
        ]

    def _lines(self, scales: set[tuple[float, float]], noise: Sequence[str]) -> list[list[show.Cell]]:
        (common,) = scales if len(scales) == 1 else (None,)
        return [
            [
                f"{place}",
                each.question + (f" where {each.where}" if each.where else ""),
                each.shown()[0],
                *noise[place - 1 : place],
                *each.shown()[1:],
                show.Bar(each.value, each.low, each.high, common or each.bounds) if each.told else "",
            ]
            for place, each in enumerate(self, 1)
        ]


def forest_mark(number: str, answer: Answer) -> show.Mark:
    """An answer as one line of a forest plot."""
    value, low, high = answer.shown()
    name = answer.question + (f" where {answer.where}" if answer.where else "")
    shown = answer.value if answer.told else None
    return show.Mark(number, name, shown, answer.low, answer.high, f"{value} [{low}, {high}]", name)
