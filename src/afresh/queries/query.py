"""A question: the row function psi: X -> [0, 1] of guarantees.md, section 0, and its name (`digest`)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from afresh import checks
from afresh.errors import InvalidArgument, QueryError
from afresh.queries.bounds import never_missing, range_of
from afresh.queries.canonical import canonical
from afresh.queries.parse import parse
from afresh.queries.serialize import serialize
from afresh.queries.text import number, readable
from afresh.queries.tree import Call, Literal, Node, Op, Type, columns
from afresh.queries.typing import describe

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.moments import Moments, Span

VERSION = "afresh-query-v2"  # part of every digest; changes when the meaning of a tree does
_as_json = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Query:
    """A condition or a bounded number of one row, as a total function psi into [0, 1].

    A number is clipped to `bounds` and rescaled; a condition is 1 where it is true. NULL, NaN and infinite
    values count as `missing` (the lower bound, or false, unless stated otherwise). With a `group`,
    psi = 1_group * value, or 1_group * (1 - value) for the `complement`; a NULL group is false. Missing values are
    left out by the group `present(expression)`.

    `expression` and `group` stay as they were read: engines evaluate them, bounds follow from them and people see them.
    Their canonical forms determine the digest and nothing else, so no rewrite stands between a question and its answer.
    Questions are compared by digest.
    """

    expression: Node
    bounds: tuple[float, float] = (0.0, 1.0)
    missing: float | None = None
    group: Node | None = None
    complement: bool = False
    may_be_missing: bool = field(init=False, compare=False, repr=False)
    """Whether a counted row can lack a value."""
    _digest: str | None = field(init=False, compare=False, repr=False, default=None)
    alone: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parts; bounds and `missing` become floats."""
        kind = self.expression.type
        if kind not in (Type.BOOLEAN, Type.NUMBER):
            raise QueryError(
                f"a question is a condition or a number, but {describe(self.expression)} is a {kind.value}; "
                "compare it with something"
            )
        if self.group is not None:
            _check_group(self.group)
        low, high = checks.bounds("bounds", self.bounds)
        if kind is Type.BOOLEAN and (low, high) != (0.0, 1.0):
            raise InvalidArgument(
                f"bounds = ({number(low)}, {number(high)}), but a condition is 0 or 1; leave the bounds out"
            )
        missing = _check_missing(self.missing, low, high, binary=kind is Type.BOOLEAN)
        may_be_missing = not (never_missing(self.expression) or _leaves_out_missing(self.group, self.expression))
        object.__setattr__(self, "bounds", (low, high))
        object.__setattr__(self, "may_be_missing", may_be_missing)
        # A value that never counts must not turn one question into two.
        object.__setattr__(self, "missing", missing if may_be_missing else low)

    @property
    def fill(self) -> float:
        """The value in [0, 1] of a missing row, before `complement`."""
        low, high = self.bounds
        return ((self.missing if self.missing is not None else low) - low) / (high - low)

    @property
    def levels(self) -> int | None:
        """2 if the expression alone shows that psi can only be 0 or 1."""
        two = self.expression.type is Type.BOOLEAN or (
            self.fill in (0.0, 1.0) and _only_extremes(self.expression, *self.bounds)
        )
        return 2 if two else None

    @property
    def words(self) -> str:
        """What is averaged, in words: the expression as asked, with its bounds and how missing values count.

        The group is not included. Questions with different meanings have different words or different groups.
        """
        return readable(self.expression) + self._scale + self._filled(self.missing)

    @property
    def text(self) -> str:
        """The whole question in readable words, as asked; from the tree, so spaces and parentheses may differ."""
        if self.group is None and not self.complement:
            return self.words
        low, high = self.bounds
        words = readable(self.expression)
        if self.expression.type is Type.BOOLEAN:
            if self.may_be_missing and (self.fill or self.complement):
                words = f"coalesce({words}, {'TRUE' if self.fill else 'FALSE'})"
            words = f"NOT ({words})" if self.complement else words
            return words if self.group is None else f"({readable(self.group)}) AND ({words})"
        # On the question's own scale, 1 - psi is the reflection between the bounds, and psi = 0 is the lower bound.
        words = f"{number(low + high)} - ({words})" if self.complement else words
        if self.group is not None:
            words = f"CASE WHEN {readable(self.group)} THEN {words} ELSE {number(low)} END"
        assert self.missing is not None
        return words + self._scale + self._filled(low + high - self.missing if self.complement else self.missing)

    @property
    def _scale(self) -> str:
        """The bounds, unless they follow from the expression."""
        if self.expression.type is Type.BOOLEAN:
            return ""
        found, (low, high) = range_of(self.expression), self.bounds
        return "" if (found.low, found.high) == (low, high) else f" within [{number(low)}, {number(high)}]"

    def _filled(self, missing: float | None) -> str:
        """What missing values count as; in a condition NULL is false, unless stated otherwise."""
        if not self.may_be_missing or missing is None:
            return ""
        if self.expression.type is Type.BOOLEAN:
            return " (NULL counts as true)" if missing else ""
        return f", missing as {number(missing)}"

    @property
    def digest(self) -> str:
        """SHA-256 of everything that determines psi. Two questions with one digest are one question."""
        if (known := self._digest) is None:
            known = self._hashed()
            object.__setattr__(self, "_digest", known)
        return known

    def _hashed(self) -> str:
        parts = [
            VERSION,
            serialize(canonical(self.expression)),
            [repr(bound) for bound in self.bounds],
            repr(self.missing),
            None if self.group is None else serialize(canonical(self.group)),
            self.complement,
        ]
        return hashlib.sha256(_as_json(parts).encode()).hexdigest()

    @property
    def columns(self) -> frozenset[str]:
        """The columns it reads."""
        return frozenset(columns(self.expression) | (set() if self.group is None else columns(self.group)))

    @staticmethod
    def moments_of(engine: Engine, questions: Sequence[Query], spans: Sequence[Span] | None) -> list[Moments]:
        """Return the moments of several questions, in one scan."""
        return engine.moments(questions, spans)


