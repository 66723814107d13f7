"""One ledger has one budget for a population's rows, however their table is edited."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import afresh
from afresh.errors import InvalidArgument, SameRows
from engines.resampled import ATTACKS, KNOWN, REFUSED, check_attacks, drawn

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


def _as_csv(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_csv(folder / f"{len(list(folder.iterdir()))}.csv", index=False)
    return max(folder.glob("*.csv"), key=lambda path: int(path.stem))


def _as_parquet(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_parquet(folder / f"{len(list(folder.iterdir()))}.parquet")
    return max(folder.glob("*.parquet"), key=lambda path: int(path.stem))


STORED: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda frame, folder: frame,
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "csv": _as_csv,
    "parquet": _as_parquet,
}


@pytest.mark.parametrize("stored", STORED)
def test_rows_dropped_added_or_repeated_have_no_budget_of_their_own(tmp_path: Path, stored: str) -> None:
    """In Postgres and Spark: tests/engines."""
    folder = tmp_path / "tables"
    folder.mkdir()
    check_attacks(lambda frame: {"data": STORED[stored](frame, folder)}, tmp_path / "ledger.sqlite")


@pytest.mark.parametrize("attack", ATTACKS)
def test_whichever_is_opened_first(attack: str) -> None:
    with afresh.open(ATTACKS[attack](), questions=9, allow_wide=True):
        pass
    with pytest.raises(SameRows, match="most of its different rows"):
        afresh.open(KNOWN, questions=9)


@pytest.mark.parametrize(("shared", "refused"), [(0.0, False), (0.2, False), (2 / 3, True), (0.9, True)])
def test_most_is_more_than_half(shared: float, refused: bool) -> None:
    """Of 256 parts about 28 agree and 114 favour either table at a fifth, 128 and 64 at two thirds: below 1e-7."""
    with afresh.open(KNOWN, questions=9):
        pass
    kept = round(len(KNOWN) * shared)
    other = pd.concat([KNOWN.head(kept), drawn(6, len(KNOWN) - kept)], ignore_index=True)
    if refused:
        with pytest.raises(SameRows, match=REFUSED):
            afresh.open(other, questions=9)
    else:
        afresh.open(other, questions=9).close()


def test_few_different_rows_are_known_again_by_their_names_only() -> None:
    """A new sample of two booleans cannot be told from an edited one: who opens it says which it is."""
    rng = np.random.default_rng(8)
    one, other = (pd.DataFrame(rng.random((N, 2)) < 0.4, columns=["treated", "sold"]) for _ in range(2))
    with afresh.open(one, questions=9):
        pass
    for same in (other, one.drop(index=3), pd.concat([one, one])):
        with pytest.raises(SameRows, match=r"most of its different rows .*a new sample.*new_rows="):
            afresh.open(same, questions=9)
    with afresh.open(other, questions=9, new_rows="of another week") as guard:
        assert guard.budget.spent == 0
    with afresh.open(other.rename(columns={"sold": "smokes"}).drop(index=3), questions=9) as guard:
        assert guard.budget.spent == 0


def test_labelled_rows_and_items_too() -> None:
    rng = np.random.default_rng(9)
    features, labels = rng.normal(size=(N, 3)), rng.random(N) < 0.5
    with afresh.holdout(features, labels, questions=9):
        pass
    with pytest.raises(SameRows, match="most of its different rows"):
        afresh.holdout(features[1:], labels[1:], questions=9)
    afresh.holdout(rng.normal(size=(N, 3)), rng.random(N) < 0.5, questions=9).close()
    items = [{"id": f"item-{i}", "prompt": f"say {rng.random()}"} for i in range(N)]
    with afresh.evaluation(items, questions=9):
        pass
    with pytest.raises(SameRows, match="most of its different rows"):
        afresh.evaluation(items[1:], questions=9)
    others = [item | {"prompt": "sing"} for item in items[1:]]
    afresh.evaluation(others, questions=9).close()


def test_a_sketch_is_shown_nowhere(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with afresh.open(KNOWN, questions=9, ledger=ledger) as guard:
        guard.ask("sick")
        identity = guard.desk.engine.identity(guard.desk.ledger.key)
        shown = json.dumps(guard.receipt()) + repr(guard) + str(guard.transcript) + repr(guard.desk.terms)
        secrets = [identity.sketch, identity.sketch[:16], guard.desk.ledger.key]
    assert len(identity.sketch) == 512
    assert not any(secret in shown for secret in secrets)
    with pytest.raises(SameRows) as refusal:
        afresh.open(KNOWN.drop(index=7), questions=9, ledger=ledger)
    assert not any(secret in str(refusal.value) for secret in secrets)
