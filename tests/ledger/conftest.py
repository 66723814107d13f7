"""A real PostgreSQL server for the tests, and an empty schema in it for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ledger.servers import Server, running


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Started when the first test needs it, once in each process of the run."""
    with running() as server:
        yield server


@pytest.fixture
def address(server: Server) -> str:
    """Of an empty schema."""
    return server.empty()
