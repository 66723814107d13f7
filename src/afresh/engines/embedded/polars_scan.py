"""The moments of many queries in one pass of Polars over a Parquet file or a frame in memory."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from afresh.engines.embedded.polars_expr import NotTranslated, Translator
from afresh.engines.simpler import ALL
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
        self._held = held
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

    def translate(self, query: Query, group: Node | None = None) -> pl.Expr | None:
        """Return a query's values, if Polars knows them; only for rows in the group, if all queries share one."""
        try:
            return self._translator.values(query) if group is None else self._translator.values_within(query)
        except NotTranslated:
            return None

    def sums(
        self, queries: Sequence[tuple[Query, pl.Expr]], time_limit: float, group: Node | None = None
    ) -> tuple[int, list[tuple[float, float]]] | None:
        """Return the number of rows, and for each query the sum of its values and of their squares; None on failure.

        If all queries are within one group, they are evaluated only on its rows.
        """
        if group is None and (counted := self._counted(queries)) is not None:
            return counted
        outputs, places, values = [pl.len()], [], []
        for i, (query, expr) in enumerate(queries):
            start, value = len(outputs), pl.col(f"v{i}")
            if group is not None and query.expression is ALL:
                places.append((0, 0))
                continue
            values.append(expr.alias(f"v{i}"))
            outputs.append(value.sum())
            if query.expression.type is not Type.BOOLEAN:  # a count is its own sum of squares
                outputs.append((value * value).sum().alias(f"q{i}"))
            places.append((start, len(outputs) - 1))
        count = None
        deadline, parts = time.monotonic() + time_limit, []
        try:
            for start in range(0, self._rows + 1, _SLICE):  # at least one row beyond, to notice more rows than expected
                if time.monotonic() > deadline:
                    return None
                rows = self._frame if self._rows < _SLICE else self._frame.slice(start, _SLICE)
                if group is not None:
                    rows = rows.filter(self._translator.truth(group))
                part = (rows.select(values) if values else rows).select(outputs)
                parts.append(part.collect(engine=self._engine).row(0))
            if group is not None:  # counting needs no reading
                count = int(self._frame.select(pl.len()).collect(engine=self._engine).item())
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic is not an Exception; its message may quote rows
            return None
        found = list(zip(*parts, strict=True))
        totals = [math.fsum(map(float, column)) for column in found]
        all_rows = sum(found[0]) if count is None else count
        return all_rows, [(totals[total], totals[squares]) for total, squares in places]

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
            values = [
                self._held[query.expression.name]
                if columns_only and isinstance(query.expression, Column)
                else self._held.select(expr).to_series()
                for query, expr in queries
            ]
            totals = [float(each.sum()) for each in values]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # as above
            return None
        return min(map(len, values)), [(total, total) for total in totals]

    def _is_little(self, query: Query) -> bool:
        """Whether one thread counts a condition about as fast as several would, which share the memory's speed."""
        if query.expression.type is not Type.BOOLEAN:
            return False
        parts = query.expression.size + (0 if query.group is None else query.group.size)
        texts = any(self._translator.dtypes[name] == pl.String() for name in query.columns)
        return self._rows < _FEW or (not texts and self._rows * parts <= _LITTLE)


def _is_plain(query: Query) -> bool:
    """Whether a condition is counted as it is."""
    return query.expression.type is Type.BOOLEAN and query.group is None and not query.fill and not query.complement
