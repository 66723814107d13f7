"""A question: the row function psi: X -> [0, 1] of guarantees.md, section 0, and its name (`digest`)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from afresh import checks
from afresh.errors import InvalidArgument, QueryError
from afresh.queries.bounds import range_of
from afresh.queries.canonical import canonical
from afresh.queries.parse import parse
from afresh.queries.serialize import serialize
from afresh.queries.text import number, readable
from afresh.queries.tree import Call, Literal, Node, Op, Type
from afresh.queries.typing import describe

VERSION = "afresh-query-v2"  # part of every digest; changes when the meaning of a tree does


@dataclass(frozen=True)
class Query:
    """A condition or a bounded number of one row, as a total function psi into [0, 1].

    A number is clipped to `bounds` and rescaled; a condition is 1 where it is true. NULL, NaN and infinite
    values count as `missing` (the lower bound, or false, unless said otherwise). With a `group`,
    psi = 1_group * value, or 1_group * (1 - value) for the `complement`; a NULL group is false.

    `expression` and `group` stay as they were read: that is what engines evaluate, bounds follow from and people see.
    Their canonical forms make the digest and nothing else, so that no rewrite stands between a question and its
    answer. Questions are compared by digest.
    """

    expression: Node
    bounds: tuple[float, float] = (0.0, 1.0)
    missing: float | None = None
    group: Node | None = None
    complement: bool = False

    def __post_init__(self) -> None:
        """Check the parts; bounds and `missing` become floats."""
        kind = self.expression.type
        if kind not in (Type.BOOLEAN, Type.NUMBER):
            raise QueryError(
                f"a question is a condition or a number, but {describe(self.expression)} is a {kind.value}; "
                "compare it with something"
            )
        if self.group is not None and self.group.type is not Type.BOOLEAN:
            raise QueryError(
                f"a group is a condition, but {describe(self.group)} is a {self.group.type.value}; "
                "compare it with something"
            )
        low, high = checks.bounds("bounds", self.bounds)
        if kind is Type.BOOLEAN and (low, high) != (0.0, 1.0):
            raise InvalidArgument(
                f"bounds = ({number(low)}, {number(high)}), but a condition is 0 or 1; leave the bounds out"
            )
        missing = _check_missing(self.missing, low, high, binary=kind is Type.BOOLEAN)
        object.__setattr__(self, "bounds", (low, high))
        object.__setattr__(self, "missing", missing)

    @property
    def fill(self) -> float:
        """The value in [0, 1] of a missing row, before `complement`."""
        low, high = self.bounds
        return ((self.missing if self.missing is not None else low) - low) / (high - low)

    @property
    def binary(self) -> bool:
        """Whether psi can only be 0 or 1, as the expression alone shows."""
        return self.expression.type is Type.BOOLEAN or (
            self.fill in (0.0, 1.0) and _only_extremes(self.expression, *self.bounds)
        )

    @property
    def text(self) -> str:
        """The question in readable words, as it was asked: the tree's, so not its spaces and parentheses."""
        low, high = self.bounds
        words = readable(self.expression)
        if self.expression.type is Type.BOOLEAN:
            words = f"NOT ({words})" if self.complement else words
            return words if self.group is None else f"({readable(self.group)}) AND ({words})"
        # On the question's own scale 1 - psi is the reflection between the bounds, and psi = 0 the lower one.
        words = f"{number(low + high)} - ({words})" if self.complement else words
        return words if self.group is None else f"CASE WHEN {readable(self.group)} THEN {words} ELSE {number(low)} END"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that determines psi. Two questions with one digest are one question."""
        parts = [
            VERSION,
            serialize(canonical(self.expression)),
            [repr(bound) for bound in self.bounds],
            repr(self.missing),
            None if self.group is None else serialize(canonical(self.group)),
            self.complement,
        ]
        return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


def make_query(
    expression: Any,
    schema: Mapping[str, Type | None],
    bounds: tuple[float, float] | None = None,
    missing: float | None = None,
) -> Query:
    """The question an expression, in SQL or Ibis, asks of data with this schema.

    A number needs bounds, unless its range follows from the expression.
    """
    tree = parse(expression, schema)
    if bounds is None:
        bounds = _infer_bounds(tree) if tree.type is Type.NUMBER else (0.0, 1.0)
    return Query(tree, bounds, missing)


def _infer_bounds(tree: Node) -> tuple[float, float]:
    """The bounds of a number of which nobody said them."""
    found = range_of(tree)
    words = describe(tree)
    instead = "write bounds=(low, high), on the command line --bounds LOW HIGH, chosen without looking at the data"
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
        f"{words} has no bounds: say between which values it is to be clipped; {instead}. "
        "Bounds may be left out where they follow from the expression, as in least(greatest(x, 0), 100) or "
        "CASE WHEN x > 3 THEN 1 ELSE 0 END"
    )


def split_by_group(query: Query, where: Any, schema: Mapping[str, Type | None]) -> tuple[Query, Query]:
    """The two questions A * 1_B and (1 - A) * 1_B that give the mean of A within the group B (section 12)."""
    group = parse(where, schema)
    if query.group is not None:
        group = Call(Op.AND, (query.group, group), Type.BOOLEAN)
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
    """Whether a number is built of constants at or beyond its bounds, as CASE WHEN a THEN 1 ELSE 0 END is."""
    if isinstance(node, Literal):
        return not isinstance(node.value, float) or node.value <= low or node.value >= high
    if isinstance(node, Call) and node.op is Op.CASE:
        return all(_only_extremes(part, low, high) for part in (*node.args[1:-1:2], node.args[-1]))
    return False
