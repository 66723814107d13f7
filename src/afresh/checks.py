"""The one place where arguments are checked: a check returns a valid value or raises `InvalidArgument`.

Every refusal reads "name == value, must be ...", and the value is shown safely: a number with thousands of digits, an
object that cannot print itself or a list of a million items causes neither another error nor a page of text.
"""

from __future__ import annotations

import difflib
import itertools
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

from afresh.errors import InvalidArgument
from afresh.escaping import visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from afresh.lazy import np


MOST = 10**10  # the most rows or questions a plan considers
_LEAST_FAILURE = 1e-9  # this close to 0 or 1, floats and quadratures are still accurate enough
_LONGEST = 80  # the most characters a message quotes of a value
_DIGITS = 30  # the most digits a message quotes of a whole number
_ITEMS = 5
_MOST = 10**6  # the most items taken from a list, which may be endless


def shown(value: object) -> str:
    """A value as a message quotes it: its repr, if it has a short one."""
    try:
        if isinstance(value, int) and abs(value) >= 10**_DIGITS:
            return f"a whole number with {int(value.bit_length() * math.log10(2)) + 1:,} digits"
        if type(value) in (list, tuple) and isinstance(value, Sequence):
            listed = [shown(item) for item in value[:_ITEMS]]
            listed += ["..."] if len(value) > _ITEMS else []
            words = ", ".join(listed) + ("," if len(value) == 1 and isinstance(value, tuple) else "")
            return f"[{words}]" if isinstance(value, list) else f"({words})"
        words = repr(value)
        if not isinstance(value, str):
            words = " ".join(words.split())  # numpy and pandas write several lines
    except Exception:  # whatever its author wrote
        return f"<{type(value).__name__}>"
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."


def wrong(name: str, value: object, must_be: str) -> InvalidArgument:
    """The error to raise for a value."""
    return InvalidArgument(f"{name} == {shown(value)}, must be {must_be}.")


