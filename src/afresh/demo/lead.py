"""A false lead: columns of coin tosses, an analyst who keeps those that look good, and how good they really are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from afresh.demo.files import own
from afresh.guard.guard import Guard
from afresh.results.answer import Answer

if TYPE_CHECKING:
    import polars as pl

ROWS, COINS = 10_000, 994
KEPT = (1, 51, 101, 151, 201, 301)  # odd, so that a vote has no ties
Signs = NDArray[np.int8]


def coins_file(folder: Path) -> tuple[Path, Signs, Signs]:
    """Flights that were late or not, each with coin tosses that have nothing to do with it."""
    import polars as pl

    from afresh.datasets import flights

    late = (flights(ROWS, seed=3)["arr_delay"] > 0).fill_null(True).to_numpy()  # about two in five
    rng, sides = np.random.default_rng(2018), np.array([-1, 1], dtype=np.int8)
    label, coins = np.where(late, 1, -1).astype(np.int8), rng.choice(sides, size=(ROWS, COINS))
    frame: pl.DataFrame = pl.DataFrame({"late": label, **{f"coin{j}": coins[:, j] for j in range(COINS)}})
    return own(folder / "coins.parquet", frame), coins, label


def naive_analyst(coins: Signs, late: Signs) -> dict[int, float]:
    """Scores every coin, keeps the best, lets them vote, and scores the vote, all on the same rows."""
    scores = (coins == late[:, None]).mean(axis=0)
    best = np.argsort(-np.abs(scores - 0.5))
    result = {}
    for kept in KEPT:
        votes = coins[:, best[:kept]].astype(np.int64) @ np.sign(scores[best[:kept]] - 0.5)
        result[kept] = float((np.sign(votes) == late).mean())
    return result


def guarded_analyst(guard: Guard) -> dict[int, Answer]:
    """The same strategy on answers of a guard, in two rounds: the coins, then the votes."""
    scores = np.array([answer.value for answer in guard.ask_many(f"coin{j} = late" for j in range(COINS))])
    best = np.argsort(-np.abs(scores - 0.5))
    votes = [_sum([f"coin{j}" if scores[j] > 0.5 else f"-coin{j}" for j in best[:kept]]) for kept in KEPT]
    return dict(zip(KEPT, guard.ask_many(f"late * {vote} > 0" for vote in votes), strict=True))


def _sum(terms: list[str]) -> str:
    """A balanced sum: an expression may be long, but not deep."""
    if len(terms) == 1:
        return f"({terms[0]})"
    middle = len(terms) // 2
    return f"({_sum(terms[:middle])} + {_sum(terms[middle:])})"
