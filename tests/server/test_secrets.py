"""No file that holds a secret can be read by others, whatever the umask says."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import afresh
from cli.forked import shared
from cli.program import afresh as run
from judging.made import PERFECT, candidate, make
from server.running import running, write_data


@pytest.fixture
def open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path, given: set[Path]) -> dict[str, str]:
    """What others can read, besides what was given: files, and folders that have files in them."""
    files = {path for path in folder.rglob("*") if path.is_file()} - given
    assert len(files) > 3
    kept = files | {path.parent for path in files} - {folder}
    return {
        str(path.relative_to(folder)): stat.filemode(path.stat().st_mode)
        for path in kept
        if path.stat().st_mode & 0o077
    }


def test_what_a_service_and_its_steward_keep(tmp_path: Path, open_to_all: None) -> None:
    write_data(tmp_path)
    top, _, evaluator = make(tmp_path).read_text().partition("[evaluator]")
    more = f"[evaluations.qa]{top}[evaluations.qa.evaluator]{evaluator}[boards.spring]\nholdout = 'churn'\n"
    (tmp_path / "afresh.toml").touch()
    (tmp_path / "log").touch()
    sent = candidate(tmp_path, PERFECT)
    given = {*tmp_path.rglob("*")}
    with running(tmp_path, more=more) as service:
        assert service.post("/v1/datasets/customers/ask", {"expression": "churned"}).status_code == 200
        assert service.post("/v1/boards/spring/submit", {"predictions": {"a": [1] * 4000}}).status_code == 200
        proposed = run("evaluate", f"{service.url}/qa", sent, AFRESH_TOKEN=service.token())
        assert proposed.returncode in (0, 10), proposed.stderr
        assert run("token", "new", "ann", "--out", "ann.token", folder=tmp_path).returncode == 0
        assert run("backup", "copies", folder=tmp_path).returncode == 0
        assert (tmp_path / "state" / "service.sqlite-wal").exists()
        assert modes(tmp_path, given) == {}


def test_what_is_kept_without_a_service(tmp_path: Path, open_to_all: None) -> None:
    chance = np.random.default_rng(3)
    frame = pd.DataFrame({"x": chance.normal(size=3000), "y": chance.random(3000) < 0.5})
    frame.to_parquet(tmp_path / "rows.parquet")
    given = {tmp_path / "rows.parquet"}
    for more in (["--rounds", "5"], ["--method", "checked", "--open", "0.3"]):
        ledger = f"books/{more[-1]}.sqlite"
        ran = run("ask", "rows.parquet", "y", "--ledger", ledger, "--allow-wide", *more, folder=tmp_path)
        assert ran.returncode == 0, ran.stderr
    with afresh.holdout(frame[["x"]], frame["y"], ledger=tmp_path / "own" / "book.sqlite", allow_wide=True) as holdout:
        board = afresh.board(holdout, "spring", keep=tmp_path / "kept")
        board.submit("a", frame["x"] > 0)
    assert modes(tmp_path, given) == {}


def test_a_token_goes_to_a_new_file_or_to_none(tmp_path: Path, open_to_all: None) -> None:
    write_data(tmp_path)
    (tmp_path / "afresh.toml").write_text('[datasets.customers]\ndata = "customers.parquet"\n')
    made = run("token", "new", "ann", "--out", "ann.token", folder=tmp_path)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    token = (tmp_path / "ann.token").read_text()
    assert token.startswith("afresh_")
    again = run("token", "new", "ann", "--out", "ann.token", folder=tmp_path)
    assert (again.returncode, (tmp_path / "ann.token").read_text()) == (2, token)
    assert "already exists" in again.stderr
    wrong = run("token", "new", "ann", "--role", "king", "--out", "king.token", folder=tmp_path)
    assert (wrong.returncode, (tmp_path / "king.token").exists()) == (2, False)


def test_a_token_in_a_file_that_others_can_read_is_noticed(tmp_path: Path, open_to_all: None) -> None:
    (tmp_path / "afresh.toml").write_text('[datasets.customers]\ndata = "customers.parquet"\n')
    for mode, told in ((0o644, True), (0o600, False)):
        with open(os.open(tmp_path / f"{mode:o}", os.O_WRONLY | os.O_CREAT, mode), "w") as out:
            ran = subprocess.run(
                [str(shared()), "token", "new", "ann"],
                cwd=tmp_path,
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
                check=True,
            )
        assert ("chmod 600" in ran.stderr) == told
