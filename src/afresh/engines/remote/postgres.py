"""Rows in a Postgres table or view, read in place.

Every call is one transaction, REPEATABLE READ and READ ONLY, with a time limit: it sees a single state of the table,
and cannot write. Once the table is open, no message from Postgres is passed on.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from afresh.engines.identity import Sums
from afresh.engines.identity.cells import VERSION as ALGORITHM
from afresh.engines.identity.postgres import row_hashes, sum_table
from afresh.engines.remote.engine import RemoteEngine, Step
from afresh.engines.sql.engine import failed
from afresh.engines.sql.postgres import TEXTUAL, PostgresDialect, quote_name
from afresh.engines.sql.rendering import Statement, quoted
from afresh.errors import AfreshError, DataChanged, DataError, EngineError, MissingExtra
from afresh.moments import Span
from afresh.version import __version__

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

OLDEST = 130000  # pg_current_snapshot() came with version 13
_NO_RIGHT = "42501"  # insufficient_privilege
# settings that affect texts, constants and times are fixed, whatever the server's and the role's defaults
_SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "standard_conforming_strings": "on",
    "jit": "off",  # compiling a hundred guarded expressions takes longer than it saves
}
_KINDS = "'r', 'p', 'v', 'm', 'f'"  # tables, partitioned tables, views, materialized views, foreign tables
# Inheriting tables may be foreign, and which rows a policy shows may depend on anything: treat such tables as views.
_KIND = "CASE WHEN c.relhassubclass OR c.relrowsecurity THEN 'v' ELSE c.relkind::text END"
# The same snapshot means that no transaction on the server got a number in between, so none has written. A crash can
# undo transactions and their numbers, but it writes to the log and restarts the server.
_STATE = """
    SELECT current_user, current_database(), pg_postmaster_start_time()::text, c.oid::text,
        pg_relation_filenode(c.oid)::text, pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text
    FROM pg_class AS c
    WHERE c.oid = {relation}::regclass AND c.relpersistence = 'p' AND NOT c.relrowsecurity AND NOT c.relhassubclass
