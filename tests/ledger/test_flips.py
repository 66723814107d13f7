"""Flipped bits and lost ends, a sample; at length: `python -m ledger.flips`."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from afresh.errors import LedgerError
from afresh.ledger import open_ledger
from afresh.ledger.known import plain
from ledger.asking import opened
from ledger.flips import Damage, Trials, random_damage, trials


@pytest.fixture(scope="module")
def harness() -> Iterator[Trials]:
    with trials() as harness:
        yield harness


def outcomes(harness: Trials, damages: list[Damage]) -> Counter[str]:
    return Counter(harness.run(damage) for damage in damages)


def test_without_damage_everything_is_as_it_was(harness: Trials) -> None:
    assert harness.run(Damage(len(harness.content))) == "harmless"


def test_random_damage_is_refused_or_harmless(harness: Trials) -> None:
    chance = random.Random(7)
    found = outcomes(harness, [random_damage(chance, len(harness.content)) for _ in range(80)])
    assert found.keys() == {"refused", "harmless"}


def test_every_byte_of_the_header_and_of_the_guards(harness: Trials) -> None:
    """One bit of each byte that is in use in the page that says which guards there are."""
    guards = harness.content[4096:8192]
    assert b"afresh" not in guards  # not the page of the schema
    used = [4096 + i for i, byte in enumerate(guards) if byte or i < 14]
    found = outcomes(harness, [Damage(byte, byte % 8) for byte in (*range(100), *used)])
    assert found.keys() == {"refused", "harmless"}
    assert found["refused"] > len(used) / 2


@pytest.mark.parametrize("size", [0, 1, 99, 100, 512, 4095, 4096, 4097, 8192, -4096, -1])
def test_every_kind_of_lost_end_is_refused(harness: Trials, size: int) -> None:
    assert harness.run(Damage(size % len(harness.content))) == "refused"


def test_a_hidden_guard_is_not_taken_for_rows_never_seen(tmp_path: Path) -> None:
    """While the ledger is open, so that nothing but the search itself can notice."""
    path = tmp_path / "ledger.sqlite"
    with closing(open_ledger(path)) as ledger:
        opened(ledger)
        opened(ledger, plain("second", 100))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("DROP TRIGGER afresh_guards_stay")
            other.execute("DELETE FROM afresh_guards WHERE id = 2")
        for use in (ledger.find, lambda data: opened(ledger, data)):
            with pytest.raises(LedgerError, match="damaged, so it is unknown"):
                use(plain("second", 100))
