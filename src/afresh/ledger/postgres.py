"""Chains in a PostgreSQL database: many machines share one budget."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Sequence
from typing import Any, LiteralString

from afresh.errors import BrokenChain, InvalidArgument, LedgerError, MissingExtra
from afresh.ledger.connected import BUSY_SECONDS, ConnectedJournal
from afresh.ledger.journal import Chain, Checkpoint, Sealed, Transaction

try:
    import psycopg
    from psycopg import errors
except ImportError as error:
    raise MissingExtra("psycopg", "postgres") from error

LAYOUT = 3  # the same numbers as in SQLite, so one number means one layout
_LARGEST = 2**63 - 1
_REFUSED = "AF001"  # the error code with which the functions of `analysts.sql` refuse
_CREATING = 0x61667268  # the advisory lock for creating tables or guards

_CHECKPOINTS = """
CREATE TABLE afresh_checkpoints (
    guard bigint PRIMARY KEY,
    length bigint NOT NULL,
    head text NOT NULL,
    hash text NOT NULL
);
"""
_SKETCHES = """
CREATE TABLE afresh_key (secret text NOT NULL);
CREATE TABLE afresh_sketches (
    guard bigint PRIMARY KEY REFERENCES afresh_guards (id),
    sketch text NOT NULL
);
CREATE TRIGGER afresh_key_stays BEFORE DELETE OR UPDATE OR TRUNCATE ON afresh_key EXECUTE FUNCTION afresh_refuse();
CREATE TRIGGER afresh_sketches_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON afresh_sketches
    EXECUTE FUNCTION afresh_refuse();
"""
_ADDED = {2: _CHECKPOINTS, 3: _SKETCHES}  # the tables of layouts after the first
_TABLES = f"""
CREATE TABLE afresh_layout (version integer NOT NULL);
INSERT INTO afresh_layout VALUES ({LAYOUT});
CREATE TABLE afresh_guards (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seed text NOT NULL,
    length bigint NOT NULL,
    head text NOT NULL
);
CREATE TABLE afresh_records (
    guard bigint NOT NULL REFERENCES afresh_guards (id),
    place bigint NOT NULL CHECK (place >= 1),
    record text NOT NULL,
    hash text NOT NULL,
    PRIMARY KEY (guard, place)
);
{_CHECKPOINTS}
CREATE FUNCTION afresh_refuse() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'a ledger is append-only'; END $$;
CREATE TRIGGER afresh_records_stay BEFORE DELETE OR UPDATE OR TRUNCATE ON afresh_records
    EXECUTE FUNCTION afresh_refuse();
