"""Precision, recall, F1, calibration error and AUC of a model, as functions of means whose intervals all hold.

With two classes the second is the positive one, unless `positive` names another. A missing label counts as not
positive.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.losses import Brier, ZeroOne
from afresh.models.vectors import Rows, Values
from afresh.queries.asked import Asked
from afresh.results.answer import Answer
from afresh.statistics.base import Asker

if TYPE_CHECKING:
    from afresh.models.labelled import LabelledRows

_Function = Callable[[NDArray[Any], NDArray[np.bool_]], Values]
_Cell = tuple[str, _Function]
_CUTS = "increasing numbers between 0 and 1"
_MISSING = "A row whose label is missing counts as not positive."
_TENTHS = tuple(i / 10 for i in range(1, 10))


_INVALID = "A row without a label counts as not positive, and one without a valid prediction as not predicted positive."


class ModelStatistic(Protocol):
    """Something to measure on a model's predictions."""

    @property
    def price(self) -> int:
        """The most answers it costs; what was asked before is free."""
        ...

    def measure_model(self, rows: LabelledRows, model: Any, name: str | None, analyst: str) -> Answer:
        """Ask for its means and combine them.

        Args:
            rows: Rows with labels, which `Holdout.measure` passes.
            model: A model or predictions.
            name: The model's name in the record.
            analyst: The name of the analyst who asks.

        Returns:
            Its answer.
        """
        ...


@dataclass
class _Cells:
    """Means over rows of functions of a model's prediction and of whether the label is positive."""

    rows: LabelledRows
    model: Any
    name: str | None
    analyst: str
    positive: Any
    probabilities: bool = False

    def __post_init__(self) -> None:
        classes = self.rows.labels.classes
        if self.positive is None and len(classes) != 2:
            raise InvalidArgument(f"there are {len(classes)} classes; name the positive one with positive=.")
        self.code = 1 if self.positive is None else checks.place("positive", self.positive, classes)
        loss = Brier() if self.probabilities else ZeroOne()
        names = None if self.name is None else [self.name]
        (self.predicted,) = self.rows.predict([self.model], names, loss)
        self.asker = Asker(self.rows.desk, self.analyst)

    @property
    def _missing(self) -> str:
        return _INVALID if self.rows.visibility == "hidden" else _MISSING

    def _values(self) -> NDArray[Any]:
        """Predicted classes, or probabilities of the positive one; not positive if there is no prediction."""
        values, invalid = self.predicted.made()
        if self.probabilities and values.ndim == 2:
            values = np.ascontiguousarray(values[:, self.code])
        elif self.probabilities and self.code == 0:
            values = 1 - values
        if invalid is None:
            return values
        return np.where(invalid, values.dtype.type(0 if self.probabilities or self.code else 1), values)

    def ask(self, cells: Sequence[_Cell], binary: bool) -> None:
        """The means of named functions of (prediction, whether the label is positive), one answer each."""
        code, codes, values = self.code, self.rows.labels.codes, functools.cache(self._values)

        def of(function: _Function) -> Callable[[Rows], Values]:
            return lambda part: function(values()[part], codes[part] == code)

        queries = [
            self.rows.question(
                f"{words} of {self.predicted.name}",
                ["cell", words, code, self.predicted.digest],
                of(f),
                levels=2 if binary else None,
            )
            for words, f in cells
        ]
        self.asker.ask_parts(
            [
                Asked(
                    queries=(each,),
                    question=each.text,
                    bounds=each.bounds,
                    about_value="the mean of this",
                    about_missing=self._missing,
                )
                for each in queries
            ]
        )

    def answer(self, words: str, rule: str, parameters: dict[str, Any] | None = None) -> Answer:
        name = self.rows.words(f"{words} of {self.predicted.name}")
        return self.asker.answer(name, rule, parameters or {}, (0.0, 1.0), self._missing)


@dataclass(frozen=True, slots=True)
class Precision:
    """Of the rows predicted positive, the share that are positive.

    Args:
        positive: The class that counts as positive; the second of two unless it is given.
    """

    positive: Any = None
    price = 2

    def measure_model(self, rows: LabelledRows, model: Any, name: str | None, analyst: str) -> Answer:
        """True positives to false positives."""
        cells = _Cells(rows, model, name, analyst, self.positive)
        cells.ask([_true_positives(cells.code), _false_positives(cells.code)], True)
        return cells.answer("precision", "ratio")


@dataclass(frozen=True, slots=True)
class Recall:
    """Of the positive rows, the share that are predicted positive.

    Args:
        positive: The class that counts as positive; the second of two unless it is given.
    """

    positive: Any = None
    price = 2

    def measure_model(self, rows: LabelledRows, model: Any, name: str | None, analyst: str) -> Answer:
        """True positives to false negatives."""
        cells = _Cells(rows, model, name, analyst, self.positive)
        cells.ask([_true_positives(cells.code), _false_negatives(cells.code)], True)
        return cells.answer("recall", "ratio")