"""


class PostgresEngine(RemoteEngine):
    """A table or view of a Postgres database. Safe to use from several threads: they wait for each other."""

    dialect = PostgresDialect()
    at_once = 50

    def __init__(
        self, url: str, table: str | None = None, *, relation: str | None = None, timeout: float = 600.0
    ) -> None:
        """Open `table` ("name" or "schema.name") of the database at `url`, or `relation`, a piece of SQL.

        A statement that runs longer than `timeout` seconds fails.
        """
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("psycopg", "postgres") from None
        self._errors, self._url, self._timeout = psycopg.Error, url, timeout
        self._place, self._secrets = _read_address(url)
        self._lock = threading.Lock()
        self._held: list[psycopg.Connection[Any]] = []  # the connection, if there is one
        weakref.finalize(self, _close, self._held)
        self._quiet: str | None = None  # the snapshot in which the table was last seen unchanged
        try:
            self._relation, kind = (relation, "query") if relation else self._find(table)
            # A table in this very database changes only by transactions; a view may read anything.
            self._plain = self.filters = kind in ("r", "m")
            self._opened(*self._transact(self._look))
        except BaseException as error:
            self.close()
            if not isinstance(error, EngineError):
                raise
        else:
            return
        what = "the expression" if relation else f"the table {table!r}" if table else "the table"
        raise DataError(f"{what} at {self._place} cannot be read; check for missing permissions, or a view that fails")

    def check_unchanged(self) -> None:
        """Raise `DataChanged` if the number of rows or the schema is not the one found at opening.

        As long as no transaction on the whole server has written anything, which one look at the snapshot shows, the
        table is the same and its rows are not counted again. That depends on what was written, never on values.
        """
        self._transact(self._check)

    def state(self) -> str | None:
        """The state of the server, if the table is a plain one; any write on the server changes it."""
        if not self._plain:
            return None
        return self._transact(self._standing)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        _close(self._held)

    def _sum_rows(self, key: str) -> Sums:
        return sum_table(self.dialect, self._columns, self._run, self._rows, key)

    def _hashed(self, scan: Sequence[str], names: Sequence[str]) -> list[Step]:
        first, *others = self._row_hashes
        return [[*scan, *first], *([*names, *step] for step in others)]

    @cached_property
    def _row_hashes(self) -> list[list[str]]:
        return row_hashes(self.dialect, self._columns, self._run)

    def _run(
        self,
        steps: Sequence[Sequence[str]],
        limit: int | None = None,
        parts: tuple[str, Sequence[str]] | None = None,
    ) -> tuple[Any, ...]:
        """Run the steps; `parts` says by what to group the last one, and how to aggregate its groups."""
        source = self._relation if limit is None else f"(SELECT * FROM {self._relation} AS d LIMIT {limit:d})"
        sql = _stacked(steps, source)
        if parts is not None:
            by, step = parts
            sql = f"SELECT {', '.join(step)} FROM ({sql} GROUP BY {by}) AS s"

        def work(cursor: psycopg.Cursor[Any]) -> tuple[Any, ...]:
            self._check_columns(self._described(cursor))
            return _one(cursor, sql)

        return self._transact(work)

    def _evaluate(self, statement: Statement, spans: Sequence[Span] | None) -> tuple[Any, ...]:
        """Evaluate as for any table. A group leaves out other rows; all are counted only if anything was written."""
        if statement.test is None:
            return super()._evaluate(statement, spans)
        *steps, (_, *outputs, test) = statement.steps()
        source = self._relation
        if (below := statement.over_table) is not None:
            source, test = f"{source} AS d WHERE {below}", "TRUE"

        def work(cursor: psycopg.Cursor[Any]) -> tuple[Any, ...]:
            self._check_columns(self._described(cursor))
            snapshot = self._snapshot(cursor)
            known = self._plain and snapshot == self._quiet
            count = f"{self._rows:d}" if known else f"(SELECT count(*) FROM {self._relation} AS d)"
            sql = _stacked([statement.scan(), *steps, [count, *outputs]], source, named=below is not None)
            values = _one(cursor, f"{sql} WHERE {test}")
            self._check_count(values[0])
            self._quiet = snapshot
            return values

        return self._transact(work)

    def _raw(self, name: str) -> str:
        return f"d.{quote_name(name)}"

    def _fetch(self, steps: Sequence[Sequence[str]], span: Span) -> list[tuple[Any, ...]]:
        within = f"WHERE place >= {span.start:d} AND place < {span.stop:d} ORDER BY place"
        sql = f"SELECT * FROM ({_stacked(steps, self._relation)}) AS s {within}"

        def work(cursor: psycopg.Cursor[Any]) -> list[tuple[Any, ...]]:
            self._check(cursor)
            return [tuple(row[:-1]) for row in cursor.execute(sql).fetchall()]

        return self._transact(work)

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        if self._held and not self._held[0].closed:
            return self._held[0]
        _close(self._held)
        said = ""
        try:
            connection = psycopg.connect(self._url, client_encoding="UTF8", fallback_application_name="afresh")
        except psycopg.Error as error:
            said = str(error).strip()  # the connection failed, so this quotes no row
        else:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            connection.prepare_threshold = None
            version, encoding = connection.info.server_version, connection.info.parameter_status("server_encoding")
            if version >= OLDEST and encoding == "UTF8":
                self._held.append(connection)
                return connection
            connection.close()
            said = (
                f"it needs version {OLDEST // 10000} or newer and encoding UTF8, not {version // 10000} and {encoding}"
            )
        raise DataError(f"cannot use the Postgres database at {self._place}: {self._redacted(said)}")

    def _transact(self, work: Callable[[psycopg.Cursor[Any]], T]) -> T:
        """Return what `work` gives in one transaction; anything that goes wrong in Postgres is the same error."""
        problem: AfreshError
        with self._lock:
            try:
                connection = self._connect()
                with connection.transaction(), connection.cursor() as cursor:
                    settings = {**_SETTINGS, "statement_timeout": str(int(self._timeout * 1000))}
                    local = [f"set_config({quoted(k)}, {quoted(v)}, true)" for k, v in settings.items()]
                    cursor.execute(f"SELECT {', '.join(local)}")
                    return work(cursor)
            except AfreshError as error:
                problem = error
            except self._errors:
                problem = failed()
        raise problem  # out here, so it carries nothing of Postgres's message

    def _redacted(self, said: str) -> str:
        for secret in self._secrets:
            said = said.replace(secret, "***")
        return said

    def _look(self, cursor: psycopg.Cursor[Any]) -> tuple[dict[str, str], int]:
        """Return the columns and number of rows, as they are now."""
        snapshot, columns = self._snapshot(cursor), self._described(cursor)
        count = _one(cursor, f"SELECT count(*) FROM {self._relation} AS d")[0]
        self._quiet = snapshot
        return columns, count

    def _check(self, cursor: psycopg.Cursor[Any]) -> None:
        if self._plain and self._snapshot(cursor) == self._quiet:
            return
        self._quiet = None
        self._check_columns(self._described(cursor))
        self._check_count(_one(cursor, f"SELECT count(*) FROM {self._relation} AS d")[0])
        self._quiet = self._snapshot(cursor)

    def _standing(self, cursor: psycopg.Cursor[Any]) -> str | None:
        if _one(cursor, "SELECT pg_is_in_recovery()")[0]:  # a standby has no log of its own
            return None
        found = cursor.execute(_STATE.format(relation=quoted(self._relation))).fetchone()
        return None if found is None else json.dumps([__version__, ALGORITHM, self._place, self._columns, *found])

    def _snapshot(self, cursor: psycopg.Cursor[Any]) -> str:
        return str(_one(cursor, "SELECT pg_current_snapshot()::text")[0])

    def _described(self, cursor: psycopg.Cursor[Any]) -> dict[str, str]:
        """Return the names and types of the columns, whatever kind of relation it is."""
        state = None
        try:
            with cursor.connection.transaction():
                cursor.execute(f"SELECT * FROM {self._relation} AS d LIMIT 0")
        except self._errors as error:
            state = getattr(error, "sqlstate", None) or "failed"
        if state == _NO_RIGHT:
            raise DataError(
                f"this role may not read {self._relation}; its owner can allow it: GRANT SELECT ON "
                f"{self._relation} TO this role (and USAGE on its schema). Nothing was answered"
            )
        if state is not None or cursor.description is None or cursor.pgresult is None:
            raise DataChanged(
                "the table was removed or renamed, or you lost access to it, after it was opened; nothing was answered"
            )
        found = [
            (column.name, column.type_code, cursor.pgresult.fmod(place))
            for place, column in enumerate(cursor.description)
        ]
        if not found:
            return {}
        values = ", ".join(f"({place}, {oid}::oid, {fmod})" for place, (_, oid, fmod) in enumerate(found))
        types = cursor.execute(
            "SELECT format_type(v.oid, v.fmod), t.typtype = 'e' OR t.typcategory = 'S' "
            f"FROM (VALUES {values}) AS v (place, oid, fmod) JOIN pg_type AS t ON t.oid = v.oid ORDER BY v.place"
        ).fetchall()
        columns: dict[str, str] = {}
        for (name, _, _), (physical, textual) in zip(found, types, strict=True):
            if name in columns:
                raise DataError(f"the table has two columns named {name!r}; rename one")
            known = self.dialect.kind(physical) is not None
            columns[name] = TEXTUAL + physical if textual and not known else physical
        return columns

    def _find(self, table: str | None) -> tuple[str, str]:
        """Return the relation with this name, quoted, and its kind."""
        found = self._transact(
            lambda cursor: cursor.execute(
                f"SELECT n.nspname, c.relname, {_KIND}, pg_table_is_visible(c.oid) FROM pg_class AS c "
                f"JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind IN ({_KINDS}) "
                "AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%' "
                "AND NOT c.relispartition ORDER BY 1, 2"
            ).fetchall()
        )
        relations = {f"{schema}.{name}": (schema, name, str(kind)) for schema, name, kind, _ in found}
        names = {name if visible else f"{schema}.{name}": f"{schema}.{name}" for schema, name, _, visible in found}
        if table is None and len(relations) == 1:
            table = next(iter(relations))
        wanted = "" if table is None else table
        # as written, then as Postgres would read it without quotes
        chosen = next(
            (names.get(one, one) for one in (wanted, wanted.lower()) if names.get(one, one) in relations), None
        )
        if chosen is None:
            listed = ", ".join(list(names)[:20]) or "none"
            has = f"{len(names)} tables and views" if table is None else f"no table or view {table!r}"
            raise DataError(f"the database at {self._place} has {has}; choose one with table=: {listed}")
        schema, name, kind = relations[chosen]
        return f"{quote_name(schema)}.{quote_name(name)}", kind


def _read_address(url: str) -> tuple[str, list[str]]:
    """Return where a connection leads, in words, and which parts of its address must not appear in messages."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    parts: dict[str, Any] | None = None
    with contextlib.suppress(ProgrammingError):  # its message may quote a piece of a password
        parts = conninfo_to_dict(url)
    # If a password contains an unencoded character, part of it can look like a host or a port.
    hosts, ports = (str((parts or {}).get(key) or "") for key in ("host", "port"))
    if parts is None or "@" in hosts or not re.fullmatch(r"[0-9,]*", ports):
        raise DataError(
            "the address of the Postgres database cannot be read; write postgresql://user@host:port/database, and in "
            "a password %40 for @, %2F for /, %3A for : and so on, or keep it in PGPASSWORD or ~/.pgpass"
        )
    place = f"{hosts or 'the default host'}{ports and ':'}{ports}/{parts.get('dbname') or ''}"
    return place, [str(parts[key]) for key in ("password", "sslpassword") if parts.get(key)]


def _stacked(steps: Sequence[Sequence[str]], source: str, *, named: bool = False) -> str:
    """Stack projections over a table; the table may already have its name and a condition."""
    sql = f"SELECT {', '.join(steps[0])} FROM {source}{'' if named else ' AS d'}"
    for depth, step in enumerate(steps[1:]):
        # OFFSET 0 keeps a layer from being merged into the next, which would repeat its texts; it does not keep workers
        # from running in parallel. The scan is better merged if it is named only once or twice.
        fence = " OFFSET 0" if depth or _repeated(step) else ""
        sql = f"SELECT {', '.join(step)} FROM ({sql}{fence}) AS s"
    return sql


def _repeated(step: Sequence[str]) -> bool:
    """Whether a projection names a column of the scan more than twice."""
    names = Counter(re.findall(r"\b[cv][0-9]+\b", " ".join(step)))
    return max(names.values(), default=0) > 2


def _close(held: list[psycopg.Connection[Any]]) -> None:
    while held:
        held.pop().close()


def _one(cursor: psycopg.Cursor[Any], sql: str) -> tuple[Any, ...]:
    row = cursor.execute(sql).fetchone()
    if row is None:
        raise failed()
    return tuple(row)