def number(
    name: str,
    value: object,
    must_be: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> float:
    """A finite number from `least` to `most`, excluding `above` and `below`, as a float without a signed zero."""
    found = _float(value)
    if math.isfinite(found) and least <= found <= most and above < found < below:
        return found
    raise wrong(name, value, must_be)


def whole(name: str, value: object, least: int, most: int = MOST, where: str = "") -> int:
    """A whole number from `least` to `most`."""
    try:
        found = None if isinstance(value, bool) else int(operator.index(value))  # type: ignore[arg-type]
    except Exception:  # not a whole number, or an object whose own code fails
        found = None
    if found is not None and least <= found <= most:
        return found
    must_be = "a whole number, " if found is None else ""
    must_be += f"at most {most:,}{where}" if found is not None and found > most else f"at least {least:,}"
    raise wrong(name, value, must_be)


def confidence(value: object) -> float:
    """A probability, not too near 0 or 1."""
    must_be = f"a number in (0, 1), for example 0.95, and {_LEAST_FAILURE:g} or more away from both ends"
    return number("confidence", value, must_be, least=_LEAST_FAILURE, most=1 - _LEAST_FAILURE)


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise wrong(name, value, "True or False")
    return value


def share(name: str, value: object, of: str = "") -> float:
    """A number from 0 to 1."""
    return number(name, value, f"a number from 0 to 1{of}", least=0, most=1)


def means(name: str, value: object) -> tuple[float, ...]:
    """One mean or several, each a share of the range between the bounds."""
    found = numbers(value) if iterated(value) is not None else [number(name, value, _MEANS, least=0, most=1)]
    if not found or not all(0 <= mean <= 1 for mean in found):
        raise wrong(name, value, _MEANS)
    return tuple(found)


_MEANS = "a number from 0 to 1, or several"


def between_0_and_1(name: str, value: object) -> float:
    """A number from 0 to 1, both excluded."""
    return number(name, value, "a number between 0 and 1", above=0, below=1)


def precision(value: object) -> float:
    """A half-width that is enough."""
    return number("precision", value, "a half-width in the answer's units, above 0", above=0)


def bounds(name: str, value: object) -> tuple[float, float]:
    """Two numbers in order, with a finite difference."""
    found = numbers(value)
    if len(found) == 2 and found[0] < found[1] and math.isfinite(found[1] - found[0]):
        return found[0], found[1]
    raise wrong(name, value, "two finite numbers (low, high) with low < high, chosen without looking at the data")


_CLOSEST, _FARTHEST = 1e-120, 1e150  # then the square is an ordinary number, and so is that of closer bounds


def squared_bounds(name: str, value: object) -> tuple[float, float]:
    """Two numbers in order, the square of whose distance is a number."""
    low, high = bounds(name, value)
    if not _CLOSEST < high - low < _FARTHEST:
        must_be = "neither so far apart nor so close that the square of their distance is not a number; use other units"
        raise wrong(name, value, must_be)
    return low, high


def rising(
    name: str, value: object, fewest: int, must_be: str, low: float = -math.inf, high: float = math.inf
) -> tuple[float, ...]:
    """Strictly increasing numbers between `low` and `high`, both excluded."""
    found = numbers(value)
    if len(found) >= fewest and all(a < b for a, b in itertools.pairwise((low, *found, high))):
        return tuple(found)
    raise wrong(name, value, must_be)


def numbers(value: object) -> list[float]:
    """Numbers in the given order; none if there is anything else, or no order."""
    try:
        if isinstance(value, Iterable) and not isinstance(value, str | bytes | set | frozenset | Mapping):
            found = [_float(item) for item in itertools.islice(value, _MOST + 1)]
            return found if len(found) <= _MOST and all(map(math.isfinite, found)) else []
    except Exception:  # an object whose own code fails
        pass
    return []


def iterated(value: object) -> Iterator[Any] | None:
    """The items of an iterable; a zero-dimensional array only looks like one."""
    try:
        return iter(value)  # type: ignore[call-overload, no-any-return]
    except Exception:  # not a list, or an object whose own code fails
        return None


def listed(name: str, value: object, must_be: str) -> tuple[object, ...]:
    """A non-empty list of anything, in the given order."""
    try:
        if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
            found = tuple(itertools.islice(value, _MOST + 1))
            if 0 < len(found) <= _MOST:
                return found
    except Exception:  # an object whose own code fails
        pass
    raise wrong(name, value, must_be)


def array(name: str, value: object, must_be: str, least: float, most: float = math.inf) -> NDArray[np.float64]:
    """A number or an array of numbers of any shape, from `least` to `most`."""
    try:
        given = np.asarray(value)
        with np.errstate(over="ignore"):
            plain = given if given.dtype.kind in "iuf" else np.frompyfunc(_float, 1, 1)(given)
            found = np.asarray(plain, dtype=np.float64)
        if bool(np.all((found >= least) & (found <= most))):
            return found
    except Exception:  # rows of different lengths, or an object whose own code fails
        pass
    raise wrong(name, value, must_be)


def text(name: str, value: object, must_be: str) -> str:
    """Text that can be stored: neither blank nor with a lone surrogate."""
    if isinstance(value, str) and value.strip() and not any("\ud800" <= c <= "\udfff" for c in value):
        return value
    raise wrong(name, value, must_be)


def analyst(value: object, name: str = "analyst") -> str:
    """An analyst's name. Budgets are shared by these, so two that look the same must be the same."""
    if isinstance(value, str) and 0 < len(value) <= 200 and value == value.strip() == visible(value):
        return value
    raise wrong(name, value, "a name of at most 200 visible characters, without spaces around it")


def shares(value: object) -> dict[str, int]:
    """Names of analysts, and how many answers each may have."""
    if not isinstance(value, Mapping):
        raise wrong("shares", value, "a mapping of names to numbers of answers")
    return {analyst(name): whole(f"the share of {shown(name)}", each, 0) for name, each in value.items()}


def place(name: str, value: object, choices: Sequence[object]) -> int:
    """The position of a value among the choices."""
    try:
        return choices.index(value)
    except Exception:  # none of them, or an object whose own code fails
        raise wrong(name, value, f"one of {shown(list(choices))}") from None


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """One of the given names."""
    if isinstance(value, str) and value in choices:
        return value
    raise wrong(name, value, f"one of {', '.join(choices)}{meant(value, choices)}")


def meant(value: object, choices: Collection[str]) -> str:
    """The most similar of the names as a question, or nothing if there is none."""
    near = difflib.get_close_matches(value.lower(), choices, 1) if isinstance(value, str) and len(value) < 64 else []
    return "".join(f" (did you mean {one!r}?)" for one in near)


def _float(value: object) -> float:
    """The value as a float; NaN for anything that is not a number, such as text, truth values and arrays."""
    try:
        if isinstance(value, Real | Decimal) and not isinstance(value, bool):
            return float(value) + 0.0
    except Exception:  # too large for a float, or an object whose own code fails
        pass
    return math.nan
