"""The comparison of methods in every plan, and the advice that follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from afresh.mechanisms.base import TYPICAL_MEANS, Mechanism, NeverEnds, geometric_mean
from afresh.mechanisms.registry import MECHANISMS, PLANNERS
from afresh.results import show
from afresh.theory.references import fixed_questions_half_width, jung_error, main_theorem_error


@dataclass(frozen=True, slots=True)
class Method:
    """One line of the comparison: half-widths at the typical means, or why there are none."""

    name: str
    certified: bool
    half_width: Mapping[float, float] | None
    about: str
    promised: bool = True
    """Whether the widths are promised; a guess only claims its widths, and its check may fail."""

    def to_dict(self) -> dict[str, Any]:
        """Everything but the name, JSON-ready."""
        widths = None if self.half_width is None else {f"{m:g}": w for m, w in self.half_width.items()}
        told = {"certified": self.certified, "half_width": widths, "about": self.about}
        return {**told, "promised": self.promised}

    @property
    def certificate(self) -> str:
        """The certificate in a word or two."""
        if not self.certified:
            return "reference"
        return "yes" if self.promised else "yes, width not promised"

    def narrower(self, other: Method) -> bool:
        """Whether it is narrower than another at all typical means."""
        mine, theirs = self.half_width, other.half_width
        return mine is not None and theirs is not None and all(mine[mean] < theirs[mean] for mean in TYPICAL_MEANS)


def compare(chosen: Mechanism) -> dict[str, Method]:
    """The certified methods at the rows, questions and confidence of the chosen one, then the reference lines."""
    n, k, failure, answers = (
        chosen.rows,
        chosen.questions,
        chosen.failure,
        None,
    )  # the order in which planners are tried
    if chosen.answers != k:
        answers = chosen.answers
    lines = {}
    if isinstance(chosen, NeverEnds):  # the other methods are planned for the expected number
        k = answers = chosen.expected
    if chosen.method not in PLANNERS:
        lines[chosen.method] = Method(chosen.method, True, _widths(chosen.half_width), chosen.about)
    for name, planner in PLANNERS.items():
        mechanism = chosen if name == chosen.method else planner(n, k, failure, answers)
        widths = None if mechanism is None else _widths(mechanism.half_width)
        kind = MECHANISMS[name]
        lines[name] = Method(name, True, widths, kind.about if widths else kind.unavailable, kind.promised)
    for name, about, width in (
        ("jung", "differential privacy transfer (Jung et al. 2020)", lambda _: jung_error(n, k, failure)),
        (
            "paper",
            "the paper's Main Theorem with eq. (3)",
            lambda mean: main_theorem_error(n, k, failure, math.sqrt(mean * (1 - mean))),
        ),
        (
            "fixed",
            "questions fixed before any data is seen: no adaptivity",
            lambda mean: fixed_questions_half_width(n, k, failure, mean),
        ),
    ):
        lines[name] = Method(name, False, _widths(width), about)
    return lines


def table(methods: Mapping[str, Method], chosen: str) -> show.Table:
    """The comparison as a table; a star marks the chosen method."""
    return show.Table(
        ["method", *(f"±, mean {mean:g}" for mean in TYPICAL_MEANS), "certificate"],
        [
            [
                name + (" *" if name == chosen else ""),
                *(show.width(m.half_width[mean]) if m.half_width else "-" for mean in TYPICAL_MEANS),
                m.certificate,
            ]
            for name, m in methods.items()
        ],
    )


def advise(chosen: Mechanism, methods: Mapping[str, Method]) -> str:
    """What the chosen method can and cannot promise in advance, and which other would be narrower."""
    own = methods[chosen.method]
    others = [m for m in methods.values() if m.certified and m is not own and m.half_width is not None]
    words = [chosen.advice, *_compared(own, others), *_in_the_middle(own, others)]
    for rival in filter(None, (_narrowest(m for m in others if m.promised is promised) for promised in (True, False))):
        proviso = MECHANISMS[rival.name].proviso
        if _seen_narrower(rival, own):
            condition = f" {proviso}, but can promise no width" if proviso else ""
            words.append(f"{rival.name} would be narrower ({_width(rival)} instead of {_width(own)}){condition}.")
        elif rival.promised and not own.promised:
            words.append(f"{rival.name} promises {_width(rival)}.")
    return " ".join(words)


def _compared(own: Method, others: Iterable[Method]) -> list[str]:
    """Why a promise is the narrowest by the planner's measure, or where another is narrower."""
    rival = min((m for m in others if m.promised), key=_yardstick, default=None)
    if rival is None or not own.promised or _seen_narrower(rival, own):
        return []
    means = ", ".join(f"{mean:g}" for mean in TYPICAL_MEANS[:-1]) + f" and {TYPICAL_MEANS[-1]:g}"
    mine, other = (f"±{show.width(_yardstick(method))}" for method in (own, rival))
    if _yardstick(own) <= _yardstick(rival):
        return [f"Over the means {means} they are the narrowest promise, {mine} on average ({rival.name}: {other})."]
    return [f"Over the means {means} {rival.name} promises {other} on average, instead of {mine}."]


def _in_the_middle(own: Method, others: Iterable[Method]) -> list[str]:
    """Whether another promise is much narrower for means near one half, but not for rare events."""
    promises = [m for m in others if m.promised and m.half_width is not None and not m.narrower(own)]
    rival = _narrowest(promises)
    if rival is None or not own.promised or _middle(rival) > _CLEARLY * _middle(own):
        return []
    return [f"{rival.name} promises {_width(rival)} at a mean of 0.5; set typical=0.5 if your means are near it."]


def _seen_narrower(rival: Method, own: Method) -> bool:
    """Whether it is narrower at every mean, by enough to show in the printed digits."""
    return rival.narrower(own) and _width(rival) != _width(own)


def _middle(method: Method) -> float:
    return math.inf if method.half_width is None else method.half_width[0.5]


_CLEARLY = 0.95


def _yardstick(method: Method) -> float:
    widths = method.half_width
    return math.inf if widths is None else geometric_mean(widths.__getitem__)


def _narrowest(methods: Iterable[Method]) -> Method | None:
    return min(methods, key=_middle, default=None)


def _width(method: Method) -> str:
    assert method.half_width is not None
    return f"±{show.width(method.half_width[0.5])}"


def _widths(half_width: Callable[[float], float]) -> dict[float, float]:
    return {mean: half_width(mean) for mean in TYPICAL_MEANS}
