"""Tables that have most of their rows in common, and how each engine must meet them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import SameRows

N = 2000
REFUSED = r"shares most of its different rows with one of 2,000 rows that was opened .* some dropped, .* new_rows="


def drawn(seed: int, rows: int = N) -> pd.DataFrame:
    """A sample of one population."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "score": rng.normal(size=rows),
            "city": rng.choice(["Bern", "Basel", "Chur"], rows),
            "sick": rng.random(rows) < 0.3,
        }
    )


KNOWN = drawn(1)


def _resampled(rows: int, *, replace: bool = False) -> pd.DataFrame:
    return KNOWN.sample(rows, replace=replace, random_state=5).reset_index(drop=True)


def _with(more: int) -> pd.DataFrame:
    return pd.concat([KNOWN, drawn(2, more)], ignore_index=True)


# Each contains most of the known rows, or is contained in them. With 256 parts and any key, one of them is overlooked
# with probability below 1e-11: that of the tenth, if none of its rows is the least of its part.
ATTACKS: dict[str, Callable[[], pd.DataFrame]] = {
    "one dropped": lambda: KNOWN.drop(index=7),
    "one appended": lambda: _with(1),
    "a tenth dropped": lambda: _resampled(N - N // 10),
    "half as many appended": lambda: _with(N // 2),
    "as many constant rows appended": lambda: pd.concat([KNOWN, *[drawn(2, 1)] * N], ignore_index=True),
    "each twice": lambda: pd.concat([KNOWN, KNOWN], ignore_index=True),
    "bootstrap": lambda: _resampled(N, replace=True),
    "half of them": lambda: _resampled(N // 2),
    "a tenth of them": lambda: _resampled(N // 10),
    "sorted, one dropped": lambda: KNOWN.drop(index=7).sort_values("score", ignore_index=True),
    "one dropped, otherwise encoded": lambda: (
        KNOWN.drop(index=7)
        .astype({"sick": int, "age": float})[["sick", "city", "score", "age"]]
        .rename(columns=str.upper)
    ),
}


def check_attacks(opened: Callable[[pd.DataFrame], dict[str, Any]], ledger: Path) -> None:
    """Open rows in memory, and then each attack as `opened` gives it to `afresh.open`, and two honest samples."""
    with afresh.open(KNOWN, questions=9, ledger=ledger) as guard:
        guard.ask("sick")
    for name, make in ATTACKS.items():
        with pytest.raises(SameRows, match=REFUSED):
            pytest.fail(f"{name}: {afresh.open(**opened(make()), questions=9, ledger=ledger, allow_wide=True)}")
    shuffled = KNOWN.sample(frac=1, random_state=3).reset_index(drop=True)
    with afresh.open(**opened(shuffled), ledger=ledger) as guard:
        assert guard.budget.spent == 1
    words = "the old ones and a thousand of May; the first study is charged"
    with afresh.open(**opened(_with(N // 2)), questions=9, ledger=ledger, new_rows=words) as guard:
        assert guard.budget.spent == 0
        assert guard.receipt()["data"]["new_rows"] == words
    with afresh.open(**opened(drawn(4)), questions=9, ledger=ledger) as guard:
        assert guard.budget.spent == 0