@dataclass(frozen=True, slots=True)
class F1:
    """The harmonic mean of precision and recall: tp/(tp + (fp + fn)/2).

    Args:
        positive: The class that counts as positive; the second of two unless it is given.
    """

    positive: Any = None
    price = 2

    def measure_model(self, rows: LabelledRows, model: Any, name: str | None, analyst: str) -> Answer:
        """True positives, and everything positive in only one of the two."""
        cells = _Cells(rows, model, name, analyst, self.positive)
        code = cells.code
        wrong = ("positive in prediction or in truth, not both", lambda p, y: (p == code) != y)
        cells.ask([_true_positives(code), wrong], True)
        return cells.answer("F1", "ratio", {"weight": 0.5})


def _true_positives(code: int) -> _Cell:
    return "true positives", lambda p, y: (p == code) & y


def _false_positives(code: int) -> _Cell:
    return "false positives", lambda p, y: (p == code) & ~y


def _false_negatives(code: int) -> _Cell:
    return "false negatives", lambda p, y: (p != code) & y


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """Expected calibration error: the sum over bins of |E (y - p) 1_bin|, where p is the positive's probability.

    Bins are [edge, next edge), the last one closed, from 0 through `edges` to 1. Each bin costs two answers: y (1 - p)
    and (1 - y) p within the bin, whose difference is y - p.

    Args:
        edges: Where bins meet, in increasing order between 0 and 1.
        positive: The class that counts as positive; the second of two unless it is given.
    """

    edges: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    positive: Any = None

    def __post_init__(self) -> None:
        """Check the edges."""
        object.__setattr__(self, "edges", checks.rising("edges", self.edges, 1, _CUTS, 0.0, 1.0))

    @property
    def price(self) -> int:
        """Two answers per bin."""
        return 2 * (len(self.edges) + 1)

    def measure_model(self, rows: LabelledRows, model: Any, name: str | None, analyst: str) -> Answer:
        """Add up the errors of all bins."""
        cells = _Cells(rows, model, name, analyst, self.positive, probabilities=True)
        bounds = [0.0, *self.edges, 1.0]
        wanted = []
        for i, (a, b) in enumerate(itertools.pairwise(bounds)):
            top = np.inf if i == len(self.edges) else b

            def within(p: Any, a: float = a, top: float = top) -> Any:
                return (p >= a) & (p < top)

            words = f"in [{a!r}, {b!r}{']' if top == np.inf else ')'}"
            wanted.append((f"y (1 - p) {words}", lambda p, y, within=within: (1 - p) * (y & within(p))))
            wanted.append((f"(1 - y) p {words}", lambda p, y, within=within: p * (~y & within(p))))
        cells.ask(wanted, False)
        return cells.answer("calibration error", "calibration error")


@dataclass(frozen=True, slots=True)
class AUC:
    """The area under the ROC curve, bounded by the rates at some thresholds of the positive's probability.

    AUC is a mean over pairs of rows, which a guard of single rows cannot answer for the price of one mean. But at every
    threshold t_1 < ... < t_m, true and false positive rates are shares within a group, with intervals from two answers
    each, and a curve that rises from (0, 0) to (1, 1) between them has an area between the areas of two staircases:
    sum_j (f_j - f_j+1) r_j+1 with all r low and all f high, and sum_j (f_j - f_j+1) r_j with all r high and all f low.
    More thresholds narrow the stairs, at four answers each.

    Args:
        thresholds: Increasing numbers between 0 and 1.
        positive: The class that counts as positive; the second of two unless it is given.
    """

    thresholds: tuple[float, ...] = _TENTHS
    positive: Any = None

    def __post_init__(self) -> None:
        """Check the thresholds."""
        object.__setattr__(self, "thresholds", checks.rising("thresholds", self.thresholds, 1, _CUTS, 0.0, 1.0))

    @property
    def price(self) -> int:
        """Four answers per threshold."""
        return 4 * len(self.thresholds)

    def measure_model(self, rows: LabelledRows, model: Any, name: str | None, analyst: str) -> Answer:
        """Ask for the rates, then compute the two staircases."""
        cells = _Cells(rows, model, name, analyst, self.positive, probabilities=True)
        wanted: list[Any] = []
        for cut in self.thresholds:
            wanted += [
                (f"positives at or above {cut!r}", lambda p, y, cut=cut: (p >= cut) & y),
                (f"positives below {cut!r}", lambda p, y, cut=cut: (p < cut) & y),
                (f"negatives at or above {cut!r}", lambda p, y, cut=cut: (p >= cut) & ~y),
                (f"negatives below {cut!r}", lambda p, y, cut=cut: (p < cut) & ~y),
            ]
        cells.ask(wanted, True)
        return cells.answer("AUC", "area")
