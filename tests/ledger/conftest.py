"""The backends every conformance test runs on; a new backend adds itself here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from afresh.ledger import Ledger
from afresh.ledger.sqlite import SqliteLedger

Connect = Callable[[], Ledger]


@pytest.fixture(params=["sqlite file", "sqlite memory"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    """A function that connects to one storage; what it connects to anew must be the same ledger."""
    made: list[Ledger] = []
    memory = request.param == "sqlite memory"

    def connect() -> Ledger:
        if not (memory and made):
            made.append(SqliteLedger(":memory:" if memory else tmp_path / "ledger.sqlite"))
        return made[-1]

    yield connect
    for ledger in made:
        ledger.close()


@pytest.fixture
def ledger(connect: Connect) -> Ledger:
    """One connection to the storage."""
    return connect()