def make_query(
    expression: Any,
    schema: Mapping[str, Type | None],
    bounds: tuple[float, float] | None = None,
    missing: float | None = None,
) -> Query:
    """Return the question that an expression in SQL or Ibis asks about data with this schema.

    A number needs bounds, unless its range follows from the expression.
    """
    tree = parse(expression, schema)
    if bounds is None:
        bounds = _infer_bounds(tree) if tree.type is Type.NUMBER else (0.0, 1.0)
    return Query(tree, bounds, missing)


def _infer_bounds(tree: Node) -> tuple[float, float]:
    """Return the bounds of a number for which none were given."""
    found = range_of(tree)
    words = describe(tree)
    instead = "write bounds=(low, high), or --bounds LOW HIGH on the command line, chosen without looking at the data"
    if found.low > found.high:
        raise QueryError(f"{words} is NULL on every row; ask for something else")
    if found.low == found.high:
        raise QueryError(
            f"{words} has no value but {number(found.low)}, so there is no scale to measure on; {instead}. "
            "A CASE without ELSE is NULL where no condition holds: write ELSE 0 to count those rows"
        )
    if math.isfinite(found.high - found.low):
        return found.low, found.high
    raise QueryError(
        f"{words} has no bounds, and numbers are clipped to a range: {instead}. "
        "Bounds may be left out if they follow from the expression, as in least(greatest(x, 0), 100) or "
        "CASE WHEN x > 3 THEN 1 ELSE 0 END"
    )


def present(expression: Node) -> Node:
    """The condition that a number or condition has a value: neither NULL nor NaN nor infinite."""
    return Call(Op.NOT, (Call(Op.IS_NULL, (expression,), Type.BOOLEAN),), Type.BOOLEAN)


def _leaves_out_missing(group: Node | None, expression: Node) -> bool:
    """Whether the form of a group shows that the expression is never missing in it."""
    if not isinstance(group, Call):
        return False
    return group == present(expression) or (
        group.op is Op.AND and any(_leaves_out_missing(part, expression) for part in group.args)
    )


def parse_group(where: Any, schema: Mapping[str, Type | None]) -> Node:
    """The condition that defines a group of rows."""
    group = parse(where, schema)
    _check_group(group)
    return group


def _check_group(group: Node) -> None:
    if group.type is not Type.BOOLEAN:
        raise QueryError(
            f"a group is a condition, but {describe(group)} is a {group.type.value}; compare it with something"
        )


def split_by_group(query: Query, group: Node) -> tuple[Query, Query]:
    """The two questions A * 1_B and (1 - A) * 1_B that give the mean of A within the group B (section 12)."""
    inside = replace(query, group=group)
    return inside, replace(inside, complement=not query.complement)


def _check_missing(missing: float | None, low: float, high: float, *, binary: bool) -> float:
    if missing is None:
        return low
    if binary:  # True and False as well
        truth = float(missing) if isinstance(missing, bool) else missing
        found = checks.number("missing", truth, "0 or 1 for a condition", least=0, most=1)
        if found not in (0.0, 1.0):
            raise checks.wrong("missing", missing, "0 or 1 for a condition")
        return found
    must_be = f"a number within the bounds ({number(low)}, {number(high)})"
    return checks.number("missing", missing, must_be, least=low, most=high)


def _only_extremes(node: Node, low: float, high: float) -> bool:
    """Whether a number is built from constants at or beyond its bounds, such as CASE WHEN a THEN 1 ELSE 0 END."""
    if isinstance(node, Literal):
        return not isinstance(node.value, float) or node.value <= low or node.value >= high
    if isinstance(node, Call) and node.op is Op.CASE:
        return all(_only_extremes(part, low, high) for part in (*node.args[1:-1:2], node.args[-1]))
    return False
