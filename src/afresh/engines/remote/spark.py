"""Rows in a Spark table or DataFrame, read in place by the session they belong to.

Questions become projections of the DataFrame: no view is made and no setting changed. Once the table is open, no
message from Spark is passed on. Spark's own logs may quote values of rows: they are for the operators of Spark, not
for analysts.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

from afresh.engines.identity import Sums
from afresh.engines.identity.cells import VERSION as ALGORITHM
from afresh.engines.identity.spark import matches, select_cells, sum_frame, try_workers, with_hashes
from afresh.engines.identity.spelling import counted, kinds
from afresh.engines.remote.engine import RemoteEngine, Step
from afresh.engines.remote.versions import version
from afresh.engines.sql.engine import failed
from afresh.engines.sql.spark import SparkDialect, quote_name
from afresh.errors import AfreshError, DataChanged, DataError, EngineError, InvalidArgument
from afresh.moments import Span
from afresh.version import __version__

T = TypeVar("T")

OLDEST = 4
_ELSEWHERE = ("interval", "variant")


class _Silence(logging.Filter):
    """Drops pyspark's log messages, which quote rows, about an error in a thread that answers a question."""

    def __init__(self) -> None:
        super().__init__()
        self.here = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(self.here, "on", False)


_silence = _Silence()


def is_spark(data: object) -> bool:
    """Whether data is a Spark DataFrame or session; false if pyspark was not imported, as then nothing can be."""
    module: Any = sys.modules.get("pyspark.sql")
    return module is not None and isinstance(data, (module.DataFrame, module.SparkSession))


