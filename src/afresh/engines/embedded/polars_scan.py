"""The moments of many queries in one pass of Polars over a Parquet file or a frame in memory."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
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
_MOST_MASKS = 8  # of a bit per row
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
        self._held, self._masks = held, _Masks()
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
        made._masks = _Masks(places)
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
        values, masks, order = _Named("v"), pl.DataFrame(), _order(spans or ())
        if spans is not None:
            masks = self._masks.of(order, self._frame.collect_schema())
        for i, (query, expr) in enumerate(queries):
            if group is not None and query.expression is ALL:
                places.append((0, 0))
                continue
            start, value = len(outputs), values.column(id(query), expr)
            if spans is not None:
                value = _within(query, value, pl.col(masks.columns[order[spans[i]]]))
            outputs.append(value.sum().alias(f"t{i}"))
            if query.expression.type is not Type.BOOLEAN:  # a count is its own sum of squares
                outputs.append((value * value).sum().alias(f"q{i}"))
            places.append((start, len(outputs) - 1))
        named = [*values.exprs, *map(pl.col, masks.columns)]
        count = None
        deadline, parts = time.monotonic() + time_limit, []
        try:
            if self._held is not None and spans is not None and self._are_little([query for query, _ in queries]):
                made = self._held.select(values.exprs).hstack(masks)  # as in `_counted`, without a plan
                parts.append(made.select(outputs).row(0))
            # At least one row beyond, to notice more rows than expected.
            for start in [] if parts else range(0, self._rows + 1, _SLICE):
                if time.monotonic() > deadline:
                    return None
                rows = self._slice(start, masks)
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

    def _slice(self, start: int, masks: pl.DataFrame) -> pl.LazyFrame:
        """Return some of the rows, beginning with this one, and which of them are in which spans."""
        rows = self._frame if self._rows < _SLICE else self._frame.slice(start, _SLICE)
        if not masks.columns:
            return rows
        # A row beyond those that have places is counted too, and is in none.
        return pl.concat([rows, masks.slice(start, _SLICE).lazy()], how="horizontal")

    def _counted(self, queries: Sequence[tuple[Query, pl.Expr]]) -> tuple[int, list[tuple[float, float]]] | None:
        """Return the same for rows in memory, without a plan for several threads, where it would take longer.

        That is for columns that are conditions themselves, and for one simple condition; None for anything else.
        """
        if self._held is None:
            return None
        columns_only = all(_is_plain(query) and isinstance(query.expression, Column) for query, _ in queries)
        if not columns_only and not (len(queries) == 1 and self._are_little([queries[0][0]])):
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

    def _are_little(self, queries: Sequence[Query]) -> bool:
        """Whether one thread counts conditions about as fast as several would, which share the memory's speed."""
        if any(query.expression.type is not Type.BOOLEAN for query in queries):
            return False
        parts = sum(query.expression.size + (0 if query.group is None else query.group.size) for query in queries)
        texts = any(self._translator.dtypes[name] == pl.String() for query in queries for name in query.columns)
        return self._rows < _FEW or (not texts and self._rows * parts <= _LITTLE)


class _Masks:
    """Which rows are in which spans of the dealt rows. The spans used last are kept: most methods use the same two."""

    def __init__(self, places: Any = None) -> None:
        self._places, self._kept = places, dict[Span, pl.Series]()

    def of(self, order: Mapping[Span, int], taken: Iterable[str]) -> pl.DataFrame:
        """Return a column for each of the spans, in order, with names that are not taken."""
        names = list(taken)
        return pl.DataFrame({unused(f"in{place}", names): self._mask(span) for span, place in order.items()})

    def _mask(self, span: Span) -> pl.Series:
        kept = dict(self._kept)  # other threads may change it
        if (found := kept.pop(span, None)) is None:
            found = pl.Series((self._places >= span.start) & (self._places < span.stop))
        self._kept = dict([*kept.items(), (span, found)][-_MOST_MASKS:])
        return found


def _order(spans: Sequence[Span]) -> dict[Span, int]:
    """Return the place of each span among the different ones."""
    return {span: place for place, span in enumerate(dict.fromkeys(spans))}


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
