"""One ledger has one budget for a population's rows, however their table is edited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import afresh
from afresh.errors import InvalidArgument, SameRows

N = 4000


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, N),
            "score": rng.normal(size=N),
            "city": rng.choice(["Bern", "Basel", "Chur"], N),
            "sick": rng.random(N) < 0.3,
        }
    )


def one_cell(frame: pd.DataFrame) -> pd.DataFrame:
    edited = frame.copy()
    score = frame["score"].to_numpy(copy=True)
    score[7] += 1e-9
    return edited.assign(score=score)


EDITS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "renamed": lambda frame: frame.rename(columns={"score": "points"}),
    "another case": lambda frame: frame.rename(columns={"score": "SCORE"}),
    "added": lambda frame: frame.assign(more=1.0),
    "dropped": lambda frame: frame.drop(columns="city"),
    "single precision": lambda frame: frame.astype({"score": "float32"}),
    "booleans as numbers": lambda frame: frame.astype({"sick": int}),
    "one cell": one_cell,
    "shuffled": lambda frame: frame.sample(frac=1, random_state=1),
    "whole numbers as floats": lambda frame: frame.astype({"age": float}),
    "polars": lambda frame: pl.DataFrame(frame.to_dict("list")),
    "only labels and one more column": lambda frame: frame[["sick"]].assign(x=np.arange(N) % 17),
}


def known_again(data: Any) -> bool:
    """Whether data are refused, or go on with the budget that is there."""
    try:
        with afresh.open(data, must_exist=True) as guard:
            return guard.budget.spent == 1
    except afresh.errors.DataError:
        pass
    with pytest.raises(SameRows, match=r"with one of 4,000 rows that was opened by .* new_rows="):
        afresh.open(data, questions=9)
    return True


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_table_has_no_budget_of_its_own(frame: pd.DataFrame, edit: str) -> None:
    with afresh.open(frame, questions=9) as guard:
        guard.ask("sick")
    assert known_again(EDITS[edit](frame))
    with afresh.open(frame) as guard:
        assert guard.budget.spent == 1


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_shuffled_file_is_the_same(frame: pd.DataFrame, tmp_path: Path, suffix: str) -> None:
    with afresh.open(frame, questions=9) as guard:
        guard.ask("sick")
    path = tmp_path / f"shuffled.{suffix}"
    shuffled = frame.sample(frac=1, random_state=1)
    if suffix == "parquet":
        shuffled.to_parquet(path)  # with `__index_level_0__`
    else:
        shuffled.to_csv(path, index=False)
    assert known_again(path)


def test_other_features_for_the_same_labels_are_refused(frame: pd.DataFrame) -> None:
    rng = np.random.default_rng(4)
    with afresh.holdout(rng.normal(size=(N, 3)), frame["sick"], questions=9) as holdout:
        holdout.score(np.zeros(N))
    with pytest.raises(SameRows, match="'label'"):
        afresh.holdout(rng.normal(size=(N, 3)), frame["sick"], questions=9)


def test_new_rows_are_taken_at_their_word_and_the_word_is_kept(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=9) as guard:
        guard.ask("sick")
    words = "a second cohort, recoded to the first one's ages"
    with afresh.open(one_cell(frame), questions=9, new_rows=words) as guard:
        assert guard.budget.spent == 0
        guard.ask("sick")
        receipt = guard.receipt()
    assert receipt["data"]["new_rows"] == words
    from afresh.receipts.page import as_html, as_markdown

    assert words.split(",")[0] in as_html(receipt)
    assert words.split(",")[0] in as_markdown(receipt)
    for empty in ("", "  ", 7):
        with pytest.raises(InvalidArgument, match="new_rows"):
            afresh.open(frame.drop(columns="city"), new_rows=empty)  # type: ignore[arg-type]


def test_other_samples_of_one_population_are_welcome(frame: pd.DataFrame) -> None:
    """Shared row numbers are no sign. By chance two samples agree in a distinctive column with probability < 1e-20."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        other = pd.DataFrame(
            {
                "id": np.arange(N),
                "age": rng.integers(18, 90, N),
                "score": rng.normal(size=N),
                "sick": rng.random(N) < 0.3,
            }
        )
        with afresh.open(other, questions=9) as guard:
            assert guard.ask("sick").charged == 1


def test_a_published_name_does_not_tell_the_rows(frame: pd.DataFrame, tmp_path: Path) -> None:
    """The same rows have another name in every ledger, so nobody can test a guess about them."""
    names = []
    for place in ("one.sqlite", "two.sqlite"):
        with afresh.open(frame, questions=9, ledger=tmp_path / place) as guard:
            names.append(guard.receipt()["data"]["name"])
            text = str(guard.receipt())
            identity = guard.desk.engine.identity()
            digests = [identity.fingerprint, *(each.unordered for each in identity.columns if each.unordered)]
            assert not any(digest.rpartition(":")[2] in text for digest in digests)
    assert names[0] != names[1]
