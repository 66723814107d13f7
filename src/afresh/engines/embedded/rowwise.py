"""What per-row questions need from an embedded engine, row by row, in the data's own order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afresh.engines.sql.duckdb import column, quote_name
from afresh.errors import DataError, MissingExtra
from afresh.moments import Span

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.engines.embedded.engine import EmbeddedEngine


def embedded(engine: Engine) -> EmbeddedEngine:
    """Return the engine, if it can tell rows apart."""
    from afresh.engines.embedded.engine import EmbeddedEngine

    if not isinstance(engine, EmbeddedEngine):
        raise DataError(
            "predictions are matched with rows by their order, and the rows of a table in Postgres or Spark have none; "
            "write the table to a Parquet file, or read it into a frame, and open that."
        )
    return engine


def read_column(engine: Engine, name: str) -> Any:
    """Return one column as a (masked) array: for labels, only inside the guard."""
    return embedded(engine).fetch(f"SELECT {column(name)} AS v {_in_order(engine)}")["v"]


def read_no_rows(engine: Engine, name: str) -> Any:
    """Return what `read_column` returns, without any rows: the type is public."""
    return embedded(engine).fetch(f"SELECT {column(name)} AS v {_in_order(engine)} LIMIT 0")["v"]


def read_features(engine: Engine, without: Iterable[str]) -> Any:
    """Return all other columns as a pandas frame, for a model to predict from."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas", "frames") from None
    row = embedded(engine).source.row
    hidden = sorted({*without} | (set() if row == "rowid" else {row}))  # * does not include a rowid
    found = embedded(engine).fetch(f"SELECT * EXCLUDE ({', '.join(map(quote_name, hidden))}) {_in_order(engine)}")
    return pd.DataFrame(found)


def hashes_of(engine: Engine, names: Iterable[str]) -> NDArray[np.uint64]:
    """Return a hash of each row's values in these columns, the same in every engine with columns of the same types."""
    listed = ", ".join(column(name) for name in names)
    found = embedded(engine).fetch(f"SELECT hash({listed}) AS v FROM {embedded(engine).source.relation} AS d")["v"]
    return np.asarray(found, dtype=np.uint64)


def order_of(engine: Engine) -> str:
    """Return a secret digest of the rows' order: the same predictions in another order are a different question."""
    return embedded(engine).order(_by_row(engine))


def rows_of_span(engine: Engine, span: Span) -> NDArray[np.int64]:
    """Return the positions of the rows of a span, in increasing order."""
    return embedded(engine).deal.rows_in(span)


def _in_order(engine: Engine) -> str:
    return f"FROM {embedded(engine).source.relation} AS d{_by_row(engine)}"


def _by_row(engine: Engine) -> str:
    """Return how to read in row order: rows in memory are scanned in order, others have a column that numbers them."""
    source = embedded(engine).source
    return "" if source.held is not None else f" ORDER BY d.{source.row}"
