import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import afresh
from afresh.demo import CUSTOMERS_SEED, LEDGER, _coins, _customers, _own, run
from afresh.errors import DataError, PlanMismatch


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]], list[str]]:
    """The demo, run twice in one folder: what it returned and what it said."""
    folder = tmp_path_factory.mktemp("runs")
    stories, texts = [], []
    for _ in range(2):
        talk = io.StringIO()
        stories.append(run(folder / "demo", talk))
        texts.append(talk.getvalue())
    return folder / "demo", stories, texts


def test_the_story(runs: tuple[Path, list[dict[str, Any]], list[str]]) -> None:
    folder, (story, _), (text, _) = runs
    # The data are made from fixed seeds; the guard's noise is fresh, and misses with probability below 1e-6:
    # half of 994 + 6 intervals of half-width 0.175 around 0.5, noise and sample 0.028 together.
    assert 0.58 < story["naive"]["301"] < 0.63
    assert all(answer["low"] <= 0.5 <= answer["high"] for answer in story["guarded"].values())
    assert all(answer["low"] <= answer["truth"] <= answer["high"] for answer in story["real"])
    assert (folder / "afresh.png").read_bytes().startswith(b"\x89PNG")
    assert "MISSES the truth" in text
    assert "charged 0" in text
    assert "QueryError: avg()" in text
    # The intervals are 0.072 apart, with a standard deviation of 0.0067: they meet with probability below 1e-20.
    assert "A real effect" in text


def test_a_second_run_gets_the_recorded_answers_and_no_new_budget(
    runs: tuple[Path, list[dict[str, Any]], list[str]],
) -> None:
    _, stories, texts = runs
    for text in texts:
        assert "BudgetExhausted" in text
        assert "93 of 100 answers left" in text
    assert ["You ran this before" in text for text in texts] == [False, True]
    first, second = ([*story["guarded"].values(), *story["real"]] for story in stories)
    for before, now in zip(first, second, strict=True):
        assert (now["value"], now["low"], now["high"]) == (before["value"], before["low"], before["high"])
        assert (before["charged"] > 0, now["charged"]) == (True, 0)


def test_it_says_what_to_type_next(runs: tuple[Path, list[dict[str, Any]], list[str]]) -> None:
    folder, _, (text, _) = runs
    assert "afresh ask yours.parquet" in text
    assert f"export AFRESH_LEDGER={folder / LEDGER}" in text


@pytest.mark.parametrize("content", [b"", b"something else", None], ids=["empty", "not Parquet", "other rows"])
def test_a_file_that_is_not_its_own_is_left_alone(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "holdout.parquet"
    if content is None:
        _own(path, _customers(100, np.random.default_rng(1)))
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(DataError, match="--out FOLDER"):
        run(tmp_path, io.StringIO())
    assert path.read_bytes() == before


def test_an_edited_cell_is_not_its_own(tmp_path: Path) -> None:
    made = _customers(1000, np.random.default_rng(CUSTOMERS_SEED))
    path = _own(tmp_path / "customers.parquet", made)
    assert _own(path, made) == path
    made["tenure"][17] += 1
    with pytest.raises(DataError, match="is not the file this demo makes"):
        _own(path, made)


def test_a_ledger_that_is_not_its_own_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.demo.ROWS", 1000)
    monkeypatch.setattr("afresh.demo.FEATURES", 10)  # a small one: only the refusal matters
    features, label = _coins(np.random.default_rng(2018))
    made = {"label": label, **{f"f{j}": features[:, j] for j in range(10)}}
    path = _own(tmp_path / "holdout.parquet", made)
    with afresh.open(path, questions=50, ledger=tmp_path / LEDGER) as guard:
        guard.ask("f0 = label")
    with pytest.raises(PlanMismatch) as caught:
        run(tmp_path, io.StringIO())
    assert "afresh demo --out FOLDER" in caught.value.__notes__[0]
