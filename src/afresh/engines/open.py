"""Opens an engine over a user's data."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from afresh.errors import DataError, InvalidArgument

if TYPE_CHECKING:
    from afresh.engines.base import Engine

_POSTGRES = ("postgresql://", "postgres://")


def open_engine(data: object, table: str | None = None, recall: Callable[[str], Any] = lambda state: None) -> Engine:
    """Open an engine over a file, a frame, an Arrow or Ibis table, a Postgres database or a Spark table.

    Files are Parquet, CSV or DuckDB; frames are pandas or Polars. Parquet and DuckDB files are read in place, and so
    are tables of Postgres ("postgresql://user@host/database" and `table`) and Spark (a DataFrame, or a session and
    `table`), even as Ibis tables. Anything else is copied once. `table` names the table in a DuckDB file or a database.
    The data must not change while it is open.

    Args:
        data: A path, an address, a frame, a table or a Spark session.
        table: Which table, if `data` holds several.
        recall: Returns what an engine learned before about data in a state (`Engine.learnt`); None if nothing.

    Returns:
        An engine that gives moments of these rows.

    Raises:
        DataError: The data cannot be opened, or the address is of an unknown kind.
        InvalidArgument: `table` was given for data that is already one table.
    """
    if isinstance(data, str) and data.startswith(_POSTGRES):
        from afresh.engines.remote.postgres import PostgresEngine

        return PostgresEngine(data, table)
    if isinstance(data, str) and (scheme := re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", data)):
        raise DataError(  # without the rest, which may hold a password
            f"cannot open {scheme[0]}... ; the one kind of address that can be opened is "
            "postgresql://user@host/database. A table of another database can come as an Ibis table"
        )
    if "pyspark" in sys.modules:  # otherwise no Spark object can exist
        from afresh.engines.remote.spark import SparkEngine, is_spark

        if is_spark(data):
            return SparkEngine(data, table)
    if (backend := _backend(data)) is not None:
        if table is not None:
            raise InvalidArgument(f"table = {table!r}, but an Ibis table is one already; leave it out")
        if backend == "postgres":
            from afresh.engines.remote.from_ibis import open_postgres

            return open_postgres(data)
        if backend == "pyspark":
            from afresh.engines.remote.from_ibis import open_spark

            return open_spark(data)
    from afresh.engines.embedded.engine import EmbeddedEngine  # duckdb takes a while to import

    return EmbeddedEngine(data, table, recall=recall)


def reading_dates(data: object, dates: str | None) -> object:
    """The data of a command or a configuration, whose dates may have a form."""
    if dates is None:
        return data
    from afresh.engines.embedded.csv_file import CSV

    return CSV(str(data), dates)


def _backend(data: object) -> str | None:
    """Return the name of an Ibis table's backend; None for anything else, and for a table that has none."""
    ibis: Any = sys.modules.get("ibis")
    if ibis is None or not isinstance(data, ibis.Table):
        return None
    try:
        return str(data.get_backend().name)
    except ibis.IbisError:  # a table with several backends, or with none
        return None
