"""Where the ledger is, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import afresh
from afresh.errors import InvalidArgument, MissingExtra
from afresh.ledger import default_place, open_ledger


def test_environment_names_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AFRESH_LEDGER", str(tmp_path / "mine.sqlite"))
    assert default_place() == str(tmp_path / "mine.sqlite")
    open_ledger(None).close()
    assert (tmp_path / "mine.sqlite").exists()


@pytest.mark.parametrize("unset", [None, ""])
def test_user_state_directory_otherwise(monkeypatch: pytest.MonkeyPatch, unset: str | None) -> None:
    if unset is None:
        monkeypatch.delenv("AFRESH_LEDGER", raising=False)
    else:
        monkeypatch.setenv("AFRESH_LEDGER", unset)
    place = Path(default_place())
    assert (place.parent.name, place.name) == ("afresh", "ledger.sqlite")
    assert place.is_absolute()


def test_ledger_is_returned_as_it_is(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "ledger.sqlite")
    assert open_ledger(ledger) is ledger
    ledger.close()


def test_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    open_ledger(":memory:").close()
    assert list(tmp_path.iterdir()) == []


def test_home_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_ledger("~/mine.sqlite").close()
    assert (tmp_path / "mine.sqlite").exists()


@pytest.mark.parametrize("place", ["mysql://user:secret@host/db", "https://secret.example"])
def test_other_servers_are_refused_without_quoting_a_password(place: str) -> None:
    with pytest.raises(InvalidArgument, match="postgresql://") as refusal:
        open_ledger(place)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("place", [7, 1.5, object()])
def test_what_is_no_place_is_refused(place: Any) -> None:
    with pytest.raises(InvalidArgument, match="must be a path"):
        open_ledger(place)


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "afresh.ledger.postgres", raising=False)
    with pytest.raises(MissingExtra, match=r"afresh\[postgres\]"):
        open_ledger("postgresql://host/db")


def test_import_stays_fast() -> None:
    late = ["platformdirs", "sqlite3", "psycopg", "pytest", "hypothesis"]
    code = f"import afresh.ledger, sys; print(*{set(late)} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_nothing_imports_the_conformance_suite() -> None:
    root = Path(afresh.__file__).parent
    suite = root / "ledger" / "conformance"
    using = [file for file in root.rglob("*.py") if "conformance" in file.read_text() and suite not in file.parents]
    assert using == []
