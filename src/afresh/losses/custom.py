"""A loss that the user wrote."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.losses.probes import digest, probes
from afresh.models.labels import Kind, Labels
from afresh.models.vectors import Rows, Values

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Custom:
    """Any function (y_true, y_pred) of two arrays, labels and predictions, that returns losses in [0, 1].

    It must treat each row by itself; this cannot be checked. If it returns NaN or raises on a row, the loss is 1, and
    values are silently clipped to [0, 1]. The function sees the labels, so its author is trusted with them, and with
    how long it takes.

    A loss is identified by its `name` and `version` and by its values on 4096 made-up predictions and labels, the same
    everywhere: all pairs of the declared classes, up to 64 classes. A loss with the same name, version and values on
    these gets the answers given before. Raise the version whenever you change what the function computes: a change that
    no made-up row reveals, without a new version, gets the old answer.

    Args:
        function: Called with labels and predictions of some rows, in this order, like scikit-learn's metrics; returns
            one loss per row.
        name: The loss's name in answers and receipts.
        kind: What predictions are: classes, probabilities or numbers.
        version: A new value for every change in what the function computes.
        mark: Not for users; `tried` sets it.
    """

    function: Callable[[Any, Any], Any] = field(repr=False)
    name: str
    kind: Kind = "numbers"
    version: int | str = 1
    mark: str = field(default="", repr=False)
    """Not for users: the name of its values on made-up rows, once the classes are known."""

    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check what can be checked without data."""
        if not callable(self.function):
            raise checks.wrong("function", self.function, "callable")
        if (order := _swapped(self.function)) is not None:
            raise InvalidArgument(
                f"the loss {self.name!r} takes ({', '.join(order)}), but a loss is called with labels first: "
                "(y_true, y_pred), like scikit-learn's metrics."
            )
        checks.text("name", self.name, "text that names the loss")
        checks.one_of("kind", self.kind, ("classes", "probabilities", "numbers"))
        if isinstance(self.version, str):
            checks.text("version", self.version, "a number or text that is new for every change")
        else:
            checks.whole("version", self.version, 0)

    @property
    def words(self) -> str:
        """The name, the version and the mark of its values on made-up rows, if it was `tried`."""
        return f"{self.name}, version {self.version}" + (f" ({self.mark})" if self.mark else "")

    def tried(self, labels: Labels) -> Self:
        """Return the same loss, marked by its present values on made-up rows; an error if it has none.

        Args:
            labels: The holdout's labels; only their classes are used.

        Returns:
            The loss with its `mark`.

        Raises:
            InvalidArgument: The function fails on every made-up row.
        """
        given, truth = probes(self.kind, () if self.kind == "numbers" else labels.classes)
        losses = self._total(given, truth)
        if losses is None:
            why = self._error(given, truth)
            raise InvalidArgument(
                f"the loss {self.name!r} fails on all of {len(given):,} made-up predictions and labels{why}; "
                "it must give one number for each row of two arrays."
            )
        return replace(self, mark=digest(losses))

    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """The function's losses, made total."""
        if self.kind == "numbers":
            known, given, truth = np.isfinite(labels.numbers[rows]), predictions[rows], labels.numbers[rows]
        else:
            names = np.asarray(labels.classes)
            codes = labels.codes[rows]
            known, truth = codes >= 0, names[codes]
            given = names[predictions[rows]] if self.kind == "classes" else predictions[rows]
        losses = self._total(given, truth)
        return np.ones(len(known)) if losses is None else np.where(known, losses, 1.0)

    def _total(self, given: NDArray[Any], truth: NDArray[Any]) -> Floats | None:
        """Losses in [0, 1] for all rows, 1 where it fails; None if it fails on every row."""
        losses = self._call(given, truth)
        if losses is None:  # one row may be to blame: try each
            one_by_one = [self._call(given[i : i + 1], truth[i : i + 1]) for i in range(len(given))]
            if all(loss is None for loss in one_by_one):
                return None
            losses = np.array([1.0 if loss is None else loss[0] for loss in one_by_one])
        losses[~np.isfinite(losses)] = 1.0
        return np.clip(losses, 0.0, 1.0, out=losses)

    def _call(self, given: NDArray[Any], truth: NDArray[Any]) -> Floats | None:
        try:
            with np.errstate(all="ignore"):
                # Copies, since it may write into its arguments.
                losses = np.array(self.function(truth.copy(), given.copy()), dtype=np.float64)
        except Exception:  # its message may quote a row
            return None
        return losses if losses.shape == (len(given),) else None

    def _error(self, given: NDArray[Any], truth: NDArray[Any]) -> str:
        """Its error on the first made-up row, which is public."""
        try:
            with np.errstate(all="ignore"):
                self.function(truth[:1].copy(), given[:1].copy())
        except Exception as error:
            return f" ({type(error).__name__}: {error})"
        return ""


def _swapped(function: Callable[[Any, Any], Any]) -> tuple[str, str] | None:
    """The names of the first two parameters, if they suggest that predictions come first."""
    try:
        names = [each.lower() for each in inspect.signature(function).parameters]
    except (TypeError, ValueError):  # some functions have no signature
        return None
    predicted = names[:1] == ["p"] or any(name.startswith(_PREDICTED) for name in names[:1])
    return (names[0], names[1]) if predicted and any(name.startswith(_TRUE) for name in names[1:2]) else None


_PREDICTED = ("y_pred", "pred", "yhat", "y_hat", "given", "guess")
_TRUE = ("y_true", "true", "truth", "label", "target", "actual", "y")
