"""The embedded engine: a private, sealed DuckDB over a file or a copy of a frame."""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from afresh.engines import arrow
from afresh.engines.embedded.scratch import Scratch
from afresh.engines.embedded.sources import Recall, Source, interruptible, largest_group, open_source
from afresh.engines.embedded.stored import count_stored
from afresh.engines.embedded.watchdog import Watchdog
from afresh.engines.identity import Identity, Sums, identify
from afresh.engines.identity.cells import VERSION as ALGORITHM
from afresh.engines.simpler import common_group
from afresh.engines.sql.duckdb import DuckDBDialect
from afresh.engines.sql.engine import SqlEngine, failed
from afresh.engines.sql.rendering import Statement
from afresh.moments import Moments, Span, united
from afresh.queries.query import Query
from afresh.queries.tree import Type
from afresh.version import __version__

if TYPE_CHECKING:
    from afresh.engines.embedded.dealing import Deal, Shelf
    from afresh.engines.embedded.polars_scan import PolarsScan

_Read = TypeVar("_Read")
LARGE = 1_000_000  # rows in a file from which on importing Polars pays off
LARGE_DEALT = 100_000  # the same if DuckDB would have to look up the place of every row
_DEALT = "dealt"


class EmbeddedEngine(SqlEngine):
    """Rows in a Parquet or DuckDB file, read in place, or in anything else, copied when opened.

    Safe to use from several threads, except that `shuffle` must come before the questions. Rows are dealt when the
    first question needs it, so that whoever only reads a budget or a recorded answer does not wait for that.
    """

    dialect = DuckDBDialect()
    at_once = 200
    layers = filters = True

    def __init__(
        self,
        data: object,
        table: str | None = None,
        *,
        memory_limit: str = "70%",
        time_limit: float = 3600.0,
        recall: Recall = lambda state: None,
    ) -> None:
        """Open data; see `open_engine`. Work beyond `memory_limit` goes to a temporary directory.

        A statement that runs for more than `time_limit` seconds fails like any other: the error does not say why.
        """
        self._time_limit, self._watchdog = time_limit, Watchdog(time_limit)
        self._shelf: Shelf | None = None
        self._dealt: Deal | None = None
        self._scan_dealt: tuple[Deal, PolarsScan | None] | None = None
        self._dealing = RLock()  # a signal handler may ask while its thread deals
        scratch = Scratch()
        self._cleanup = weakref.finalize(self, _clean_up, self._watchdog, scratch, os.getpid())
        try:
            self._connection, self._source = open_source(data, table, memory_limit, scratch.path, recall)
            try:
                self._opened(self._source.columns, int(self._run(f"SELECT count(*) FROM {self._source.relation}")[0]))
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._cleanup()
            raise

    def state(self) -> str | None:
        """Where and how a file is stored, and what reads it, if it has settled; None for rows in memory."""
        if self._source.stamp is None or (lasting := self._source.stamp.lasting()) is None:
            return None
        return json.dumps([__version__, ALGORITHM, duckdb.__version__, self._source.table, self._columns, lasting])

    @property
    def learnt(self) -> tuple[str, Any] | None:
        """The state of a CSV file, and what makes opening it faster in that state."""
        return self._source.learnt

    def check_unchanged(self) -> None:
        """Raise `DataChanged` if the file is not the one that was opened."""
        if self._source.stamp:
            self._source.stamp.check()

    def shuffle(self, seed: str, shelf: Shelf | None = None) -> None:
        """Give every row a place, by a shuffle that depends only on the seed and the content; see `dealing`."""
        super().shuffle(seed)
        self._shelf, self._dealt = shelf, None

    def prepare(self) -> None:
        """Deal the rows, if a method needs it."""
        if self._seed is not None:
            _ = self.deal

    @property
    def deal(self) -> Deal:
        """The places of all rows; found when they are first needed, or on the shelf."""
        with self._dealing:
            if self._dealt is None:
                self._dealt = self._found_deal()
            return self._dealt

    def _found_deal(self) -> Deal:
        from afresh.engines.embedded.dealing import WORTH_KEEPING, Kept, deal_rows

        assert self._seed is not None
        state = self.state() if self._shelf is not None and self._rows >= WORTH_KEEPING else None
        kept = None if self._shelf is None or state is None else Kept(self._shelf, state, self._seed, self._rows)
        if kept is not None and (found := kept.find()) is not None:
            return found
        made = deal_rows(*self._row_hashes(), self._seed, self.fetch)
        if kept is not None and self.state() == state:
            kept.keep(made)
        return made

    def _moments(self, queries: Sequence[Query], spans: Sequence[Span] | None) -> list[Moments]:
        """Return the moments, from separate scans for the queries Polars knows and for the others."""
        polars = self._polars if spans is None else self._polars_dealt
        if polars is None:
            return super()._moments(queries, spans)
        found: dict[int, Moments] = {}
        for start in range(0, len(queries), self.at_once):
            part = range(start, min(start + self.at_once, len(queries)))
            found |= self._scan_polars(polars, {i: queries[i] for i in part}, spans)
        left = [i for i in range(len(queries)) if i not in found]
        own = None if spans is None else [spans[i] for i in left]
        found |= zip(left, super()._moments([queries[i] for i in left], own), strict=True)
        return [found[i] for i in range(len(queries))]

    def _scan(self, queries: Sequence[Query], spans: Sequence[Span] | None) -> list[Moments]:
        """Scan with DuckDB; a single comparison with a column of a DuckDB file is counted on the file as stored."""
        sql, source = None, self._source
        if spans is None and len(queries) == 1 and source.table is not None and self._many:
            sql = count_stored(queries[0], source.relation, source.columns)
        if sql is None:
            return super()._scan(queries, spans)
        count, found = self._run(sql)
        self._check_count(count)
        return [Moments(count, float(found), float(found))]

    def check_hands_out(self) -> None:
        """Accept: rows of files and frames can be handed out."""

    def hand_out(self, span: Span) -> Any:
        """Some of the shuffled rows as an Arrow table, in the order of the data."""
        source = self._source
        if source.held is not None:
            return source.held.take(arrow.over(self.deal.rows_in(span)))
        rows, place, deal = self._placed
        hidden = "" if source.row == "rowid" else f" EXCLUDE ({source.row})"
        sql = f"SELECT d.*{hidden} FROM {rows} WHERE {_inside(place, [span])} ORDER BY d.{source.row}"
        found = self._read(lambda cursor: cursor.sql(sql).to_arrow_table(), deal)
        self._check_count(len(found), span.rows)
        return found

    @property
    def source(self) -> Source:
        """The relation that holds the data, for `rowwise`."""
        return self._source

    def fetch(self, sql: str) -> dict[str, Any]:
        """Return the columns of a statement's result as arrays, for `rowwise`: never shown to an analyst."""
        return self._read(lambda cursor: cursor.execute(sql).fetchnumpy())

    def order(self, by: str) -> str:
        """Return a digest of the rows in an order, given as the end of a statement, for `rowwise`."""
        from afresh.engines.identity.scan import digest_order

        return self._hashed(by, digest_order)

    def close(self) -> None:
        """Free what the engine holds. Idempotent."""
        self._connection.close()
        self._cleanup()

    @cached_property
    def _polars(self) -> PolarsScan | None:
        """Polars, for rows in memory, and for large files if a few row groups at a time fit into memory."""
        return self._polars_from(LARGE)

    @property
    def _polars_dealt(self) -> PolarsScan | None:
        """The same for rows that are dealt, which take DuckDB a join."""
        if self._scan_dealt is None or self._scan_dealt[0] is not self.deal:
            found = self._polars_from(LARGE_DEALT)
            self._scan_dealt = self.deal, None if found is None else found.dealt(self.deal.places)
        return self._scan_dealt[1]

    def _polars_from(self, large: int) -> PolarsScan | None:
        source, rows = self._source, self._rows
        if rows >= 2**32 or (source.held is None and (source.parquet is None or rows < large)):
            return None
        from afresh.engines.embedded.polars_scan import PolarsScan  # on demand: importing it takes a while

        if source.held is not None:
            return PolarsScan.of_table(source.held, source.columns)
        limit, threads = self._run("SELECT current_setting('memory_limit'), current_setting('threads')")
        assert source.stamp is not None
        assert source.parquet is not None
        fits = 4 * threads * float(self._run(largest_group(source.parquet))[0]) <= _bytes(limit)
        return PolarsScan.of_file(source.stamp.path, source.columns, rows) if fits else None

    def _scan_polars(
        self, polars: PolarsScan, queries: Mapping[int, Query], spans: Sequence[Span] | None
    ) -> dict[int, Moments]:
        """The moments of those queries that Polars knows."""
        group = common_group(list(queries.values())) if spans is None else None
        known = {
            i: (query, expr) for i, query in queries.items() if (expr := polars.translate(query, group)) is not None
        }
        if not known:
            return {}
        own = None if spans is None else [spans[i] for i in known]
        count, sums = self._guarded(lambda: polars.sums(list(known.values()), self._time_limit, group, own))
        self._check_count(count)
        sizes = [count] * len(known) if own is None else [span.rows for span in own]
        return {i: Moments(size, *found) for i, size, found in zip(known, sizes, sums, strict=True)}

    def _identify(self, key: str) -> Identity:
        from afresh.engines.identity.cells import VERSION
        from afresh.engines.identity.scan import sum_rows

        sums: Sums = self._hashed("", partial(sum_rows, rows=self._rows, key=key))
        self._check_count(sums.rows)
        return identify(sums, VERSION)

    def _row_hashes(self) -> tuple[Any, Any]:
        """Return the hash of each row, and what numbers it."""
        from afresh.engines.identity.scan import hash_rows

        number = [] if self._source.held is not None else [f"d.{self._source.row}"]
        hashes, numbers = self._hashed("", partial(hash_rows, rows=self._rows), *number)
        self._check_count(len(hashes))
        return hashes, numbers

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """How identity reads each column."""
        from afresh.engines.identity.scan import kinds

        return kinds(self._columns, self._run, self._source.relation)

    def _hashed(self, by: str, work: Callable[[Any, Mapping[str, str]], _Read], *others: str) -> _Read:
        """Return what `work` makes of the cells of all rows, and of other columns, read in an order."""
        from afresh.engines.identity.scan import batch_rows, select_cells

        kinds, held = self._kinds, self._source.held

        def read(cursor: duckdb.DuckDBPyConnection) -> _Read | None:
            import pyarrow as pa  # on demand: nothing else here needs it

            with contextlib.suppress(pa.ArrowException, OSError):  # they pass on DuckDB's messages, which quote rows
                if held is not None and not by and not self._spelt(kinds):  # already values of the language
                    return work(held.select(list(kinds)).to_batches(batch_rows(in_memory=True)), kinds)
                # a relation, because `execute` would hold all rows in memory at once
                selected = cursor.sql(select_cells(self._source.relation, self._columns, kinds, *others) + by)
                reader = selected.to_arrow_reader(batch_rows(in_memory=False))
                return work(reader, kinds)
            return None

        return self._read(read)

    def _spelt(self, kinds: Mapping[str, str]) -> bool:
        """Whether texts of a column spell something else."""
        return any(kind != "text" for name, kind in kinds.items() if self._schema[name] is Type.TEXT)

    def _evaluate(self, statement: Statement, spans: Sequence[Span] | None) -> tuple[Any, ...]:
        relation = self._source.relation if spans is not None else self._source.direct or self._source.relation
        source, rows = f"{relation} AS d", self._rows
        deal: Any = None
        steps, grouped = statement.steps(), statement.test is not None
        if spans is None and (short := statement.short()) is not None:
            steps = [short]
        else:
            scan = statement.scan()
            if spans is not None:
                wanted, (source, place, deal) = united(spans), self._placed
                scan.append(f"{place} AS place")
                source += f" WHERE {_inside(place, wanted)}"
                rows = sum(span.rows for span in wanted)
            source = f"(SELECT {', '.join(scan)} FROM {source})"
        for step in steps[:-1]:
            source = f"(SELECT {', '.join(step)} FROM {source})"
        if grouped:  # counting all rows does not read them
            *outputs, test = steps[-1]
            everything = f"(SELECT count(*) FROM {relation})"
            sql = f"SELECT {everything}, {', '.join(outputs[1:])} FROM {source} WHERE {test}"
        else:
            sql = f"SELECT {', '.join(steps[-1])} FROM {source}"
        values = self._run(sql, deal)
        self._check_count(values[0], rows)
        return values

    @property
    def _placed(self) -> tuple[str, str, Any]:
        """The rows with their places: what to select from, the column of places, and the table to register for it.

        Rows of a file are read in order, beside their places: a join that looks each place up takes ten times as long.
        A row beside another one's place would have none, and the number of rows would show that.
        """
        from afresh.engines.embedded.dealing import unused

        source, deal = self._source, self.deal
        if source.held is None:
            place = f"(CASE WHEN d.{source.row} = s.r THEN s.place END)"
            return f"{source.relation} AS d POSITIONAL JOIN {_DEALT} AS s", place, deal.table
        name = unused("place", source.held.column_names)
        return f"{_DEALT} AS d", f"d.{name}", source.held.append_column(name, [deal.places])

    def _run(self, sql: str, deal: Any = None) -> tuple[Any, ...]:
        """Return the one row of a statement's result."""
        return self._read(lambda cursor: cursor.execute(sql).fetchone(), deal)

    def _read(self, read: Callable[[duckdb.DuckDBPyConnection], _Read | None], deal: Any = None) -> _Read:
        """Read with a cursor, within the time limit; a statement may use the table of a deal."""

        def work() -> _Read | None:
            # their messages quote rows: the error below must not carry them
            with contextlib.suppress(duckdb.Error, RuntimeError), interruptible():
                cursor = self._connection.cursor()
                if self._source.held is not None:
                    cursor.register(self._source.relation, self._source.held)
                if deal is not None:
                    cursor.register(_DEALT, deal)
                with self._watchdog.limit(cursor.interrupt):
                    return read(cursor)
            return None

        return self._guarded(work)

    def _guarded(self, work: Callable[[], _Read | None]) -> _Read:
        """Return what the work gives; None is a failure. The file must be the same before and after."""
        self.check_unchanged()
        result = work()
        self.check_unchanged()
        if result is None:
            raise failed()
        return result


def _clean_up(watchdog: Watchdog, scratch: Scratch, process: int) -> None:
    if os.getpid() == process:  # not a fork that is ending, which would take these from its parent
        watchdog.stop()
        scratch.remove()


def _inside(place: str, spans: Sequence[Span]) -> str:
    """Return SQL for whether a place is in one of the spans."""
    return " OR ".join(f"({place} >= {span.start:d} AND {place} < {span.stop:d})" for span in spans)


def _bytes(size: str) -> float:
    """Return the bytes in a size as DuckDB writes it, such as 16.0 GiB."""
    number, unit = size.split()
    return float(number) * 1024.0 ** ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit)
