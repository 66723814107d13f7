"""Sums a Spark DataFrame's rows with NumPy in Spark's workers: the rows stay where they are.

The workers need NumPy, PyArrow and pandas, as for any function on Arrow batches, but not this package: its code is sent
along.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from afresh.engines.identity import cells, hasher, least, numbers, records, sketch
from afresh.engines.identity.hasher import Hasher, joined
from afresh.engines.identity.records import Sums
from afresh.engines.sql.rendering import Dialect
from afresh.engines.sql.spark import quote_text
from afresh.queries.tree import Type

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_lock = threading.Lock()  # pickling by value is set for the whole process


def matches(value: str, pattern: str) -> str:
    """Return SQL for whether a whole text satisfies a grammar."""
    whole = r"\A(" + pattern + r")\z"  # Java's patterns: $ would also match before a newline at the end
    return f"({value} RLIKE {quote_text(whole)})"


def select_cells(dialect: Dialect, columns: Mapping[str, str], kinds: Mapping[str, str]) -> list[str]:
    """Return a projection to what `Hasher` takes: the cells in order of their names."""
    cells = []
    for place, (name, physical) in enumerate(columns.items()):
        value = dialect.leaf(name, physical)
        if dialect.kind(physical) is Type.TEXT:
            value = _read(value, kinds[name])
        cells.append(f"{value} AS cell{place}")
    return cells


def sum_frame(frame: Any, kinds: Mapping[str, str], key: str) -> Sums:
    """Return the sums of a DataFrame with these cells."""
    with _sent_along():
        made = frame.mapInArrow(_worker(dict(kinds), key), "sums string")
    found = made.collect()
    return joined([_received(kinds, row[0]) for row in found], kinds)


def with_hashes(frame: Any, kinds: Mapping[str, str]) -> Any:
    """Return a DataFrame with the hash of every row, called h, in place of its last columns, which are its cells."""
    from pyspark.sql.types import LongType, StructField, StructType

    fields = frame.schema.fields[: len(frame.columns) - len(kinds)]
    with _sent_along():
        return frame.mapInArrow(_adder(dict(kinds)), StructType([*fields, StructField("h", LongType())]))


def _adder(kinds: Mapping[str, str]) -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    def work(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import numpy
        import pyarrow

        hasher = Hasher(kinds)
        for batch in batches:
            kept = batch.num_columns - len(kinds)
            parts = [part.copy() for part in hasher.row_hashes(batch.select(list(range(kept, batch.num_columns))))]
            hashes = numpy.concatenate([numpy.empty(0, numpy.uint64), *parts]).view(numpy.int64)
            names = [*batch.schema.names[:kept], "h"]
            yield pyarrow.RecordBatch.from_arrays([*batch.columns[:kept], pyarrow.array(hashes)], names)

    return work


def try_workers(session: Any) -> None:
    """Fail if workers cannot do what hashing needs, whatever the rows are."""
    with _sent_along():
        made = (
            session.range(1).selectExpr("CAST(id AS DOUBLE) AS c0").mapInArrow(_worker({"c0": "number"}), "sums string")
        )
    made.collect()


def _worker(kinds: Mapping[str, str], key: str = "") -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    def work(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow

        hasher = Hasher(kinds, key=key)
        for batch in batches:
            hasher.add(batch, None)
        columns = [[one.total, one.seen, one.uneven, one.low, one.high] for one in hasher.sums.values()]
        found = [hasher.rows, hasher.total, hasher.least.found.tolist(), columns]
        yield pyarrow.RecordBatch.from_pydict({"sums": [json.dumps(found)]})

    return work


def _received(kinds: Mapping[str, str], sums: str) -> Hasher:
    """Return a hasher with what a worker found."""
    hasher = Hasher(kinds)
    hasher.rows, hasher.total, hasher.least.found[:], columns = json.loads(sums)
    for one, found in zip(hasher.sums.values(), columns, strict=True):
        one.total, one.seen, one.uneven, one.low, one.high = found
    return hasher


def _read(value: str, kind: str) -> str:
    """Return SQL for what a text spells; times without the UTC mark."""
    if kind == "time":
        mark = quote_text(r"(Z|\+00(:?00)?)\z")
        return f"try_cast(regexp_replace({value}, {mark}, '') AS TIMESTAMP_NTZ)"
    if kind == "boolean":
        return f"(lower({value}) = 'true')"
    return f"try_cast({value} AS DOUBLE)" if kind == "number" else value


@contextmanager
def _sent_along() -> Iterator[None]:
    """Have functions of these modules pickled by value, instead of by names that workers do not know."""
    from pyspark import cloudpickle as pickling

    cloudpickle: Any = pickling  # it has no types

    modules = (cells, hasher, least, numbers, records, sketch, sys.modules[__name__])
    with _lock:
        for module in modules:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)
