"""Rows that were edited are met again; other rows are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.identity import Identity
from afresh.errors import SameRows
from afresh.ledger import known
from afresh.ledger.known import keyed, match
from afresh.ledger.records import Opened
from afresh.receipts import verify

RNG = np.random.default_rng(11)
N = 1000


def _made(rng: np.random.Generator) -> pd.DataFrame:
    score = rng.normal(size=N)
    return pd.DataFrame(
        {"row": np.arange(N), "score": score, "age": rng.integers(18, 80, N), "sick": score + rng.normal(size=N) > 0.5}
    )


FRAME = _made(RNG)


def _identity(data: object, key: str = "") -> Identity:
    engine = EmbeddedEngine(data)
    try:
        return engine.identity(key)
    finally:
        engine.close()


def _cell(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    return frame.assign(**{column: frame[column].to_numpy() + 1e-9 * (np.arange(N) == 7)})


KNOWN = keyed("secret", _identity(FRAME))
EDITS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "renamed": lambda f: f.rename(columns={"score": "points"}),
    "added": lambda f: f.assign(more=1),
    "dropped": lambda f: f.drop(columns="score"),
    "all but labels dropped": lambda f: f[["sick"]],
    "single precision": lambda f: f.astype({"score": "float32"}),
    "a cell changed": lambda f: _cell(f, "score"),
    "other features, the same labels": lambda f: pd.DataFrame({"x": RNG.normal(size=N), "label": f.sick}),
    "labels as 0 and 1": lambda f: pd.DataFrame({"x": RNG.normal(size=N), "label": f.sick.astype(int)}),
    "shuffled and renamed": lambda f: f.sample(frac=1, random_state=1).rename(columns={"age": "years"}),
    "shuffled, one dropped": lambda f: f.sample(frac=1, random_state=1).drop(columns="score"),
}
SAME: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "names in capitals": lambda f: f.rename(columns=str.upper),
    "booleans as 0 and 1": lambda f: f.astype({"sick": int}),
    "whole numbers as doubles": lambda f: f.astype({"age": float}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_rows_are_known(edit: str) -> None:
    found = match(KNOWN, "secret", _identity(EDITS[edit](FRAME)))
    assert found is not None
    assert not found.same
    assert found.columns


@pytest.mark.parametrize("edit", SAME)
def test_written_again_they_are_the_same(edit: str) -> None:
    found = match(KNOWN, "secret", _identity(SAME[edit](FRAME)))
    assert found is not None
    assert found.same


def test_shuffled_with_the_index_of_pandas_they_are_the_same(tmp_path: Path) -> None:
    FRAME.sample(frac=1, random_state=3).to_parquet(tmp_path / "a.parquet")
    found = match(KNOWN, "secret", _identity(tmp_path / "a.parquet"))
    assert found is not None
    assert found.same


def test_other_rows_of_one_population_are_not_known() -> None:
    """Row numbers in common, and 50 tables of one distribution: the chance of a false match is below 1e-20."""
    for _ in range(50):
        assert match(KNOWN, "secret", _identity(_made(RNG))) is None


def test_what_is_stored_tells_nothing_without_the_seed() -> None:
    identity = _identity(FRAME)
    stored = json.dumps([KNOWN.fingerprint, KNOWN.stored])
    plain = [identity.fingerprint, *(d for one in identity.columns for d in (one.unordered, one.ordered) if d)]
    assert not any(digest.partition(":")[2] in stored if ":" in digest else digest in stored for digest in plain)
    assert not any(one.name in json.dumps(KNOWN.stored) for one in identity.columns)
    assert match(KNOWN, "another", _identity(FRAME, "another")) is None
    assert keyed("another", identity) != KNOWN


def test_names_are_read_with_the_seed_alone() -> None:
    for names in ([], ["the age"], ["größe", 'say "yes"', "x" * 300], [f"column {i}" for i in range(999)]):
        veiled = known.veil("seed", names)
        assert known.unveil("seed", veiled) == tuple(names)
        assert len(bytes.fromhex(veiled)) % 256 == 0
        assert not any(name.encode().hex() in veiled for name in names)
        with pytest.raises(ValueError, match=r".+"):
            known.unveil("another", veiled)


def test_rows_that_an_earlier_version_may_have_known_by_another_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their budget would be forgotten: refused if there are as many rows, unless they are said to be others."""
    ledger, today = tmp_path / "ledger.sqlite", known._keyed

    def otherwise(seed: str, role: str, digest: str | None) -> str | None:
        return today(seed, f"earlier {role}", digest)

    with monkeypatch.context() as then:
        then.setattr("afresh.ledger.ledger.Opened", lambda **given: Opened(**given | {"sketch": None}, dealing=1))
        then.setattr(known, "_keyed", otherwise)
        with afresh.open(FRAME, 100, method="stabilized", ledger=ledger, allow_wide=True) as guard:
            guard.ask("sick")
            assert verify(guard.receipt()).passed
    with pytest.raises(SameRows, match=r"1,000 rows, as many as this one, that an earlier afresh .*new_rows=.*charged"):
        afresh.open(FRAME, 100, method="stabilized", ledger=ledger, allow_wide=True)
    with afresh.open(_made(RNG).head(999), 100, method="stabilized", ledger=ledger, allow_wide=True) as guard:
        guard.ask("sick")
    words = "drawn in March"
    with afresh.open(FRAME, 100, method="stabilized", ledger=ledger, allow_wide=True, new_rows=words) as guard:
        assert guard.ask("sick").charged == 1
        assert words in json.dumps(guard.receipt())
