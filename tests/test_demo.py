import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import afresh
from afresh.demo import run
from afresh.demo.files import LEDGER, flights_file, own
from afresh.demo.lead import coins_file
from afresh.errors import DataError, PlanMismatch

Runs = tuple[Path, list[dict[str, Any]], list[str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The demo, run twice in one folder: what it returned and what it said."""
    folder = tmp_path_factory.mktemp("runs")
    stories, texts = [], []
    for _ in range(2):
        talk = io.StringIO()
        stories.append(run(folder / "demo", talk))
        texts.append(talk.getvalue())
    return folder / "demo", stories, texts


def test_the_story(runs: Runs) -> None:
    folder, (story, _), (text, _) = runs
    # The data come from fixed seeds; deals and noise are fresh. What is asserted fails with probability below 1e-6.
    assert 0.58 < story["naive"]["301"] < 0.63
    # 5,000 fresh rows, standard deviation .0071: .5 is outside of [value - .029, value + .029] with 5e-5 a vote, so
    # only the votes' values are asserted, to five standard deviations.
    assert all(abs(answer["value"] - 0.5) < 0.036 for answer in story["guarded"].values())
    assert all(abs(each["value"] - each["truth"]) < 0.2 for each in story["found"])
    # The intervals are .095 apart, with a standard deviation of .012 of their ends: they meet with probability 1e-14.
    assert "Found: flights after noon leave late more often" in text
    # .032 with a standard deviation of .0014 on the rows that guess, and half of an interval is .016.
    assert story["compared"]["better"] == "B"
    naive, guarded = story["loop"]["naive"], story["loop"]["guarded"]
    assert naive["claims"][-1] - naive["usual"] > naive["truths"][-1] + 0.02
    assert 0 < guarded["low"] < guarded["high"] < naive["claims"][-1] + 0.05
    for picture in ("wrong.png", "found.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")
    for words in ("MISSES the truth", "charged 0", "QueryError: avg()", "BudgetExhausted", "milestones pass"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 110 + len(str(folder))


def test_a_second_run_gets_the_recorded_answers_and_no_new_budget(runs: Runs) -> None:
    folder, stories, texts = runs
    assert ["You ran this before" in text for text in texts] == [False, True]
    first, second = ([*story["guarded"].values(), *story["found"]] for story in stories)
    for before, now in zip(first, second, strict=True):
        assert (now["value"], now["low"], now["high"]) == (before["value"], before["low"], before["high"])
        assert (before["charged"] > 0, now["charged"]) == (True, 0)
    assert stories[0]["loop"] == stories[1]["loop"]
    with afresh.open(folder / "flights.parquet", ledger=folder / LEDGER) as guard:
        assert guard.budget.spent == 6


def test_it_says_what_to_type_next(runs: Runs) -> None:
    folder, _, (text, _) = runs
    assert "afresh ask yours.parquet" in text
    assert f"export AFRESH_LEDGER={folder / LEDGER}" in text


@pytest.mark.parametrize("content", [b"", b"something else", None], ids=["empty", "not Parquet", "other rows"])
def test_a_file_that_is_not_its_own_is_left_alone(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "flights.parquet"
    if content is None:
        afresh.datasets.flights(1000).write_parquet(path)
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(DataError, match="--out FOLDER"):
        run(tmp_path, io.StringIO())
    assert path.read_bytes() == before


def test_an_edited_cell_is_not_its_own(tmp_path: Path) -> None:
    path = flights_file(tmp_path)
    assert flights_file(tmp_path) == path
    made = pl.DataFrame({"a": [1, 2, 3]})
    assert own(tmp_path / "a.parquet", made) == own(tmp_path / "a.parquet", made)
    with pytest.raises(DataError, match="is not the file this demo makes"):
        own(tmp_path / "a.parquet", pl.DataFrame({"a": [1, 2, 4]}))


def test_a_ledger_that_is_not_its_own_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.demo.lead.COINS", 10)  # a small one: only the refusal matters
    path, _, _ = coins_file(tmp_path)
    with afresh.open(path, questions=50, ledger=tmp_path / LEDGER) as guard:
        guard.ask("coin0 = late")
    with pytest.raises(PlanMismatch) as caught:
        run(tmp_path, io.StringIO())
    assert "afresh demo --out FOLDER" in caught.value.__notes__[0]
