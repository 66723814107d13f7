"""The embedded engine: a private, sealed DuckDB over a file or a copy of a frame."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import duckdb

from afresh.engines.content import deal_rows, fingerprint, sum_hashes
from afresh.engines.duckdb_sql import DuckDBDialect
from afresh.engines.rendering import Statement
from afresh.engines.sources import open_source
from afresh.engines.sql_engine import SqlEngine, failed


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
        self._time_limit = time_limit
        scratch = tempfile.mkdtemp(prefix="afresh-")
        self._cleanup = weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
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
        count, high, low = self._run(sum_hashes(self._source.relation, self._columns))
        self._check_count(count)
        return fingerprint(self._columns, self._rows, high, low)

    def _evaluate(self, statement: Statement, blocks: Sequence[int] | None) -> tuple[Any, ...]:
        scan, source, rows = statement.scan(), f"{self._source.relation} AS d", self._rows
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
        """The one row a statement gives. The file must be the same before and after."""
        stamp, row = self._source.stamp, None
        if stamp:
            stamp.check()
        with contextlib.suppress(duckdb.Error):  # its message quotes rows: the error below must not carry it
            cursor = self._connection.cursor()
            timer = threading.Timer(self._time_limit, cursor.interrupt)
            timer.daemon = True
            timer.start()
            try:
                row = cursor.execute(sql).fetchone()
            finally:
                timer.cancel()
        if stamp:
            stamp.check()
        if row is None:
            raise failed()
        return row


def _listed(numbers: Sequence[int]) -> str:
    return f"({', '.join(str(int(number)) for number in numbers)})"
