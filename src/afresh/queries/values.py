"""The types of the query language, and functions on plain Python values that need more than an operator.

A number is a finite float, NULL is None. The rows of `operations` say which operation each function evaluates.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta
from enum import Enum

# ASCII digits only; spaces around; match it against the whole text, including a trailing newline
NUMBER_TEXT = r" *[+-]?([0-9]{1,50}(\.[0-9]{0,50})?|\.[0-9]{1,50})([eE][+-]?[0-9]{1,2})? *"
LARGEST_WHOLE = 2.0**53  # of `to_text`

Value = bool | float | str | date | datetime | None


class Type(Enum):
    """The type of an expression or column."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"


# the names of types in questions, and in DuckDB
SQL_TYPES = {
    Type.BOOLEAN: "BOOLEAN",
    Type.NUMBER: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


def every(*conditions: bool | None) -> bool | None:
    """Three-valued AND: one false decides."""
    return False if False in conditions else None if None in conditions else True


def some(*conditions: bool | None) -> bool | None:
    """Three-valued OR: one true decides."""
    return True if True in conditions else None if None in conditions else False


def chosen(*args: Value) -> Value:
    """CASE: what follows the first condition that is true, or else the last operand."""
    return next((value for test, value in zip(args[:-1:2], args[1:-1:2], strict=True) if test is True), args[-1])


def round_half_away(x: float) -> float:
    """The nearest whole number; of two, the one farther from zero."""
    whole = math.floor(abs(x))
    return math.copysign(whole + (abs(x) - whole >= 0.5), x)


def like(text: str, pattern: str) -> bool:
    """Match by the set of places in the text where the pattern read so far can end: no backtracking for any text."""
    places = {0}
    for character in pattern:
        if character == "%":
            places = set(range(min(places), len(text) + 1)) if places else places
        else:
            places = {place + 1 for place in places if place < len(text) and character in ("_", text[place])}
    return len(text) in places


def lower(text: str) -> str:
    """The text with ASCII letters in lower case: bytes have no others."""
    return text.encode().lower().decode()


def upper(text: str) -> str:
    """The text with ASCII letters in upper case."""
    return text.encode().upper().decode()


def substring(text: str, start: float, length: float = math.inf) -> str:
    """This many code points of a text, from a start counted from 1."""
    return text[int(start) - 1 :][: int(min(length, len(text)))]


def to_number(text: str) -> float | None:
    """The nearest double, if the whole text is a number."""
    return float(text.strip(" ")) if re.fullmatch(NUMBER_TEXT, text) else None


def to_text(x: float) -> str | None:
    """The digits of a whole number."""
    return str(int(x)) if x.is_integer() and abs(x) <= LARGEST_WHOLE else None


def epoch(when: date) -> int:
    """Whole seconds since 1970-01-01 00:00:00, rounded down."""
    start = datetime(1970, 1, 1) if isinstance(when, datetime) else date(1970, 1, 1)
    return (when - start) // timedelta(seconds=1)
