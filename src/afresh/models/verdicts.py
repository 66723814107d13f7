"""Is B better than A? Two models on the same rows, and many in order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from afresh.escaping import visible
from afresh.results import show
from afresh.results.answer import (
    Answer,
    Difference,
    Interval,
    Released,
    checks_in_words,
    cost_line,
    exam_line,
    in_words,
    noise_column,
    simulation_mark,
)
from afresh.results.frames import Tabular


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Difference):
    """The mean loss of A minus that of B, with its simultaneous interval: above 0, B is better."""

    loss: str
    rows: int
    smallest_difference: float
    """Roughly the smallest difference that can be detected between models that disagree as often as these."""
    would_tell: tuple[str, ...] = ()
    """If it cannot tell: changes to the plan that would detect a difference as large as `value`, each by itself."""

    @property
    def verdict(self) -> str:
        """In words."""
        return "cannot tell" if self.better is None else f"{self.better} is better"

    @property
    def rows_needed(self) -> int | None:
        """Roughly how many rows would detect a difference as large as `value`, with the same number of questions.

        Half-widths fall with the square root of the rows; no data is read. None if `value` is 0.
        """
        if self.better is not None:
            return self.rows
        reach = self.value - self.low if self.value > 0 else self.high - self.value
        needed = math.inf if self.value == 0 else self.rows * (reach / self.value) ** 2
        if needed > 1e15:
            return None
        step: int = 10 ** max(len(str(math.floor(needed))) - 2, 0)
        return math.ceil(needed / step) * step  # two digits, rounded up

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "a": self.a,
            "b": self.b,
            "loss": self.loss,
            "verdict": self.verdict,
            "better": self.better,
            **Released.to_dict(self),
            "rows": self.rows,
            "rows_needed": self.rows_needed,
            "smallest_difference": self.smallest_difference,
            "would_tell": list(self.would_tell),
            "fixes": self.fixes,
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the difference and its interval beside 0, where both models are equally good.

        Args:
            ax: Matplotlib axes to draw on; by default those of a new figure.

        Returns:
            The axes.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from afresh.results.plots import draw

        value, low, high = self.shown()
        name = f"{self.a} minus {self.b}"
        drawn = show.Mark("", name, self.value, self.low, self.high, f"{value} [{low}, {high}]", name)
        reach = max(abs(self.low), abs(self.high)) * 1.1
        axis = f"{self.loss}, A minus B: {self.verdict}"
        return draw(show.Forest([drawn], show.zoomed([-reach, reach], self.bounds), axis), ax)

    def __repr__(self) -> str:
        """One line."""
        return self._one_line(f"{self.verdict}: ")

    def _blocks(self) -> list[show.Block]:
        models = show.Facts({"A": self.a, "B": self.b})
        title = f"{self.verdict}: {self.loss}, A minus B"
        said = [show.Line(each) for each in (self._takes(), *self._check(), *self._fixed())]
        return self._lines(title, models, *said, self._folded())

    def _about(self) -> str:
        return f"{self.loss}: {self.a} minus {self.b}"

    def _takes(self) -> str:
        smallest = show.width(self.smallest_difference)
        said = f"Differences of about {smallest} or more can be detected, if models disagree as often as these."
        if self.better is None:
            needed = self.rows_needed
            few = "more rows than anyone has" if needed is None else f"about {needed:,} rows"
            if self.would_tell:
                said += f" {in_words(self.would_tell, f'To detect a difference of {abs(self.value):.2g}')}"
            else:
                said += f" Detecting a difference of {abs(self.value):.2g} would need {few}; you have {self.rows:,}."
        return said


@dataclass(frozen=True, slots=True)
class Identical(show.Told):
    """Two models that make the same predictions for all rows, whose features are public. Nothing was asked.

    This is a fact about these rows' features, not an estimate: there is no interval and no confidence. On other rows
    the two may differ.
    """

    a: str
    b: str
    loss: str
    rows: int
    left: int
    simulated: bool = False

    verdict: ClassVar[str] = "identical on these rows"
    better: ClassVar[None] = None
    interval: ClassVar[None] = None
    low: ClassVar[None] = None
    high: ClassVar[None] = None
    confidence: ClassVar[None] = None
    value: ClassVar[float] = 0.0
    charged: ClassVar[int] = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with the keys that every comparison has."""
        names = ("a", "b", "loss", "verdict", "better", "value", "low", "high", "confidence", "rows", "charged", "left")
        return {name: getattr(self, name) for name in (*names, "simulated")}

    def __repr__(self) -> str:
        """One line."""
        return f"Identical({self.a!r} and {self.b!r} on these {self.rows:,} rows)"

    def _blocks(self) -> list[show.Block]:
        said = (
            f"Both make the same predictions for all {self.rows:,} rows. On rows with other features they may differ."
        )
        return [
            *simulation_mark(self.simulated),
            show.Title(f"{self.verdict}: {self.loss}"),
            show.Facts({"A": self.a, "B": self.b}),
            show.Line(said),
            cost_line(self.charged, self.left),
        ]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One model of a ranking."""

    name: str
    score: Answer
    to_leader: Interval | None
    """Its mean loss minus the leader's; None for the leader, for models identical to it, and if the budget ran out."""
    places: tuple[int, int]
    """The best and worst places it may have, as far as the intervals show."""
    leads: bool = False
    """Whether it is the leader, or makes the leader's predictions for all rows (with public features)."""
    confirmed: bool | None = None
    """Whether the guess of its difference from the leader was confirmed; None where nothing is guessed."""
    widened: float | None = None
    """How much wider a failed check of that guess makes later answers, as a share; None if it did not fail."""

    @property
    def place(self) -> str:
        """The place in words: 2, or 2-4 for a possible tie."""
        first, last = self.places
        return f"{first}" if first == last else f"{first}-{last}"


