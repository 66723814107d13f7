"""Many processes on one guard, and processes that are killed; both can be run at length, see docs/ledger.md."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or not hasattr(signal, "SIGKILL"), reason="needs POSIX")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "new" / "ledger.sqlite")
    address: str = request.getfixturevalue("address")
    return address


def run(module: str, *arguments: object) -> Any:
    """In a process of its own, because it forks: no thread of the test runner may be around."""
    command = [sys.executable, "-W", "error", "-m", f"ledger.{module}", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_racing_processes_never_overspend_and_exactly_one_pays(place: str) -> None:
    """8 processes x 200 questions, half of them the same: 900 different ones, for 500 answers."""
    found = run("race", "--place", place)
    assert found["answers"] == 500
    assert found["refused"] == 400


@pytest.mark.parametrize("method", ["calibrated", "settled"])
def test_killed_processes_lose_nothing_and_get_nothing_for_free(place: str, method: str) -> None:
    found = run("kills", "--place", place, "--kills", 5, "--each", 1, "--method", method)
    assert found["kills at random"] == 5
    assert found["before reserve"] == found["between record and release"] == 1


def test_racing_creations_of_a_file_agree(tmp_path: Path) -> None:
    assert run("race", "--place", tmp_path, "--creations", 10, "--processes", 6) == 10
