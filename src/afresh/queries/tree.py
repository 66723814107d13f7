"""The one expression tree that parsers make and engines see.

What an expression means, on every engine:

- A number is a **finite IEEE double or NULL**. NaN, an infinity in a column, and every operation whose result
  is not finite (overflow, x / 0, ln(-1), ...) give NULL. Integers and decimals are read as doubles. Zero has no
  sign that any operation could see.
- Comparisons with NULL are NULL; AND, OR, NOT are three-valued. Text compares by code point.
- A date or timestamp lies in the years 1 to 9999 of the (proleptic) Gregorian calendar, anything else in a column
  is NULL; timestamps have microseconds and no zone (zoned ones are read in UTC).
- `least`, `greatest` and `coalesce` skip NULL. `case` takes the first condition that is true, not NULL.
- `modulo` has the sign of the dividend (C's fmod), `round` goes half away from zero, `sign(0)` is 0.
- `lower` and `upper` map the 26 letters of ASCII and nothing else: the one mapping all engines share. `length`
  and `substring` count code points, `trim` drops only spaces (U+0020).
- `like` knows `%` (any text, also over lines) and `_` (one code point) and has no escape character.
  `starts_with`, `ends_with` and `contains` compare code points; the empty text is in every text.
- `date_part` gives whole numbers: `dow` is 0 on Sunday to 6, `isodow` 1 on Monday to 7, `doy` 1 to 366, `second`
  drops the fraction, `epoch` counts whole seconds since 1970-01-01 00:00:00, rounded down. Differences of dates
  are made of these, and exact: every count of seconds fits a double.
- `to_number` reads the whole text by the grammar `NUMBER_TEXT`, to the nearest double; other text gives NULL. Its
  numbers cannot over- or underflow, so that no engine's parser can raise.
- `to_text` writes a whole number of at most 2^53 in plain decimal digits (-0.0 is 0); any other number gives NULL,
  because engines write fractions differently.

No row can make an expression fail: that is what lets an engine keep silent about rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum, StrEnum

# ASCII digits only; spaces around; to be matched against the whole text, a trailing newline included
NUMBER_TEXT = r" *[+-]?([0-9]{1,50}(\.[0-9]{0,50})?|\.[0-9]{1,50})([eE][+-]?[0-9]{1,2})? *"
LARGEST_WHOLE = 2.0**53  # of `to_text`
DATE_PARTS = ("year", "month", "day", "dow", "isodow", "doy", "epoch")
TIME_PARTS = ("hour", "minute", "second")  # only of timestamps

Value = bool | float | str | date | datetime | None


class Type(Enum):
    """The type of an expression or column."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"


class Op(StrEnum):
    """Every operation an engine must know. Operands are of one type unless said otherwise."""

    AND = "and"  # booleans, two or more
    OR = "or"
    NOT = "not"
    IS_TRUE = "is_true"  # never NULL
    IS_NULL = "is_null"  # any type; never NULL
    EQUAL = "equal"
    LESS = "less"  # not for booleans
    LESS_EQUAL = "less_equal"
    IN = "in"  # a value, then one or more literals, none NULL
    LIKE = "like"  # text, a literal pattern
    STARTS_WITH = "starts_with"  # text, text
    ENDS_WITH = "ends_with"
    CONTAINS = "contains"
    CASE = "case"  # condition, result, condition, result, ..., default
    COALESCE = "coalesce"
    LEAST = "least"  # not for booleans
    GREATEST = "greatest"
    ADD = "add"  # numbers from here on
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    MODULO = "modulo"
    POWER = "power"
    NEGATE = "negate"
    ABS = "abs"
    SIGN = "sign"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"  # to an integer
    EXP = "exp"
    LN = "ln"
    LOG10 = "log10"
    SQRT = "sqrt"
    LOWER = "lower"  # text from here on
    UPPER = "upper"
    TRIM = "trim"
    SUBSTRING = "substring"  # text, literal whole start >= 1, and maybe a literal whole length >= 0
    LENGTH = "length"  # a number
    TO_NUMBER = "to_number"  # of text
    TO_TEXT = "to_text"  # of a number
    PART = "date_part"  # a literal of DATE_PARTS or TIME_PARTS, then a date or timestamp; a number


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the data, by its real name."""

    name: str
    type: Type

    @property
    def size(self) -> int:
        """One node."""
        return 1

    @property
    def depth(self) -> int:
        """A leaf."""
        return 1


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; None is a NULL of the given type. Numbers are finite floats, never -0.0."""

    value: Value
    type: Type

    @property
    def size(self) -> int:
        """One node."""
        return 1

    @property
    def depth(self) -> int:
        """A leaf."""
        return 1


@dataclass(frozen=True, slots=True)
class Call:
    """An operation on expressions. `size` and `depth` are kept, so that no walk can take long unnoticed.

    `serialized` is kept once it is known: what is made of parts then takes no second walk over them.
    """

    op: Op
    args: tuple[Node, ...]
    type: Type
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)
    serialized: str | None = field(init=False, compare=False, repr=False, default=None)

    def __post_init__(self) -> None:
        """Measure the tree once, from its parts."""
        object.__setattr__(self, "size", 1 + sum(arg.size for arg in self.args))
        object.__setattr__(self, "depth", 1 + max((arg.depth for arg in self.args), default=0))


Node = Column | Literal | Call


def walk(node: Node) -> Iterator[Node]:
    """Every node of a tree, without recursion."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Call):
            stack.extend(node.args)


def columns(node: Node) -> set[str]:
    """The names of the columns an expression reads."""
    return {part.name for part in walk(node) if isinstance(part, Column)}
