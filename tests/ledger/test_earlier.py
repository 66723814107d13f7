"""A ledger that version 1 of the format was written to, by the commit that froze it (56e45dcd), with its receipt."""

import shutil
from pathlib import Path

import pytest

from cli.program import afresh

SAMPLES = Path(__file__).with_name("samples")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return Path(shutil.copy(SAMPLES / "layout1.sqlite", tmp_path / "ledger.sqlite"))


def test_its_receipt_verifies_against_it(ledger: Path) -> None:
    for _ in range(2):  # the first opening adds a table
        ran = afresh("verify", SAMPLES / "layout1.json", "--ledger", ledger)
        assert ran.returncode == 0, ran.stderr
        assert "The receipt verifies: 4 answers" in ran.stdout


def test_its_datasets_are_listed(ledger: Path) -> None:
    ran = afresh("list", "--ledger", ledger)
    assert ran.returncode == 0, ran.stderr
    assert "3,000 rows" in ran.stdout
    assert "4 spent, 46 left" in ran.stdout
