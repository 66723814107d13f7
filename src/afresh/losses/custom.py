"""A loss that somebody wrote."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.labels import Kind, Labels
from afresh.queries.vector import Rows, Values

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Custom:
    """Any function of predictions and labels, two arrays of equal length, that gives an array of losses in [0, 1].

    It must treat each row by itself; nothing can check that. Where it gives NaN, or raises on a row, the loss is 1, and
    values are clipped to [0, 1], without a word. `name` says which loss it is: one name, one function. It is handed
    labels, so whoever passes it is trusted with them.
    """

    function: Callable[[Any, Any], Any] = field(repr=False)
    name: str
    kind: Kind = "numbers"

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check what can be checked without data."""
        if not callable(self.function):
            raise InvalidArgument(f"function == {self.function!r}, must be callable.")
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidArgument(f"name == {self.name!r}, must be words that name the loss.")
        if self.kind not in ("classes", "probabilities", "numbers"):
            raise InvalidArgument(f"kind == {self.kind!r}, must be 'classes', 'probabilities' or 'numbers'.")

    @property
    def words(self) -> str:
        """The name, and a mark of the code behind it."""
        return f"{self.name} ({_mark(self.function)})"

    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """What the function says, made total."""
        if self.kind == "numbers":
            known, given, truth = np.isfinite(labels.numbers[rows]), predictions[rows], labels.numbers[rows]
        else:
            names = np.asarray(labels.classes)
            codes = labels.codes[rows]
            known, truth = codes >= 0, names[codes]
            given = names[predictions[rows]] if self.kind == "classes" else predictions[rows]
        losses = self._call(given, truth)
        if losses is None:  # some row may be to blame: ask for each
            one_by_one = (self._call(given[i : i + 1], truth[i : i + 1]) for i in range(len(given)))
            losses = np.array([1.0 if loss is None else loss[0] for loss in one_by_one])
        losses = np.where(known & np.isfinite(losses), losses, 1.0)
        return np.clip(losses, 0.0, 1.0, out=losses)

    def check(self, predictions: NDArray[Any], labels: Labels) -> None:
        """Try it on the first predictions and a label that is public: a plain mistake is told before anything is paid.

        The label is the first class, or the prediction itself.
        """
        first = predictions[:2]
        if self.kind == "numbers":
            given, truth = first, first.copy()
        else:
            names = np.asarray(labels.classes)
            given, truth = (names[first] if self.kind == "classes" else first), names[np.zeros(len(first), int)]
        if self._call(given, truth) is None:
            raise InvalidArgument(
                f"the loss {self.name!r} fails on two predictions, or does not give one number for each of them."
            )

    def _call(self, given: NDArray[Any], truth: NDArray[Any]) -> Floats | None:
        try:
            with np.errstate(all="ignore"):
                losses = np.array(self.function(given, truth), dtype=np.float64)
        except Exception:  # whatever it says may quote a row
            return None
        return losses if losses.shape == (len(given),) else None


def _mark(function: Callable[..., Any]) -> str:
    """Tells functions of one name apart. Where it cannot see the same in two, a repeat is merely paid again."""
    while isinstance(function, functools.partial) and not function.args and not function.keywords:
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None:
        said = [repr(function)]
    else:
        closure: Sequence[Any] = getattr(function, "__closure__", None) or ()
        said = [function.__qualname__, _of_code(code), repr(getattr(function, "__defaults__", None))]
        said += [repr(cell.cell_contents) for cell in closure]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:12]


def _of_code(code: Any) -> str:
    """What a function does, without the addresses of functions within."""
    constants = [_of_code(each) if hasattr(each, "co_code") else repr(each) for each in code.co_consts]
    return repr([code.co_code.hex(), constants, code.co_names, code.co_varnames])
