"""Where the ledger is, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from afresh.errors import InvalidArgument
from afresh.ledger import default_path, open_ledger


def test_environment_names_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AFRESH_LEDGER", str(tmp_path / "mine.sqlite"))
    assert default_path() == tmp_path / "mine.sqlite"
    open_ledger(None).close()
    assert (tmp_path / "mine.sqlite").exists()


@pytest.mark.parametrize("unset", [None, ""])
def test_user_state_directory_otherwise(monkeypatch: pytest.MonkeyPatch, unset: str | None) -> None:
    if unset is None:
        monkeypatch.delenv("AFRESH_LEDGER", raising=False)
    else:
        monkeypatch.setenv("AFRESH_LEDGER", unset)
    assert default_path().name == "ledger.sqlite"
    assert default_path().parent.name == "afresh"
    assert default_path().is_absolute()


def test_ledger_is_returned_as_it_is(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "ledger.sqlite")
    assert open_ledger(ledger) is ledger
    ledger.close()


def test_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    open_ledger(":memory:").close()
    assert list(tmp_path.iterdir()) == []


def test_url_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="not a URL"):
        open_ledger("postgresql://host/db")


def test_import_stays_fast() -> None:
    code = "import afresh.ledger, sys; print(*{'sqlalchemy', 'platformdirs', 'sqlite3'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