class SparkEngine(RemoteEngine):
    """A DataFrame, or a table of a session. A DataFrame must give the same rows whenever it is evaluated."""

    dialect = SparkDialect()
    at_once = 20  # Spark takes longer and longer to plan more, and never finishes planning a hundred
    widest = 200

    def __init__(self, data: Any, table: str | None = None, *, timeout: float = 3600.0) -> None:
        """Open a DataFrame, or `table` of a session. Anything that runs longer than `timeout` seconds fails."""
        session = hasattr(data, "range")  # a DataFrame has none
        if session and table is None:
            raise InvalidArgument("a Spark session needs table=, the name of the table to open")
        if not session and table is not None:
            raise InvalidArgument(f"table = {table!r}, but a DataFrame is a table already; leave it out")
        self._session: Any = data if session else data.sparkSession
        self._timeout = timeout
        self._frame: Any = None if session else data
        self._table = table
        if int(str(self._session.version).partition(".")[0]) < OLDEST:
            raise DataError(f"Spark {self._session.version} is too old; it must be {OLDEST}.0 or newer")
        found = self._look()
        if found is None:
            what = f"the session has no table {table!r} that can be read" if session else "the DataFrame fails"
            raise DataError(f"{what}; counting its rows in Spark shows why")
        columns, count, self._stored = found
        self._opened(columns, count)

    def state(self) -> str | None:
        """The version of an Iceberg table, and what reads it; None for rows without versions."""
        found = None
        with contextlib.suppress(EngineError):
            found = self._guarded(lambda: version(self._source()))
        if found is None:
            return None
        return json.dumps([__version__, ALGORITHM, self._session.version, self._columns, found])

    def check_unchanged(self) -> None:
        """Raise `DataChanged` if the schema, the files or the version are not those found at opening.

        That takes no job. The rows are counted by the job that answers a question.
        """
        found = None
        with contextlib.suppress(EngineError):
            found = self._guarded(lambda: (self._described(), self._storage()))
        if found is None:
            raise DataChanged("the table was removed or can no longer be read; nothing was answered")
        self._check_columns(found[0])
        if found[1] != self._stored:
            raise DataChanged(
                "the table is stored in different files than when it was opened; nothing was answered. Open it again: "
                "the same rows keep their budget"
            )

    def close(self) -> None:
        """Do nothing: the session is the user's."""

    def _look(self) -> tuple[dict[str, str], int, tuple[frozenset[str], str | None]] | None:
        """Return columns, number of rows and where they are stored, as of now; None if they cannot be read."""
        with contextlib.suppress(EngineError):
            return self._guarded(lambda: (self._described(), int(self._source().count()), self._storage()))
        return None

    def _storage(self) -> tuple[frozenset[str], str | None]:
        """Return the files the rows are in, which Spark never rewrites, and their version; None if they have none."""
        source = self._source()
        return frozenset(source.inputFiles()), version(source)

    def _source(self) -> Any:
        """Return the DataFrame; for a table it is looked up again, as a table can be replaced."""
        if self._frame is not None:
            return self._frame
        with contextlib.suppress(Exception):  # stale file listings would hide a change, and fail on removed files
            self._session.catalog.refreshTable(self._table)
        return self._session.table(self._table)

    def _described(self) -> dict[str, str]:
        fields = self._source().schema.fields
        columns = {field.name: field.dataType.simpleString() for field in fields}
        if len(columns) < len(fields):
            raise DataError("the DataFrame has two columns with the same name; rename one")
        return columns

    @cached_property
    def _cells(self) -> tuple[dict[str, str], list[str]]:
        """How each column is hashed, and a projection to what is hashed."""
        columns = counted(self.dialect, self._columns)
        hashed = kinds(self.dialect, columns, matches, self._run)
        return hashed, select_cells(self.dialect, columns, hashed)

    def _hashed(self, scan: Sequence[str], names: Sequence[str]) -> list[Step]:
        hashed, cells = self._cells
        return [[*scan, *cells], partial(with_hashes, kinds=hashed)]

    def _sum_rows(self, key: str) -> Sums:
        hashed, cells = self._cells
        try:
            return self._guarded(lambda: sum_frame(self._source().alias("d").selectExpr(*cells), hashed, key))
        except EngineError:
            problem = self._workers_problem()
        raise problem

    def _workers_problem(self) -> AfreshError:
        """Return why hashing failed: a test row that is not from the data shows whether the workers are to blame."""
        try:
            self._guarded(lambda: try_workers(self._session))
        except EngineError:
            return DataError(
                "Spark's workers cannot hash the rows: they need NumPy, PyArrow, pandas (pip install 'afresh[spark]') "
                f"and the Python of this process, {sys.version_info.major}.{sys.version_info.minor}. Set "
                "PYSPARK_PYTHON to such a Python before the session is made"
            )
        return failed()

    def _run(self, steps: Sequence[Step], limit: int | None = None) -> tuple[Any, ...]:
        def work() -> tuple[Any, ...]:
            frame = self._source()
            self._check_columns(self._described())
            frame = (frame if limit is None else frame.limit(limit)).alias("d")
            return tuple(_projected(frame, steps).collect()[0])

        return self._guarded(work)

    def _raw(self, name: str) -> str:
        kind = self._columns[name]
        # workers, who add the hash, know no such types
        return f"CAST(d.{quote_name(name)} AS STRING)" if kind.startswith(_ELSEWHERE) else f"d.{quote_name(name)}"

    def _fetch(self, steps: Sequence[Step], span: Span) -> list[tuple[Any, ...]]:
        def work() -> list[tuple[Any, ...]]:
            frame = self._source().alias("d")
            self._check_columns(self._described())
            frame = (
                _projected(frame, steps).where(f"place >= {span.start:d} AND place < {span.stop:d}").orderBy("place")
            )
            return [tuple(row[:-1]) for row in frame.collect()]

        return self._guarded(work)

    def _guarded(self, work: Callable[[], T]) -> T:
        """Return what `work` gives; anything that goes wrong in Spark is the same error."""
        problem: AfreshError
        try:
            with self._limited():
                return work()
        except AfreshError as error:
            problem = error
        except Exception:  # py4j's, pyspark's and grpc's errors have no common base
            problem = failed()
        raise problem  # out here, so it carries nothing of Spark's message

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        """Interrupt this thread's work in Spark when its time is up, and keep its errors out of Python's log."""
        logging.getLogger("SQLQueryContextLogger").addFilter(_silence)  # adding it again does nothing
        tag, over = f"afresh-{uuid.uuid4().hex}", threading.Event()
        add, remove, cancel = self._tags()

        def watch() -> None:
            late = not over.wait(self._timeout)
            while late:  # again and again: what is still being planned cannot be cancelled yet
                with contextlib.suppress(Exception):
                    cancel(tag)
                late = not over.wait(1.0)

        add(tag)
        threading.Thread(target=watch, daemon=True).start()
        _silence.here.on = True
        try:
            yield
        finally:
            _silence.here.on = False
            over.set()
            remove(tag)

    def _tags(self) -> tuple[Callable[[str], Any], Callable[[str], Any], Callable[[str], Any]]:
        """Return how to mark this thread's jobs, unmark them and cancel marked ones. Spark Connect has no context."""
        try:
            context = self._session.sparkContext
        except Exception:
            return self._session.addTag, self._session.removeTag, self._session.interruptTag
        return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def _projected(frame: Any, steps: Sequence[Step]) -> Any:
    """Return a DataFrame after all steps, each a projection or a function."""
    for step in steps:
        frame = step(frame) if callable(step) else frame.selectExpr(*step)
    return frame
