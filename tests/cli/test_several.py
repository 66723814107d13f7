"""Several questions in one call: one round, all charged or none."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from cli.program import afresh


@pytest.fixture
def asked(tmp_path: Path) -> tuple[object, ...]:
    data = tmp_path / "rows.parquet"
    pl.DataFrame({"x": range(4000), "even": [i % 2 == 0 for i in range(4000)]}).write_parquet(data)
    return ("ask", data, "--ledger", tmp_path / "ledger.sqlite", "--rounds", 2)


def test_they_are_one_round(asked: tuple[object, ...], tmp_path: Path) -> None:
    file = tmp_path / "questions.txt"
    file.write_text("# what we look at each week\nx < 1000\n\n  x >= 3000  \n")
    done = afresh(*asked, "even", "--from", file, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["answers"]
    assert [each["question"] for each in told] == ["even", "x < 1000", "x >= 3000"]
    assert "3 answers, all intervals hold at once" in afresh(*asked, "even", "x < 1000", "x >= 3000").stdout  # free
    assert afresh(*asked, "x < 7").returncode == 0
    refused = afresh(*asked, "x < 8")  # both rounds are used
    assert refused.returncode == 4


def test_one_mistake_costs_nothing(asked: tuple[object, ...]) -> None:
    refused = afresh(*asked, "even", "evn")
    assert refused.returncode == 3
    assert "did you mean even" in refused.stderr
    assert (
        afresh(*asked, "even", "x < 7", "x < 9", "--where", "x > 100", "--dry-run").stdout.count("where x > 100") == 3
    )
    left = json.loads(afresh("budget", *asked[1:4], "--json").stdout)
    assert left["spent"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a question"),
        (("--from", "nowhere.txt"), "cannot be read"),
        (("even", "x < 3", "--about", 0.5), "--guess and --about are for one question, but there are 2"),
    ],
)
def test_mistakes(asked: tuple[object, ...], arguments: tuple[object, ...], said: str) -> None:
    refused = afresh(*asked, *arguments)
    assert refused.returncode == 2
    assert said in refused.stderr


def test_an_empty_file(asked: tuple[object, ...], tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n\n")
    assert "has no question" in afresh(*asked, "--from", tmp_path / "empty.txt").stderr
