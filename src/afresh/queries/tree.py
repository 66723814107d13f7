"""The one expression tree that parsers make and engines see.

What an expression means, on every engine:

- A number is a **finite IEEE double or NULL**. NaN, an infinity in a column, and every operation whose result
  is not finite (overflow, x / 0, ln(-1), ...) give NULL. Integers and decimals are read as doubles.
- Comparisons with NULL are NULL; AND, OR, NOT are three-valued. Text compares by code point.
- A date or timestamp is a finite one or NULL; timestamps have microseconds and no zone (zoned ones are read
  in UTC).
- `least`, `greatest` and `coalesce` skip NULL. `case` takes the first condition that is true, not NULL.
- `modulo` has the sign of the dividend (C's fmod), `round` goes half away from zero, `sign(0)` is 0.
- `lower` and `upper` map single characters (Unicode), `length` counts code points, `trim` drops only spaces.
- `like` knows `%` and `_` and has no escape character.

No row can make an expression fail: that is what lets an engine keep silent about rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum, StrEnum

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
    LIKE = "like"  # text, pattern
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
    LENGTH = "length"  # a number


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
    """An operation on expressions. `size` and `depth` are kept, so that no walk can take long unnoticed."""

    op: Op
    args: tuple[Node, ...]
    type: Type
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

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
