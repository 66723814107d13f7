"""A loss that somebody wrote."""

from __future__ import annotations

import functools
import hashlib
import pickle
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
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
    values are clipped to [0, 1], without a word. `name` says which loss it is: one name, one function; it is published
    together with a short hash of the function and of what it closes over. The function is handed labels, so whoever
    passes it is trusted with them, and with how long it takes.
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
            given, truth = first, first
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
                # Copies, as it may write into what it is handed.
                losses = np.array(self.function(given.copy(), truth.copy()), dtype=np.float64)
        except Exception:  # whatever it says may quote a row
            return None
        return losses if losses.shape == (len(given),) else None


def _mark(function: Callable[..., Any]) -> str:
    """Tells functions of one name apart. Where it cannot see the same in two, a repeat is merely paid again."""
    return hashlib.sha256(_seen(function).encode()).hexdigest()[:12]


def _seen(value: Any, above: tuple[Any, ...] = ()) -> str:
    """What there is to see of a function, or of what it works with: its state, not only what it shows."""
    if any(value is each for each in above):  # it calls itself
        return "above"

    def listed(*values: Any) -> str:
        return "\n".join(_seen(each, (*above, value)) for each in values)

    if isinstance(value, functools.partial):
        return listed(value.func, value.args, value.keywords) if value.args or value.keywords else listed(value.func)
    if isinstance(value, FunctionType):
        within = [cell.cell_contents for cell in value.__closure__ or ()]
        state = listed(value.__defaults__, value.__kwdefaults__, *within)
        named = [value.__globals__[name] for name in value.__code__.co_names if name in value.__globals__]
        known = "\n".join(_of_code(each.__code__) if isinstance(each, FunctionType) else _state(each) for each in named)
        return f"{value.__qualname__}\n{_of_code(value.__code__)}\n{state}\n{known}"
    if isinstance(value, MethodType):
        return listed(value.__func__, value.__self__)
    if callable(value) and isinstance(called := type(value).__call__, FunctionType):
        return f"{listed(called)}\n{_state(value)}"
    return _state(value)


def _state(value: Any) -> str:
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception:  # a pickle may run into anything
        inside = getattr(value, "__dict__", None)
        if isinstance(inside, dict) and not isinstance(value, ModuleType):
            return f"{type(value).__qualname__} {_state(inside)}"
        shown = repr(value)  # what is known by its address alone may be another object the next time
        return f"{shown} {secrets.token_hex(16)}" if " at 0x" in shown else shown


def _of_code(code: Any) -> str:
    """What a function does, without the addresses of functions within."""
    constants = [_of_code(each) if hasattr(each, "co_code") else repr(each) for each in code.co_consts]
    return repr([code.co_code.hex(), constants, code.co_names, code.co_varnames])
