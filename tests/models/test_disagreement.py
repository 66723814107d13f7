"""Comparisons of models with public features: one answer each, with noise that follows how often they disagree."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.stats import binom

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.models.compare import _ranges
from afresh.models.labels import Labels
from afresh.receipts import verify

ROWS, QUESTIONS, SHARE = 2048, 40, 0.125


def opened(y: NDArray[Any], seed: int | None = 1, **more: Any) -> afresh.Holdout:
    features: Any = np.arange(len(y), dtype=np.float64)[:, None]
    if seed is not None:
        more |= {"simulation_seed": seed, "made_up": True}
        features = pd.DataFrame({"x": features[:, 0]})
    return afresh.holdout(features, y, classes=[0, 1], **{"questions": QUESTIONS, "disagreement": SHARE} | more)


def compared(holdout: afresh.Holdout, *models: Any, **more: Any) -> Any:
    """A comparison, or that they are identical."""
    return holdout.compare(*models, **more)


def disagreeing(size: int, rows: int = ROWS) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    a = np.zeros(rows, dtype=np.int64)
    b = a.copy()
    b[:size] = 1
    return a, b


def test_noise_follows_predictions_and_not_labels() -> None:
    """Charges, widths and row charges are the same for any labels; they fall with the disagreement."""
    rng = np.random.default_rng(3)
    told = []
    for y in (np.zeros(ROWS, int), np.ones(ROWS, int), rng.integers(0, 2, ROWS)):
        with opened(y) as holdout:
            found = [compared(holdout, *disagreeing(size)) for size in (512, 256, 128, 64)]
            entries = holdout.guard.desk.ledger.entries(holdout.guard.desk.terms)
            told.append([(c.charged, round(c.smallest_difference, 12)) for c in found])
            assert [entry.coarseness for entry in entries] == sorted((e.coarseness for e in entries), reverse=True)
            for comparison, size in zip(found, (512, 256, 128, 64), strict=True):
                assert comparison.charged == 1
                assert holdout.resolution(size / ROWS) == pytest.approx(comparison.smallest_difference, rel=1e-6)
    assert told[0] == told[1] == told[2]
    widths = [width for _, width in told[0]]
    assert widths == sorted(widths, reverse=True)
    assert widths[3] < 0.6 * widths[0]


def test_the_row_account_ends_where_it_was_planned() -> None:
    """Models that disagree on fewer rows weigh more on each: the cap is checked before an answer."""
    y = np.random.default_rng(1).integers(0, 2, ROWS)
    with opened(y) as holdout:
        a, b = disagreeing(round(SHARE * ROWS / 4))
        asked = 0
        with suppress(BudgetExhausted):
            for asked in range(QUESTIONS):
                compared(holdout, a, np.roll(b, asked))
        assert QUESTIONS / 6 < asked < QUESTIONS / 2
        spent = holdout.guard.desk.spent(holdout.guard.analyst)
        assert spent.answers == asked
    with opened(y) as holdout:  # of those that were planned for, all
        for asked in range(QUESTIONS):
            a, b = disagreeing(round(SHARE * ROWS))
            compared(holdout, a, np.roll(b, asked))


def test_a_comparison_is_by_parts_where_its_noise_does_not_follow() -> None:
    y = np.random.default_rng(1).integers(0, 2, ROWS)
    with opened(y) as holdout:
        a, _ = disagreeing(1)
        assert compared(holdout, a, 1 - a).charged == 1  # even of models that disagree everywhere it does
        assert compared(holdout, a, a).charged == 0
        (first, second) = disagreeing(200)
        assert compared(holdout, first, second, precision=0.9).charged == 2  # coarser is by parts, as for others
    with pytest.raises(InvalidArgument, match="hidden"):
        opened(y, features="hidden")


def test_a_comparison_is_one_question_in_either_order_and_verifies(tmp_path: Path) -> None:
    y = np.random.default_rng(2).integers(0, 2, ROWS)
    with opened(y, None, ledger=tmp_path / "ledger.sqlite") as holdout:
        a, b = disagreeing(200)
        one, other = compared(holdout, a, b), compared(holdout, b, a)
        assert (other.charged, other.value) == (0, -one.value)
        assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
        ranking = holdout.best_of([a, b, np.roll(b, 7)], names=["a", "b", "c"])
        assert ranking.charged <= 5
        outcome = verify(json.dumps(holdout.guard.receipt()))
        assert outcome.passed, str(outcome)
    with afresh.holdout(
        np.arange(ROWS, dtype=np.float64)[:, None], y, classes=[0, 1], ledger=tmp_path / "ledger.sqlite"
    ) as again:
        assert compared(again, a, b).charged == 0


@pytest.mark.parametrize(("confidence", "runs"), [(0.95, 30), (0.5, 30)])
def test_an_analyst_that_pushes_along_its_posterior(confidence: float, runs: int) -> None:
    """Labels are fair coins, so every difference is 0. End to end, through `compare`.

    The analyst learns the labels of a block of rows along orthogonal directions, keeps their posterior mean, and then
    lets a last pair of models differ where it knows most. If the promise holds, a miss rate is at most 1 - confidence;
    the test fails then with probability below 1e-8 for each confidence, below 1e-6 for both. It is no straw man: its
    last answer is off on average, and always to the side to which it pushes.
    """
    block = 256  # disagreement 1/8
    walsh = hadamard(block)
    missed, reached = 0, []
    for run in range(runs):
        rng = np.random.default_rng(1000 + run)
        y = rng.integers(0, 2, ROWS)
        with opened(y, seed=run, confidence=confidence) as holdout:
            mean, wrong = np.zeros(block), False
            for step in range(QUESTIONS - 1):
                direction = walsh[step % block] if step < 30 else np.where(mean >= 0, 1, -1)
                answer = _ask(holdout, direction)
                wrong |= not answer.low <= 0 <= answer.high
                mean += answer.value * direction
            last = _ask(holdout, np.where(mean >= 0, 1, -1))
            missed += bool(wrong or not last.low <= 0 <= last.high)
            reached.append(last.value / last.smallest_difference)
    assert binom.sf(missed - 1, runs, 1 - confidence) > 1e-8
    assert abs(np.mean(reached)) > 0.1


def _ask(holdout: afresh.Holdout, direction: NDArray[Any]) -> Any:
    """Loss of A minus loss of B is `direction` times the coin of each row of the block."""
    a = np.zeros(ROWS, dtype=np.int64)
    b = a.copy()
    a[: len(direction)] = direction > 0
    b[: len(direction)] = direction <= 0
    return compared(holdout, a, b)


@pytest.mark.parametrize(
    "loss", [afresh.losses.Brier(), afresh.losses.Log(clip=4.0), afresh.losses.Cost(((0.0, 1.0), (3.0, 0.0)))]
)
def test_ranges_hold_for_every_label(loss: Any) -> None:
    """(1 + d)/2 moves by no more than its range, whatever two labels a row has, a missing one included."""
    rng = np.random.default_rng(4)
    chances = rng.random(ROWS)
    near = np.where(rng.random(ROWS) < 0.5, np.clip(chances + 0.1 * rng.normal(size=ROWS), 0, 1), chances)
    a, b = ((chances > 0.5) * 1, (near > 0.5) * 1) if loss.kind == "classes" else (chances, near)
    with opened(rng.integers(0, 2, ROWS)) as holdout:
        rows = holdout.labelled
        first, second = rows.predict([a, b], None, loss)
        found = _ranges(rows, first, second, loss)
        every = []
        for label in (0, 1, None):
            labels = Labels(np.full(ROWS, label, dtype=object), (0, 1))
            d = np.subtract(*(each.losses(loss, labels, slice(None)) for each in (first, second)), dtype=np.float64)
            every.append((1 + d) / 2)
        spread = np.max(every, axis=0) - np.min(every, axis=0)
        assert np.all(spread <= found + 1e-12)
        assert found == pytest.approx(spread)
        assert compared(holdout, a, b, loss=loss).charged == 1


def test_probabilities_that_differ_little_are_told_apart_well() -> None:
    """They differ on every row, and by 1% each."""
    rng = np.random.default_rng(5)
    chances = rng.random(ROWS) * 0.9
    with opened(rng.integers(0, 2, ROWS)) as holdout:
        near = compared(holdout, chances, chances + 0.05, loss=afresh.losses.Brier())
        alike = compared(holdout, *disagreeing(round(SHARE * ROWS)))
        assert near.charged == 1
        assert near.high - near.low < 0.7 * (alike.high - alike.low)
        own = afresh.losses.Custom(lambda truth, given: np.abs(given - truth), "distance", "probabilities")
        assert compared(holdout, chances, chances + 0.05, loss=own).charged == 2
