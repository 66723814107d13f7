"""The data dictionary: the steward's description of columns, and the bounds and categories it fills in for analysts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from afresh.errors import AfreshError, InvalidArgument
from afresh.queries.bounds import range_of
from afresh.queries.parse import parse
from afresh.queries.ranges import Range
from afresh.queries.tree import Column as ColumnNode
from afresh.queries.tree import Type
from afresh.server.config import Column

Schema = Mapping[str, Type | None]


class Dictionary:
    """The descriptions of one dataset's columns."""

    def __init__(self, columns: Mapping[str, Column], schema: Schema) -> None:
        """`schema` has all columns, including hidden ones: an entry for an unknown column is a mistake."""
        real = {name.lower(): name for name in schema}
        if unknown := [name for name in columns if name.lower() not in real]:
            raise InvalidArgument(
                f"columns.{unknown[0]}: the data has no such column; its columns are {', '.join(list(schema)[:30])}."
            )
        self._columns = {real[name.lower()]: column for name, column in columns.items()}
        self.hidden = frozenset(name for name, column in self._columns.items() if column.hidden)
        self._ranges = {name: Range(*column.bounds) for name, column in self._columns.items() if column.bounds}

    def describe(self, schema: Schema) -> dict[str, dict[str, Any]]:
        """The columns that analysts see, with their descriptions."""
        return {
            name: {
                "type": "not supported" if type is None else type.value,
                "description": self._of(name).description,
                "unit": self._of(name).unit,
                "bounds": self._of(name).bounds,
                "categories": self._of(name).categories,
            }
            for name, type in schema.items()
        }

    def _of(self, name: str) -> Column:
        return self._columns.get(name, Column())

    def fill_question(self, question: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
        """Give a question the bounds that follow from its columns' bounds, where it has none of its own."""
        filled = dict(question)
        if filled.get("bounds") is None and (found := self._bounds(filled.get("expression"), schema)) is not None:
            filled["bounds"] = found
        return filled

    def fill_statistic(self, statistic: Any, schema: Schema) -> Any:
        """Do the same for a statistic, as written in JSON, and add categories where it compares a column with some."""
        if not isinstance(statistic, Mapping):
            return statistic
        filled = dict(statistic)
        for bounds, expression in {"bounds": "expression", "bounds_x": "x", "bounds_y": "y"}.items():
            takes = bounds in _BOUNDED.get(str(filled.get("kind")), ())
            if takes and filled.get(bounds) is None and (found := self._bounds(filled.get(expression), schema)):
                filled[bounds] = list(found)
        if filled.get("kind") == "GroupMeans" and filled.get("categories") is None:
            node = _parsed(filled.get("by"), schema)
            if isinstance(node, ColumnNode) and (known := self._of(node.name).categories) is not None:
                filled["categories"] = list(known)
        return filled

    def _bounds(self, expression: Any, schema: Schema) -> tuple[float, float] | None:
        if not self._ranges:
            return None
        node = _parsed(expression, schema)
        if node is None or node.type is not Type.NUMBER or _finite(range_of(node)):
            return None
        found = range_of(node, self._ranges)
        return (found.low, found.high) if _finite(found) and found.low < found.high else None


_BOUNDED = {
    "Quantile": ("bounds",),
    "Variance": ("bounds",),
    "StandardDeviation": ("bounds",),
    "GroupMeans": ("bounds",),
    "Covariance": ("bounds_x", "bounds_y"),
    "Correlation": ("bounds_x", "bounds_y"),
}


def _finite(range: Range) -> bool:
    return math.isfinite(range.low) and math.isfinite(range.high)


def _parsed(expression: Any, schema: Schema) -> Any:
    """The tree of an expression; None if it cannot be asked, which is reported elsewhere."""
    if not isinstance(expression, str):
        return None
    try:
        return parse(expression, schema)
    except AfreshError:
        return None
