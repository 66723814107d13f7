"""From whatever a user has to an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afresh.engines.base import Engine


def open_engine(data: object, table: str | None = None) -> Engine:
    """An engine over a file (Parquet, CSV, DuckDB), a pandas or Polars frame, an Arrow or an Ibis table.

    `table` names the table of a DuckDB file with several. Parquet and DuckDB files are read in place,
    anything else is copied once. No file may change while it is open.
    """
    from afresh.engines.embedded import EmbeddedEngine  # duckdb takes a while to import

    return EmbeddedEngine(data, table)
