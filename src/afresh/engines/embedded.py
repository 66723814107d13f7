"""The embedded engine: a private, sealed DuckDB over a file or a copy of a frame."""

from __future__ import annotations

import contextlib
import os
import shutil
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import duckdb

from afresh.engines.content import Totals, batch_rows, deal_rows, fingerprint, select_cells, total_rows
from afresh.engines.duckdb_sql import DuckDBDialect
from afresh.engines.rendering import Statement
from afresh.engines.scratch import make_scratch
from afresh.engines.sources import open_source
from afresh.engines.sql_engine import SqlEngine, failed
from afresh.engines.watchdog import Watchdog

_Read = TypeVar("_Read")


class EmbeddedEngine(SqlEngine):
    """Rows in a Parquet or DuckDB file, read in place, or in anything else, copied when it is opened.

    Safe to use from several threads, except that `deal` must come before the questions.
    """

    dialect = DuckDBDialect()
    at_once = 200

    def __init__(
        self, data: object, table: str | None = None, *, memory_limit: str = "70%", time_limit: float = 3600.0
    ) -> None:
        """Open data; see `open_engine`. Work beyond `memory_limit` goes to a temporary directory.

        A statement that runs for more than `time_limit` seconds fails like any other: the error does not say why.
        """
        self._watchdog = Watchdog(time_limit)
        scratch = make_scratch()
        self._cleanup = weakref.finalize(self, _clean_up, self._watchdog, scratch, os.getpid())
        try:
            self._connection, self._source = open_source(data, table, memory_limit, scratch)
            try:
                self._opened(self._source.columns, int(self._run(f"SELECT count(*) FROM {self._source.relation}")[0]))
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._cleanup()
            raise

    def check_unchanged(self) -> None:
        """Raise `DataChanged` if the file is not the one that was opened."""
        if self._source.stamp:
            self._source.stamp.check()

    def deal(self, blocks: int, seed: str) -> None:
        """Deal the rows into equal blocks, by a shuffle that depends on the seed and the content only."""
        super().deal(blocks, seed)
        source = self._source
        dealt = deal_rows(source.relation, source.row, source.columns, self._rows // blocks, blocks, seed)
        self._run(f"CREATE OR REPLACE TABLE dealt AS {dealt}")

    def close(self) -> None:
        """Free what the engine holds. Idempotent."""
        self._connection.close()
        self._cleanup()

    def _digest(self) -> str:
        """It does not depend on the encoding either; see `content`."""
        totals = self._read(self._total)
        self._check_count(totals.rows)
        return fingerprint(self._columns, totals)

    def _total(self, cursor: duckdb.DuckDBPyConnection) -> Totals | None:
        import pyarrow as pa  # on demand, as nothing else here needs it

        # a relation, because the rows of `execute` would all be in memory at once
        cells = cursor.sql(select_cells(self._source.relation, self._columns))
        with contextlib.suppress(pa.ArrowException, OSError):  # they pass on what DuckDB says, which quotes rows
            return total_rows(cells.to_arrow_reader(batch_rows(self._columns)), self._columns)
        return None

    def _evaluate(self, statement: Statement, blocks: Sequence[int] | None) -> tuple[Any, ...]:
        source, rows = f"{self._source.relation} AS d", self._rows
        if blocks is None and (short := statement.short()) is not None:
            values = self._run(f"SELECT {', '.join(short)} FROM {source}")
            self._check_count(values[0], rows)
            return values
        scan = statement.scan()
        if blocks is not None:
            wanted = sorted(set(blocks))
            scan.append("dealt.block AS block")
            source += f" JOIN dealt ON d.{self._source.row} = dealt.r WHERE dealt.block IN {_listed(wanted)}"
            rows = self._rows // self._blocks * len(wanted)
        sql = f"SELECT {', '.join(scan)} FROM {source}"
        for step in statement.steps():
            sql = f"SELECT {', '.join(step)} FROM ({sql})"
        values = self._run(sql)
        self._check_count(values[0], rows)
        return values

    def _run(self, sql: str) -> tuple[Any, ...]:
        """The one row a statement gives."""
        return self._read(lambda cursor: cursor.execute(sql).fetchone())

    def _read(self, read: Callable[[duckdb.DuckDBPyConnection], _Read | None]) -> _Read:
        """What is read with a cursor, within the time limit. The file must be the same before and after."""
        stamp, result = self._source.stamp, None
        if stamp:
            stamp.check()
        with contextlib.suppress(duckdb.Error):  # its message quotes rows: the error below must not carry it
            cursor = self._connection.cursor()
            with self._watchdog.limit(cursor.interrupt):
                result = read(cursor)
        if stamp:
            stamp.check()
        if result is None:
            raise failed()
        return result


def _clean_up(watchdog: Watchdog, scratch: str, process: int) -> None:
    if os.getpid() == process:  # and not a fork of it that ends, or it would take these from its parent
        watchdog.stop()
        shutil.rmtree(scratch, ignore_errors=True)


def _listed(numbers: Sequence[int]) -> str:
    return f"({', '.join(str(int(number)) for number in numbers)})"
