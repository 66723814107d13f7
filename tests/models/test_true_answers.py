"""Whatever true intervals the means have, what follows from them is true: an adversary chooses them, numpy tells.

The rows are the population here. Every mean gets an interval that contains it, often at its very end, and a value
anywhere within; nothing else is known to the code under test.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

import afresh
from afresh import statistics as s
from afresh.guard.evaluate import moments_of
from afresh.guard.path import Reply
from afresh.ledger import Entry
from afresh.ledger.base import outcome
from afresh.models.verdicts import Comparison
from afresh.queries.asked import Asked
from afresh.queries.base import RowQuestion
from afresh.results.answer import Answer
from afresh.results.reading import Number, Reading, read

COPIES, MODEL_COPIES = 20, 150
BOUNDS = [(-2.0, 3.0), (-7, 7), (-0.5, 0.5), (0, 1)]
NOW = datetime(2025, 1, 1)


def beset(guard: afresh.Guard, rng: Any) -> None:
    """Put an adversary in place of `Desk.answer`; what follows from its answers is recorded nowhere."""
    width, side = 10 ** rng.uniform(-8, 0), rng.choice([0.0, 1.0, rng.random()])
    numbers, desk = itertools.count(1), guard.desk

    def release(query: RowQuestion) -> Reading:
        (moments,) = moments_of(desk.engine, [query])
        if not moments.n:  # a group without rows may have any mean
            return read(Entry(next(numbers), "", "", 0.0, NOW, outcome(0.5, 0.5, 0.0, 1.0, ends=desk.plan.ends), NOW))
        reach = width * rng.uniform(0, 2)
        low, high = max(moments.mean - side * reach, 0.0), min(moments.mean + (1 - side) * reach, 1.0)
        value = float(rng.choice([low, high, rng.uniform(low, high)]))
        squares = value * rng.random() * moments.n  # of which nothing but what is asked next may depend
        whole = {"rows": moments.n, "total": value * moments.n, "squares": squares, "look": 1}
        released: Any = value if desk.plan.mechanism.batch is None else whole
        found = outcome(released, value, float(low), float(high), ends=desk.plan.ends)
        # of two levels, as an answer that is a single draw
        return read(Entry(next(numbers), "", "", 0.0, NOW, found, NOW, bounds=query.bounds, levels=2))

    def number(one: Asked, parts: Sequence[Reading]) -> Number:
        stated = desk.derived(one, parts)
        return Number(stated.value, stated.low, stated.high)

    def answer(asked: Sequence[Asked], *_: object) -> Iterator[Reply]:
        for one in desk.arranged(asked):
            parts = tuple(map(release, one.queries))
            yield Reply(one, parts[0].own if one.rule is None else number(one, parts), parts, (), 0, desk.scope)

    desk.answer = lambda *asked, **_: list(answer(*asked))  # type: ignore[method-assign]
    desk.state = lambda asked, parts, *_: [number(one, parts) for one in asked]  # type: ignore[method-assign]


def clipped(found: Any, *numbers: Any) -> list[Any]:
    """The numbers that an answer says it is about."""
    said: list[Any] = [
        tuple(map(float, each)) for each in re.findall(r"\[([^],]+), ([^]]+)\]", found.question.rsplit(": ", 1)[1])
    ]
    return [np.clip(each, *bounds) for each, bounds in zip(numbers, said, strict=True)]


def holds(found: Any, truth: float) -> bool:
    """But for the rounding of the truth itself."""
    assert isinstance(found, Answer)
    return bool(found.low - 1e-12 <= truth <= found.high + 1e-12 and found.low <= found.value <= found.high)


@pytest.mark.parametrize("method", ["symmetrized", "rounds"])  # a mean within a group is two plain answers, or one
@pytest.mark.parametrize("where", [None, "c = 'a'"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_statistics_of_rows(seed: int, missing: bool, where: str | None, method: str) -> None:
    """Rows without a number are left out, or count as the upper bound."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(4, 10))
    x = rng.choice([rng.normal(size=rows), rng.integers(-2, 3, rows), np.full(rows, 0.25)])
    y = rng.choice([rng.normal(size=rows), -2 * x])
    group = rng.choice(["a", "b"], rows)
    group[:2] = "a"
    x = np.where(rng.random(rows) < 0.2, rng.choice([np.nan, np.inf]), x)
    y = np.where(rng.random(rows) < 0.1, np.nan, y)
    x[0], y[0] = 0.25, 0.5  # of no rows nothing is true
    frame = pd.DataFrame({"x": x, "y": y, "c": group})
    chosen = np.full(rows, True) if where is None else group == "a"
    with afresh.open(
        pd.concat([frame] * COPIES), questions=10, method=method, simulation_seed=1, made_up=True, allow_wide=True
    ) as guard:
        for bounds in BOUNDS:
            beset(guard, rng)
            filled = bounds[1] if missing else None
            one: dict[str, Any] = {"where": where, "missing": filled}
            two: dict[str, Any] = {"where": where, "missing_x": filled, "missing_y": filled}
            known = chosen & (np.isfinite(x) | missing)
            both = known & (np.isfinite(y) | missing)
            all_u, all_w = (np.clip(np.where(np.isfinite(each), each, bounds[1]), *bounds) for each in (x, y))
            u = all_u[known]
            assert holds(guard.measure(s.Variance("x", bounds, **one)), u.var())
            assert holds(guard.measure(s.StandardDeviation("x", bounds, **one)), u.std() if u.std() > 1e-9 else 0.0)
            v, w = all_u[both], all_w[both]
            products = np.mean((v - v.mean()) * (w - w.mean()))
            assert holds(guard.measure(s.Covariance("x", "y", bounds, bounds, **two)), products)
            if min(v.std(), w.std()) > 1e-9:
                found = guard.measure(s.Correlation("x", "y", bounds, bounds, **two, within=None))
                assert holds(found, np.corrcoef(v, w)[0, 1])
            for within in (1.0, 1.7, 3.0):
                of_one: Any = guard.measure(s.Variance("x", bounds, **one, within=within))
                assert holds(of_one, clipped(of_one, u)[0].var())
                product: Any = guard.measure(s.Covariance("x", "y", bounds, bounds, **two, within=within))
                a, b = clipped(product, v, w)
                assert holds(product, np.mean((a - a.mean()) * (b - b.mean())))
                of_two: Any = guard.measure(s.Correlation("x", "y", bounds, bounds, **two, within=within))
                a, b = clipped(of_two, v, w)
                assert min(a.std(), b.std()) < 1e-9 or holds(of_two, np.corrcoef(a, b)[0, 1])
            for level in (0.5, 1 / rows, float(rng.random())):
                reached = [each for each in sorted(u) if Fraction(int((u <= each).sum()), len(u)) >= Fraction(level)]
                assert holds(guard.measure(s.Quantile("x", level, bounds, **one)), reached[0])
            means = guard.measure(s.GroupMeans("x", "c", ["a", "b"], bounds, **one))
            assert isinstance(means, s.Measures)
            assert all(holds(means[name], all_u[known & (group == name)].mean()) for name in set(group[known]))
            edges = sorted({bounds[0], *map(float, np.round(rng.uniform(*bounds, 3), 2)), bounds[1]})
            bins = guard.measure(s.Histogram("x", edges, where))
            assert isinstance(bins, s.Measures)
            shares = np.histogram(x[chosen & np.isfinite(x)], edges)[0] / chosen.sum()
            assert all(holds(bins[name], share) for name, share in zip(bins, shares, strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_statistics_of_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(3, 12))
    label = np.arange(rows) % 2 == 1
    guess, other = rng.random((2, rows)) < 0.5
    chance = rng.choice([rng.random(rows), rng.integers(0, 11, rows) / 10, np.where(label, 0.75, 0.25)])
    many = {"label": label, "guess": guess, "other": other, "chance": chance}
    label_, guess_, other_, chance_ = (np.tile(each, MODEL_COPIES) for each in many.values())
    with afresh.holdout(
        np.zeros((rows * MODEL_COPIES, 1)),
        label_,
        questions=10,
        method="symmetrized",
        simulation_seed=1,
        made_up=True,
    ) as holdout:
        for positive in (True, False):
            beset(holdout.guard, rng)
            truth, predicted, p = label == positive, guess == positive, chance if positive else 1 - chance
            if predicted.any():
                assert holds(holdout.measure(s.Precision(positive), guess_), truth[predicted].mean())
            assert holds(holdout.measure(s.Recall(positive), guess_), predicted[truth].mean())
            assert holds(holdout.measure(s.F1(positive), guess_), metrics.f1_score(truth, predicted))
            cuts = tuple(sorted(set(np.round(rng.uniform(0.05, 0.95, 4), 1).tolist())))
            gaps = [abs(np.mean((truth - p) * (np.digitize(p, cuts) == each))) for each in range(len(cuts) + 1)]
            assert holds(holdout.measure(s.CalibrationError(cuts, positive), chance_), sum(gaps))
            assert holds(holdout.measure(s.AUC(cuts, positive), chance_), metrics.roc_auc_score(truth, p))
        if (guess != other).any():
            found = holdout.compare(guess_, other_)
            assert isinstance(found, Comparison)
            difference = np.mean(guess != label) - np.mean(other != label)
            assert found.low - 1e-12 <= difference <= found.high + 1e-12
            assert (found.better, np.sign(difference)) not in [("A", 0), ("A", 1), ("B", 0), ("B", -1)]
