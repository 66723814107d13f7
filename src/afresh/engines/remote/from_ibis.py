"""Ibis tables of a backend that has its own engine: read where they are, not copied.

Ibis says what the table is: a name, or an expression, which becomes a subquery. The questions' SQL is ours: Ibis's
rendering would raise errors on rows that overflow, and takes milliseconds per question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afresh.errors import DataError

if TYPE_CHECKING:
    from afresh.engines.remote.postgres import PostgresEngine
    from afresh.engines.remote.spark import SparkEngine


def open_postgres(table: Any) -> PostgresEngine:
    """Open an engine over an Ibis table in Postgres, by its own connection to the same database as the same user."""
    from psycopg.conninfo import make_conninfo

    from afresh.engines.remote.postgres import PostgresEngine

    backend = table.get_backend()
    info = backend.con.info
    known = {**info.get_parameters(), **({"password": info.password} if info.password else {})}
    url = make_conninfo("", **known)
    if plain := _plain_name(table):
        return PostgresEngine(url, ".".join(plain[-2:]))  # a connection sees one catalog
    return PostgresEngine(url, relation=f"({_compiled(table)})")


def open_spark(table: Any) -> SparkEngine:
    """Open an engine over an Ibis table in Spark."""
    from afresh.engines.remote.spark import SparkEngine
    from afresh.engines.sql.spark import quote_name

    session = table.get_backend()._session
    if plain := _plain_name(table):
        return SparkEngine(session, ".".join(map(quote_name, plain)))
    return SparkEngine(session.sql(_compiled(table)))


def _plain_name(table: Any) -> list[str]:
    """Return catalog, database and name, as far as known, of a plain table; empty for an expression."""
    import ibis.expr.operations as ops

    op = table.op()
    if not isinstance(op, ops.DatabaseTable):
        return []
    return [str(part) for part in (op.namespace.catalog, op.namespace.database, op.name) if part]


def _compiled(table: Any) -> str:
    """Return the SQL of an expression; one that needs rows from elsewhere cannot be read in place."""
    import ibis.expr.operations as ops

    if table.op().find(ops.InMemoryTable):
        raise DataError("the Ibis expression mixes a database with rows in memory; store these in the database first")
    return str(table.get_backend().compile(table))
