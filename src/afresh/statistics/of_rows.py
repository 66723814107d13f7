"""Tables of means: for groups that the analyst names, and for the bins of a histogram."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.queries.asked import Asked, make_asked
from afresh.queries.parse import parse
from afresh.queries.text import number, readable
from afresh.queries.tree import Type
from afresh.statistics.base import (
    Asker,
    Like,
    Measures,
    OfRows,
    Sample,
    Schema,
    Shape,
    check_where,
    stated_as,
    where_text,
)

SHARES = "shares"  # the shape of a vector whose coordinates are at least 0 and add up to at most 1 on every row


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """The mean of a condition or number within each category; categories come from the analyst, not from the data.

    It costs two answers per category (section 12 of the guarantees), or about four for all of them together if the
    method releases vectors at once (`symmetrized`) and the categories certainly exclude one another: strings for a text
    column, numbers for a number. A number is asked one category at a time wherever its means are then clearly narrower,
    because each follows its standard deviation; at once they follow its bounds. `Guard.price` shows the price.

    Args:
        expression: A condition or number, in SQL.
        by: The expression compared with the categories, in SQL.
        categories: Strings or numbers.
        bounds: The range a number is clipped to, as in `Guard.ask`.
        where: A condition in SQL; only rows where it is true count.
        missing: What rows without the number count as; by default they are left out.
    """

    expression: str
    by: str
    categories: Sequence[Any]
    bounds: tuple[float, float] | None = None
    where: str | None = None
    missing: float | None = None

    def __post_init__(self) -> None:
        """Check that categories are a list of strings or numbers."""
        categories = checks.listed("categories", self.categories, "a list of at least one string or number")
        # By value, as 0.0 and -0.0 are one number, and by name: each has its place in the table.
        if not len(set(map(_value, categories))) == len(set(map(str, categories))) == len(categories):
            raise _equal(categories)
        object.__setattr__(self, "categories", categories)
        if self.bounds is not None:
            object.__setattr__(self, "bounds", checks.bounds("bounds", self.bounds))

    @property
    def price(self) -> int:
        """Two answers per category."""
        return 2 * len(self.categories)

    def cost(self, schema: Schema) -> int:
        """The same."""
        return self.price

    def text(self, schema: Schema) -> str:
        """What is measured, in words."""
        words = self._asked(schema)[0].question
        return f"mean of {words} by {readable(parse(self.by, schema))}{where_text(self.where, schema)}"

    def _asked(self, schema: Schema) -> list[Asked]:
        inner = check_where(self.where, schema)
        found = [
            make_asked(
                {
                    "expression": self.expression,
                    "bounds": self.bounds,
                    "where": f"({self.by}) = {_literal(category)}" + (f" AND ({inner})" if inner else ""),
                    "missing": self.missing,
                },
                schema,
            )
            for category in self.categories
        ]
        if len({one.queries[0].digest for one in found}) < len(found):  # a day, and the same day at midnight
            raise _equal(self.categories)
        return found

    def like(self, schema: Schema) -> Like:
        """The mean of the first category, if all have as many rows.

        Args:
            schema: The columns and their types.

        Returns:
            The question, and what to expect of it.
        """
        return Like(self._asked(schema)[0], None, None if self.where is not None else 1 / len(self.categories))

    def coordinates(self, schema: Schema) -> Shape | None:
        """Two shares per category, for rows that are in at most one of them; None if categories might overlap.

        Args:
            schema: The columns and their types.

        Returns:
            The shape of the vector; it says so if these are means of a number.
        """
        queries = [query for one in self._asked(schema) for query in one.queries]
        if not _exclude_one_another(self.categories, parse(self.by, schema).type):
            return None
        number = any(query.levels is None for query in queries)
        return Shape(SHARES, len(queries), len(self.categories) if number else 0)

    def measure(self, asker: Asker) -> Measures:
        """Measure all in one scan, each a separate answer."""
        desk, shape = asker.desk, self.coordinates(asker.schema)
        vector = None if shape is None else desk.at_once(*shape)
        replies = asker.put(self._asked(asker.schema), vector=vector)
        found = [desk.tell(reply) for reply in replies]
        names = [str(category) for category in self.categories]
        return Measures(self.text(asker.schema), dict(zip(names, found, strict=True)))


def _exclude_one_another(categories: Sequence[Any], type: Type) -> bool:
    """Whether no row can equal two of them, on any engine.

    Dates may be written in several ways, a database may compare strings without regard to case or accents, and
    numbers in single precision.
    """
    if type is Type.TEXT and all(isinstance(each, str) for each in categories):
        plain = [each.casefold().strip() for each in categories]
        return all(each.isascii() for each in plain) and len(set(plain)) == len(plain)
    if type is Type.NUMBER and not any(isinstance(each, bool | str) for each in categories):
        with np.errstate(over="ignore"):
            return len(np.unique(np.array(list(map(float, categories)), np.float32))) == len(categories)
    return type is Type.BOOLEAN and all(isinstance(each, bool) for each in categories)


def _equal(categories: Sequence[Any]) -> InvalidArgument:
    return checks.wrong("categories", categories, "different from each other: a row may equal only one of them")


def _value(category: Any) -> bool | str | float:
    """A category as questions see it."""
    if isinstance(category, bool | str):
        return category
    return checks.number("category", category, "a string, a finite number, True or False")


def _literal(category: Any) -> str:
    value = _value(category)
    if isinstance(value, bool):
        return str(value).upper()
    return number(value) if isinstance(value, float) else "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Histogram(OfRows):
    """The share of rows in each bin [edge, next edge), the last one closed, as in NumPy.

    It costs one answer per bin, or about four for any number of bins if the method releases vectors at once
    (`symmetrized`); `Guard.price` shows the price. Shares are of all rows; a row without a value is in no bin.

    Args:
        expression: A number, in SQL.
        edges: The edges of the bins, in increasing order.
        where: A condition in SQL: shares are then of the rows where it is true, at two answers per bin, or still about
            four for all of them. "x IS NOT NULL" makes them shares of the rows with a value.
    """

    expression: str
    edges: Sequence[float]
    where: str | None = None

    def __post_init__(self) -> None:
        """Check that edges increase."""
        edges = checks.rising("edges", self.edges, 2, "at least two finite numbers in increasing order")
        object.__setattr__(self, "edges", edges)

    @property
    def _means(self) -> int:
        return len(self.edges) - 1

    @property
    def _grouped(self) -> bool:
        return self.where is not None

    def _sample(self, schema: Schema) -> Sample:
        return Sample((), check_where(self.where, schema))

    def text(self, schema: Schema) -> str:
        """What is measured, in words."""
        return f"histogram of {readable(parse(self.expression, schema))}{where_text(self.where, schema)}"

    def like(self, schema: Schema) -> Like:
        """The share of the first bin, if all are equal.

        Args:
            schema: The columns and their types.

        Returns:
            The question, and what to expect of it.
        """
        first, second, *_ = self.edges
        asked = {"expression": f"({self.expression}) >= {first!r} AND ({self.expression}) < {second!r}"}
        group = self._sample(schema).group
        return Like(make_asked(asked if group is None else {**asked, "where": group}, schema), 1 / self._means, None)

    def coordinates(self, schema: Schema) -> Shape:
        """A row is in at most one bin, or outside the group, whose share is one more coordinate.

        Args:
            schema: The columns and their types.

        Returns:
            The kind of the vector and its size.
        """
        return Shape(SHARES, self._means + (self.where is not None))

    def measure(self, asker: Asker) -> Measures:
        """Measure all in one scan; no share can exceed what the others leave."""
        vector = asker.desk.at_once(*self.coordinates(asker.schema))
        sample, of = self._sample(asker.schema), where_text(self.where, asker.schema)
        group = None if vector is None else sample.group
        edges = self.edges
        x, last = self.expression, len(edges) - 2
        pairs = list(itertools.pairwise(edges))
        inside = "" if group is None else f" AND {group}"
        bins: list[dict[str, Any]] = [
            {"expression": f"({x}) >= {a!r} AND ({x}) {'<=' if i == last else '<'} {b!r}{inside}"}
            for i, (a, b) in enumerate(pairs)
        ]
        if group is None:
            rule, parameters = "bin", asker.parameters(sample)
            asker.ask(bins, where=sample.group, vector=vector)
        else:  # shares of all rows, with the share outside the group, which includes rows whose group is NULL
            rule, parameters = "bin of group", {}
            asker.ask([*bins, {"expression": f"NOT {group}", "missing": 1}], vector=vector)
        words = readable(parse(x, asker.schema))
        names = [f"[{number(a)}, {number(b)}{']' if i == last else ')'}" for i, (a, b) in enumerate(pairs)]
        asked = [
            stated_as(
                f"share of rows with {words} in {name}{of}",
                rule,
                {"bin": i, **parameters},
                (0.0, 1.0),
                _IN_NO_BIN,
            )
            for i, name in enumerate(names)
        ]
        paid = [reply.charged for reply in asker.replies]
        paid[last:] = [
            tuple(entry for each in paid[last:] for entry in each)
        ]  # the part outside the group is not a bin
        return Measures(self.text(asker.schema), dict(zip(names, asker.answers(asked, paid), strict=True)))


_IN_NO_BIN = "A row without a value is in no bin."
