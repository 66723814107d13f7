"""The moments of many queries in one pass of Polars over a Parquet file or a frame in memory."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal

import polars as pl

from afresh.engines.embedded.dealing import unused
from afresh.engines.embedded.polars_expr import NotTranslated, Translator
from afresh.engines.simpler import ALL
from afresh.moments import Span
from afresh.queries.query import Query
from afresh.queries.tree import Column, Node, Type

_SLICE = 2**24  # rows between checks of the clock: Polars cannot be interrupted
_FEW = 100_000  # rows below which several threads cost more than they gain
_LITTLE = 2**26  # rows times parts of a condition on numbers and dates that one thread evaluates in a few milliseconds
# DuckDB's types and the Polars types that hold exactly the same values
_SAME: dict[str, pl.DataType] = {
    "BOOLEAN": pl.Boolean(),
    "TINYINT": pl.Int8(),
    "SMALLINT": pl.Int16(),
    "INTEGER": pl.Int32(),
    "BIGINT": pl.Int64(),
    "UTINYINT": pl.UInt8(),
    "USMALLINT": pl.UInt16(),
    "UINTEGER": pl.UInt32(),
    "UBIGINT": pl.UInt64(),
    "FLOAT": pl.Float32(),
    "DOUBLE": pl.Float64(),
    "VARCHAR": pl.String(),
    "DATE": pl.Date(),
    "TIMESTAMP": pl.Datetime("us"),
}


class PolarsScan:
    """A frame, and those of its columns that Polars and DuckDB read alike."""

    def __init__(
        self, frame: pl.LazyFrame, columns: Mapping[str, str], rows: int, held: pl.DataFrame | None = None
    ) -> None:
        """Scan a frame with these DuckDB types. One `held` in memory has only values of the language."""
        found = frame.collect_schema()
        dtypes = {
            name: found[name] for name, kind in columns.items() if name in found and found[name] == _SAME.get(kind)
        }
        self._frame, self._rows, self._translator = frame, rows, Translator(dtypes, held is not None)
        self._held, self._places = held, pl.DataFrame()
        self._engine: Literal["streaming", "in-memory"] = "streaming" if rows >= _FEW else "in-memory"

    @classmethod
    def of_file(cls, path: Path, columns: Mapping[str, str], rows: int) -> PolarsScan:
        """Read a Parquet file in place."""
        frame = pl.scan_parquet(path, glob=False, hive_partitioning=False, cache=False)
        return cls(frame, columns, rows)

    @classmethod
    def of_table(cls, table: Any, columns: Mapping[str, str]) -> PolarsScan:
        """Share the memory of an Arrow table."""
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return cls(frame.lazy(), columns, len(frame), frame)

    def dealt(self, places: Any) -> PolarsScan:
        """Return a scan of the same rows with these places, in which every query has its own span of them."""
        made = copy(self)
        made._places = pl.DataFrame({unused("place", self._frame.collect_schema()): places})
        return made

    def translate(self, query: Query, group: Node | None = None) -> pl.Expr | None:
        """Return a query's values, if Polars knows them; only for rows in the group, if all queries share one."""
        try:
            return self._translator.values(query) if group is None else self._translator.values_within(query)
        except NotTranslated:
            return None

    def sums(
        self,
        queries: Sequence[tuple[Query, pl.Expr]],
        time_limit: float,
        group: Node | None = None,
        spans: Sequence[Span] | None = None,
    ) -> tuple[int, list[tuple[float, float]]] | None:
        """Return the number of rows, and for each query the sum of its values and of their squares; None on failure.

        If all queries are within one group, they are evaluated only on its rows. With `spans`, each has its own.
        """
        if group is None and spans is None and (counted := self._counted(queries)) is not None:
            return counted
        outputs, places = [pl.len()], list[tuple[int, int]]()
        values = _Named("v")
        inside = _Named("s")
        for i, (query, expr) in enumerate(queries):
            if group is not None and query.expression is ALL:
                places.append((0, 0))
                continue
            start, value = len(outputs), values.column(id(query), expr)
            if spans is not None:
                value = _within(query, value, inside.column(spans[i], self._inside(spans[i])))
            outputs.append(value.sum().alias(f"t{i}"))
            if query.expression.type is not Type.BOOLEAN:  # a count is its own sum of squares
                outputs.append((value * value).sum().alias(f"q{i}"))
            places.append((start, len(outputs) - 1))
        named = [*values.exprs, *inside.exprs]
        count = None
        deadline, parts = time.monotonic() + time_limit, []
        try:
            for start in range(0, self._rows + 1, _SLICE):  # at least one row beyond, to notice more rows than expected
                if time.monotonic() > deadline:
                    return None
                rows = self._slice(start, dealt=spans is not None)
                if group is not None:
                    rows = rows.filter(self._translator.truth(group))
                part = (rows.select(named) if named else rows).select(outputs)
                parts.append(part.collect(engine=self._engine).row(0))
            if group is not None:  # counting needs no reading
                count = int(self._frame.select(pl.len()).collect(engine=self._engine).item())
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic is not an Exception; its message may quote rows
            return None
        found = list(zip(*parts, strict=True))
        totals = [math.fsum(float(value or 0) for value in column) for column in found]
        all_rows = sum(found[0]) if count is None else count
        return all_rows, [(totals[total], totals[squares]) for total, squares in places]

    def _slice(self, start: int, *, dealt: bool) -> pl.LazyFrame:
        """Return some of the rows, beginning with this one; with their places if they are `dealt`."""
        if not dealt:
            return self._frame if self._rows < _SLICE else self._frame.slice(start, _SLICE)
        if self._rows < _SLICE:
            return pl.concat([self._frame, self._places.lazy()], how="horizontal")
        # A row beyond those that have places is counted too, with none.
        return pl.concat([self._frame.slice(start, _SLICE), self._places.slice(start, _SLICE).lazy()], how="horizontal")

    def _inside(self, span: Span) -> pl.Expr:
        """Which rows are in a span."""
        place = pl.col(self._places.columns[0])
        return (place >= span.start) & (place < span.stop)

    def _counted(self, queries: Sequence[tuple[Query, pl.Expr]]) -> tuple[int, list[tuple[float, float]]] | None:
        """Return the same for rows in memory, without a plan for several threads, where it would take longer.

        That is for columns that are conditions themselves, and for one simple condition; None for anything else.
        """
        if self._held is None:
            return None
        columns_only = all(_is_plain(query) and isinstance(query.expression, Column) for query, _ in queries)
        if not columns_only and not (len(queries) == 1 and self._is_little(queries[0][0])):
            return None
        try:
            # Summed at once, not made first: those of a column would be a second pass.
            if columns_only:
                named = [query.expression.name for query, _ in queries if isinstance(query.expression, Column)]
                totals = [float(self._held[name].sum()) for name in named]
            else:
                ((_, expr),) = queries
                totals = [float(self._held.select(expr.sum()).item() or 0)]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # as above
            return None
        return len(self._held), [(total, total) for total in totals]

    def _is_little(self, query: Query) -> bool:
        """Whether one thread counts a condition about as fast as several would, which share the memory's speed."""
        if query.expression.type is not Type.BOOLEAN:
            return False
        parts = query.expression.size + (0 if query.group is None else query.group.size)
        texts = any(self._translator.dtypes[name] == pl.String() for name in query.columns)
        return self._rows < _FEW or (not texts and self._rows * parts <= _LITTLE)


class _Named:
    """Expressions that several sums use, each computed once under a name."""

    def __init__(self, letter: str) -> None:
        self.exprs: list[pl.Expr] = []
        self._letter, self._names = letter, dict[object, str]()

    def column(self, key: object, expr: pl.Expr) -> pl.Expr:
        """Return what was computed for a key, from this expression if it is new."""
        if key not in self._names:
            self._names[key] = f"{self._letter}{len(self.exprs)}"
            self.exprs.append(expr.alias(self._names[key]))
        return pl.col(self._names[key])


def _within(query: Query, value: pl.Expr, inside: pl.Expr) -> pl.Expr:
    """Return the values in a span; elsewhere nothing is added to a sum."""
    return value & inside if query.expression.type is Type.BOOLEAN else pl.when(inside).then(value)


def _is_plain(query: Query) -> bool:
    """Whether a condition is counted as it is."""
    return query.expression.type is Type.BOOLEAN and query.group is None and not query.fill and not query.complement