CREATE TRIGGER afresh_guards_stay BEFORE DELETE OR TRUNCATE ON afresh_guards EXECUTE FUNCTION afresh_refuse();
CREATE TRIGGER afresh_guards_are_fixed BEFORE UPDATE ON afresh_guards FOR EACH ROW
    WHEN (NEW.length <= OLD.length OR NEW.id <> OLD.id OR NEW.seed <> OLD.seed)
    EXECUTE FUNCTION afresh_refuse();
{_SKETCHES}
"""
_REMEDIES: list[tuple[type[psycopg.Error], str]] = [
    (errors.LockNotAvailable, "another process has kept the guard locked for {seconds:g} s; end that one or try again"),
    (errors.ReadOnlySqlTransaction, "it is read-only; connect to the primary server"),
    (errors.InsufficientPrivilege, "this user may not write it; grant it the right to create and write tables"),
    (errors.InvalidSchemaName, "it has no schema in which this user may create tables; grant it that right"),
    (errors.DiskFull, "the server's disk is full; free some space and ask again"),
    (psycopg.OperationalError, "the server cannot be reached or has ended the connection; check it and ask again"),
]


class _Statements:
    """The statements of a transaction, on the one connection."""

    def __init__(self, connection: psycopg.Connection, lock: bool) -> None:
        self._connection, self._lock = connection, lock
        self._begun = False
        self._last: tuple[str, Sequence[object]] | None = None

    @property
    def _begin(self) -> str:
        """Return how to begin: a reader needs one view of head and records; a writer the newest, once it has a lock."""
        mode = "READ COMMITTED" if self._lock else "REPEATABLE READ, READ ONLY"
        return f"BEGIN ISOLATION LEVEL {mode}"

    def _execute(self, query: LiteralString, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        if not self._begun:
            self._connection.execute(self._begin.encode())
            self._begun = True
        return self._connection.execute(query, values)

    def commit(self) -> None:
        """Commit together with what is appended, in one round trip."""
        if self._last is not None:
            statement, values = self._last
            psycopg.ClientCursor(self._connection).execute(f"{statement}; COMMIT".encode(), values)
        elif self._begun:
            self._connection.execute("COMMIT")

    def chains(self) -> Sequence[Chain]:
        rows = self._execute("SELECT id, seed, length, head FROM afresh_guards ORDER BY id")
        return [Chain(*row) for row in rows]

    def chain(self, id: int) -> Chain | None:
        return self.follow(id, _LARGEST)[0]

    def follow(self, id: int, length: int) -> tuple[Chain | None, Sequence[tuple[str, str]]]:
        """Follow the chain and begin the transaction in one round trip."""
        statements = [] if self._begun else [self._begin]
        statements += [
            self._found(id),
            f"SELECT record, hash FROM afresh_records WHERE guard = {id:d} AND place > {length:d} ORDER BY place",
        ]
        self._begun = True
        cursor = self._connection.execute("; ".join(statements).encode(), prepare=False)
        for _ in statements[2:]:
            cursor.nextset()
        row = cursor.fetchone()
        cursor.nextset()
        return None if row is None else Chain(*row), cursor.fetchall()

    def _found(self, id: int) -> str:
        # FOR UPDATE waits for any process writing to this guard, and then sees what was written.
        lock = " FOR UPDATE" if self._lock else ""
        return f"SELECT id, seed, length, head FROM afresh_guards WHERE id = {id:d}{lock}"

    def first(self, chain: Chain) -> Sealed | None:
        row = self._execute(
            "SELECT record, hash FROM afresh_records WHERE guard = %s AND place = 1", (chain.id,)
        ).fetchone()
        return None if row is None else Sealed(*row)

    def alone(self) -> None:
        # Read committed: what others wrote before they released the lock is visible from here on.
        self._execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))

    def check(self) -> None:
        row = self._execute(
            "SELECT EXISTS (SELECT FROM afresh_guards g WHERE NOT EXISTS (SELECT FROM afresh_records r WHERE "
            "r.guard = g.id AND r.place = g.length)) OR EXISTS (SELECT FROM afresh_records r WHERE NOT EXISTS "
            "(SELECT FROM afresh_guards g WHERE g.id = r.guard AND r.place BETWEEN 1 AND g.length))"
        ).fetchone()
        if row is None or row[0]:
            raise LedgerError(
                "the ledger is damaged: its guards and its records do not agree, so it is unknown whether your rows "
                "have a guard; restore it from a copy. A new ledger would forget what was spent"
            )

    def key(self) -> str:
        row = self._execute("SELECT secret FROM afresh_key").fetchone()
        if row is None:
            raise BrokenChain("the ledger is damaged: its key is missing; restore it from a copy")
        return str(row[0])

    def sketches(self) -> dict[int, str]:
        return dict(self._execute("SELECT guard, sketch FROM afresh_sketches").fetchall())

    def create(self, seed: str, sketch: str) -> Chain:
        row = self._execute(
            "WITH made AS (INSERT INTO afresh_guards (seed, length, head) VALUES (%s, 0, '') RETURNING id) "
            "INSERT INTO afresh_sketches SELECT id, %s FROM made RETURNING guard",
            (seed, sketch),
        ).fetchone()
        assert row is not None
        return Chain(row[0], seed, 0, "")

    def since(self, chain: Chain, length: int) -> Sequence[tuple[str, str]]:
        rows = self._execute(
            "SELECT record, hash FROM afresh_records WHERE guard = %s AND place > %s ORDER BY place",
            (chain.id, length),
        )
        return rows.fetchall()

    def checkpoint(self, chain: Chain) -> Checkpoint | None:
        row = self._execute(
            "SELECT length, head, hash FROM afresh_checkpoints WHERE guard = %s", (chain.id,)
        ).fetchone()
        return None if row is None else Checkpoint(*row)

    def note(self, chain: Chain, checkpoint: Checkpoint) -> None:
        self._execute(
            "INSERT INTO afresh_checkpoints VALUES (%s, %s, %s, %s) ON CONFLICT (guard) DO UPDATE SET "
            "length = excluded.length, head = excluded.head, hash = excluded.hash",
            (chain.id, *checkpoint),
        )

    def append(self, chain: Chain, records: Sequence[Sealed]) -> None:
        rows = [(chain.id, place, *sealed) for place, sealed in enumerate(records, chain.length + 1)]
        values = ", ".join(["(%s, %s, %s, %s)"] * len(rows))
        self._last = (
            f"INSERT INTO afresh_records (guard, place, record, hash) VALUES {values}; "
            "UPDATE afresh_guards SET length = %s, head = %s WHERE id = %s",
            [*itertools.chain.from_iterable(rows), chain.length + len(records), records[-1].hash, chain.id],
        )


class _Analyst(_Statements):
    """The statements of a role that may append only through the functions of `analysts.sql`."""

    def _found(self, id: int) -> str:
        return f"SELECT id, seed, length, head FROM afresh_lock({id:d})" if self._lock else super()._found(id)

    def note(self, chain: Chain, checkpoint: Checkpoint) -> None:
        """Do nothing: only the owner may say what was verified."""

    def append(self, chain: Chain, records: Sequence[Sealed]) -> None:
        texts, hashes = [record.text for record in records], [record.hash for record in records]
        self._last = (
            "SELECT afresh_append(%s::bigint, %s::bigint, %s::text[], %s::text[])",
            (chain.id, chain.length, texts, hashes),
        )


class PostgresJournal(ConnectedJournal[psycopg.Connection]):
    """A `Journal` in the tables `afresh_*` of a PostgreSQL database, which are created if they do not exist.

    There is one connection per process, behind one lock. A writer locks the row of its guard, so guards do not wait for
    each other. If the server goes away during a commit, nobody can know whether it succeeded: the error says that
    nothing was released, and asking again finds what was stored.
    """

    failures = (psycopg.Error,)

    def __init__(self, address: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        """Connect to `postgresql://user:password@host/database`; wait up to `busy_seconds` for other writers."""
        self._address = address
        self._limited = False
        super().__init__(_name(address), busy_seconds)

    def begin(self, connection: psycopg.Connection, *, write: bool) -> Transaction:
        """Begin lazily, with the first statement: a question's two transactions then take two round trips each."""
        return (_Analyst if self._limited else _Statements)(connection, lock=write)

    def commit(self, connection: psycopg.Connection, transaction: Transaction) -> None:
        """See `_Statements.commit`."""
        assert isinstance(transaction, _Statements)
        transaction.commit()

    def connect(self) -> psycopg.Connection:
        """Log in, and create the tables if they do not exist."""
        connection = self._log_in()
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def remedy(self, error: Exception) -> str:
        """Say what to do, by the kind of error."""
        if isinstance(error, psycopg.Error) and error.sqlstate == _REFUSED:
            return f"{error.diag.message_primary}"  # a message of `analysts.sql`, which quotes nothing
        remedy = next((words for kind, words in _REMEDIES if isinstance(error, kind)), "the server refused a statement")
        return remedy.format(seconds=self.busy_seconds)

    def _log_in(self) -> psycopg.Connection:
        try:
            return psycopg.connect(
                self._address,
                autocommit=True,
                connect_timeout=15,
                application_name="afresh",
                client_encoding="utf8",  # whatever the server's; without it some would return bytes for text
            )
        except psycopg.OperationalError as error:
            # What libpq says about connecting, for example that there is no such database, names no password.
            said = ([line for line in str(error).splitlines() if line[:1].strip()] or ["the reason is unknown"])[-1]
        raise LedgerError(
            f"the ledger {self.name} cannot be reached: {said}; check the address and the server. Nothing was released."
        )

    def _prepare(self, connection: psycopg.Connection) -> None:
        milliseconds = round(self.busy_seconds * 1000)
        for setting in (
            "synchronous_commit = on",  # whatever the server's default: a commit that can be lost is no commit
            f"lock_timeout = {milliseconds}",
            f"idle_in_transaction_session_timeout = {max(milliseconds, 1000)}",  # a frozen process must let go
        ):
            connection.execute(f"SET {setting}")
        if self._layout(connection) != LAYOUT:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
                found = self._layout(connection)
                if found is None:
                    connection.execute(_TABLES)
                for version in range(found or LAYOUT, LAYOUT):  # the chains stay as they are
                    connection.execute(_ADDED[version + 1])
                if found != LAYOUT:  # no other process was faster
                    connection.execute("INSERT INTO afresh_key VALUES (%s)", (secrets.token_hex(32),))
                    connection.execute("UPDATE afresh_layout SET version = %s", (LAYOUT,))
        row = connection.execute(
            "SELECT NOT has_table_privilege('afresh_records', 'INSERT') AND coalesce(has_function_privilege("
            "to_regprocedure('afresh_append(bigint, bigint, text[], text[])'), 'EXECUTE'), false)"
        ).fetchone()
        self._limited = row is not None and bool(row[0])

    def _layout(self, connection: psycopg.Connection) -> int | None:
        # Not to_regclass, which may still remember that there was no table after another process has made it.
        known = "SELECT 1 FROM pg_class WHERE relname = 'afresh_layout' AND pg_table_is_visible(oid)"
        if connection.execute(known).fetchone() is None:
            return None
        row = connection.execute("SELECT version FROM afresh_layout").fetchone()
        found = int(row[0]) if row else 0
        if not 1 <= found <= LAYOUT:
            raise LedgerError(
                f"the ledger {self.name} has layout {found}, but this afresh knows layout {LAYOUT}; "
                "use the afresh that wrote it"
            )
        return found


def _name(address: str) -> str:
    """The address without its password."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        parts = None
    if parts is None:  # a message of our own, because libpq's may quote a password
        raise InvalidArgument("the ledger's address is not of the form postgresql://user:password@host/database")
    who = f"{parts['user']}@" if parts.get("user") else ""
    return f"postgresql://{who}{parts.get('host') or ''}/{parts.get('dbname') or ''}"