@dataclass(frozen=True, slots=True)
class Ranking(show.Told, Tabular):
    """Models in order of mean loss, tied where the data cannot separate them. All intervals hold at once."""

    models: tuple[Ranked, ...]
    loss: str
    confidence: float
    charged: int
    left: int
    simulated: bool = False
    would_tell: tuple[str, ...] = ()
    """If several may be the best: changes to the plan that would separate the first two, each by itself."""
    exam: bool = False
    """Whether these answers come from the exam, which costs no answers."""

    @property
    def best(self) -> tuple[str, ...]:
        """The names of all models that may be the best."""
        return tuple(model.name for model in self.models if model.places[0] == 1)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "loss": self.loss,
            "confidence": self.confidence,
            "best": list(self.best),
            "models": [
                {
                    "name": model.name,
                    "places": list(model.places),
                    "value": model.score.value,
                    "low": model.score.low,
                    "high": model.score.high,
                    "leads": model.leads,
                    "to_leader": None if model.to_leader is None else [model.to_leader.low, model.to_leader.high],
                }
                for model in self.models
            ],
            "charged": self.charged,
            "left": self.left,
            "simulated": self.simulated,
            "would_tell": list(self.would_tell),
            "exam": self.exam,
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per model.

        Returns:
            Mappings with the same keys.
        """
        return [
            {
                "name": each.name,
                "place_from": each.places[0],
                "place_to": each.places[1],
                "value": each.score.value,
                "low": each.score.low,
                "high": each.score.high,
                "leads": each.leads,
                "behind_low": None if each.to_leader is None else each.to_leader.low,
                "behind_high": None if each.to_leader is None else each.to_leader.high,
            }
            for each in self.models
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw the models in order with their intervals, those that may be the best in color.

        Args:
            ax: Matplotlib axes to draw on; by default those of a new figure.

        Returns:
            The axes.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from afresh.results.plots import draw

        marks = [
            show.Mark(
                each.place,
                each.name,
                each.score.value,
                each.score.low,
                each.score.high,
                " ".join(each.score.shown()),
                each.name,
                strong=each.places[0] == 1,
            )
            for each in self.models
        ]
        ends = [end for each in self.models for end in (each.score.low, each.score.high)]
        scale = show.zoomed(ends, self.models[0].score.bounds)
        return draw(show.Forest(marks, scale, f"{self.loss}, smaller is better: {self._verdict}"), ax)

    @property
    def _verdict(self) -> str:
        best = self.best
        return f"{visible(best[0])} is the best" if len(best) == 1 else f"{len(best)} may be the best"

    def __repr__(self) -> str:
        """One line."""
        mark = ", simulated" if self.simulated else ""
        return f"Ranking({self._verdict} of {len(self.models)} at {show.percent(self.confidence)}{mark})"

    def _blocks(self) -> list[show.Block]:
        rows, noise = [], noise_column(model.score for model in self.models)
        for place, model in enumerate(self.models):
            value, low, high = show.with_interval(model.score.value, model.score.low, model.score.high)
            behind = "-" if model.leads else "" if model.to_leader is None else _behind(model.to_leader)
            rows.append([model.place, model.name, value, *noise[place : place + 1], f"[{low}, {high}]", behind])
        header = ["place", "model", "loss", *(["noise"] if noise else []), "interval", "behind the first"]
        scores = {each.name: (each.score.confirmed, each.score.widened) for each in self.models}
        behinds = {f"{each.name} behind the first": (each.confirmed, each.widened) for each in self.models}
        fixed = next((each.score.fixes for each in self.models if each.score.fixes is not None), None)
        return [
            *simulation_mark(self.simulated),
            show.Title(f"{'exam: ' if self.exam else ''}{self._verdict}: {self.loss}, {show.percent(self.confidence)}"),
            show.Table(header, rows),
            show.Line("A place such as 2-4 is a tie: the data cannot tell which of these places the model has."),
            *([show.Line(in_words(self.would_tell, "To tell the first two apart"))] if self.would_tell else []),
            *map(show.Line, checks_in_words(scores | behinds)),
            *([] if fixed is None else [show.Line(f"The plan is now fixed: {fixed}.")]),
            exam_line(self.left) if self.exam else cost_line(self.charged, self.left),
        ]


def _behind(interval: Interval) -> str:
    _, low, high = show.with_interval(0.0, interval.low, interval.high)
    return f"[{low}, {high}]"


def rank(
    names: Sequence[str],
    scores: Sequence[Answer],
    to_leader: Sequence[Interval | None],
    leader: int | None = None,
    same: Sequence[bool] = (),
    scored_on: Sequence[object] = (),
    compared_on: Sequence[object] = (),
) -> list[Ranked]:
    """Places from intervals that all hold at once: a model is ahead of another if any two of their intervals are apart.

    `leader` is the leader's position, and `same` marks models with its predictions: they are 0 behind it by definition.
    With public features, true values are about the rows that answered: `scored_on` and `compared_on` say which. Places
    are about one truth, so they follow from the answers of the same rows: those that most comparisons were made on.
    """
    leads = [i == leader or (bool(same) and same[i]) for i in range(len(names))]
    behind = [Interval(0.0, 0.0) if leading else to_leader[i] for i, leading in enumerate(leads)]

    compared = [on for on, ends in zip(compared_on, to_leader, strict=bool(compared_on)) if ends is not None]
    (target, _), *_ = Counter(map(_rows, compared or scored_on)).most_common(1) or [(None, 0)]

    def counts(on: Sequence[object], i: int) -> bool:
        return not on or _rows(on[i]) == target

    def ahead(i: int, j: int) -> bool:
        mine, other = behind[i], behind[j]
        apart = mine is not None and other is not None and mine.high < other.low
        apart = apart and all(leads[each] or counts(compared_on, each) for each in (i, j))
        return apart or (counts(scored_on, i) and counts(scored_on, j) and scores[i].high < scores[j].low)

    count = range(len(names))
    found = []
    for i in count:
        better, worse = sum(ahead(j, i) for j in count), sum(ahead(i, j) for j in count)
        found.append(Ranked(names[i], scores[i], to_leader[i], (1 + better, len(names) - worse), leads[i]))
    return sorted(found, key=lambda model: (model.places, model.score.value))


def _rows(on: object) -> object:
    """The rows that answered, whatever the number of parts; None where features are hidden, and all are one truth."""
    return frozenset(on) if isinstance(on, list) else on
