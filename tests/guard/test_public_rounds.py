"""Rounds with public features: every round is about the features of its own rows, so no number combines two of them.

The walk below knows every statistic and every rule: a new one must say here how it keeps to that.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh import statistics as s
from afresh.engines.embedded.rowwise import rows_of_span
from afresh.errors import InvalidArgument
from afresh.ledger import open_ledger
from afresh.ledger.base import Limits
from afresh.mechanisms.split import Split
from afresh.models.holdout import Holdout
from afresh.moments import Span
from afresh.planning.plan import Plan
from afresh.receipts import verify
from afresh.results.answer import Answer
from afresh.results.rules import RULES
from afresh.wire.arguments import OF_MODELS, OF_ROWS, STATISTICS

RNG = np.random.default_rng(31)
N = 4000
X = pd.DataFrame({"u": RNG.random(N), "v": RNG.random(N)})
U = np.asarray(X["u"])
Y = (RNG.random(N) < U).astype(int)
CHANCES = np.round(0.2 + 0.6 * U, 3)
CLASSES = (RNG.random(N) < 0.7 * U + 0.1).astype(int)

# Pairs of a statistic with one that shares a part with it, but not all; asked in this order.
SHARING: dict[str, list[tuple[Any, Any]]] = {
    "AUC": [(s.AUC((0.3, 0.5)), s.AUC((0.5, 0.6)))],
    "CalibrationError": [(s.CalibrationError((0.3, 0.5)), s.CalibrationError((0.3, 0.6)))],
    "F1": [(s.Recall(), s.F1())],
    "GroupMeans": [
        (s.GroupMeans("label = 1", "u > 0.5", [True]), s.GroupMeans("label = 1", "u > 0.5", [True, False])),
        (
            s.Histogram("label", [0, 0.5, 1], where="(u > 0.5) = TRUE"),
            s.GroupMeans("label >= 0 AND label < 0.5", "u > 0.5", [True]),
        ),
    ],
    "Histogram": [
        (s.Histogram("label + u", [0, 0.5, 2]), s.Histogram("label + u", [0, 0.5, 1.5])),
        (
            s.Histogram("label + u", [0, 0.5, 2], where="v < 0.5"),
            s.Histogram("label + u", [0, 0.5, 1.5], where="v < 0.5"),
        ),
    ],
    "Precision": [(s.F1(), s.Precision())],
    "Quantile": [(s.Quantile("label + u", 0.5, (0, 2), 3), s.Quantile("label + u", 0.6, (0, 2), 7))],
    "Recall": [(s.Precision(), s.Recall())],
    "VectorMean": [(s.VectorMean(["label", "label * u"], 2), s.VectorMean(["label", "label * u"], 3))],
}
REFUSED: dict[str, list[Any]] = {
    "Correlation": [s.Correlation("label", "label * u", (0, 1), (0, 1), within=each) for each in (None, 3)],
    "Covariance": [s.Covariance("label", "label * u", (0, 1), (0, 1), within=each) for each in (None, 3)],
    "StandardDeviation": [s.StandardDeviation("label * u", (0, 1), within=each) for each in (None, 3)],
    "Variance": [s.Variance("label * u", (0, 1), within=each) for each in (None, 3)],
}
ELSEWHERE = {"group": "noise", "bin of group": "vectors", "improvement": "claims"}
"""Rules of methods that have no rounds."""
SINGLE = {"entry", "difference"}
"""Rules of one answer, if it comes from a round."""


@pytest.fixture
def holdout() -> Iterator[Holdout]:
    with afresh.holdout(X, Y, questions=200, rounds=10, ledger=":memory:") as holdout:
        yield holdout


def measured(holdout: Holdout, statistic: Any) -> Any:
    if type(statistic).__name__ in OF_ROWS:
        return holdout.guard.measure(statistic)
    return holdout.measure(statistic, CLASSES if "predicted" in words(statistic) else CHANCES)


def words(statistic: Any) -> str:
    return "probabilities" if isinstance(statistic, s.AUC | s.CalibrationError) else "predicted classes"


def check_rows(holdout: Holdout) -> set[str]:
    """Each number that was stated comes from one round; return the rules."""
    desk = holdout.guard.desk
    entries = desk.ledger.entries(desk.terms)
    stated = desk.ledger.stated(desk.terms)
    for each in stated:
        assert len({entries[part - 1].span for part in each.parts}) == 1, each.text
    return {each.rule for each in stated}


@pytest.mark.parametrize("name", sorted(SHARING))
def test_a_statistic_that_shares_a_part_with_an_earlier_round_asks_for_all_of_its_own(name: str) -> None:
    for first, second in SHARING[name]:
        with afresh.holdout(X, Y, questions=200, rounds=10, ledger=":memory:") as holdout:
            measured(holdout, first)
            one = measured(holdout, second)
            check_rows(holdout)
            spent, rows = holdout.budget.spent, holdout.budget.rows_left
            again = measured(holdout, second)
            assert (holdout.budget.spent, holdout.budget.rows_left, again.charged) == (spent, rows, 0)
            assert str(again).splitlines()[0] == str(one).splitlines()[0]
            measured(holdout, first)
            assert holdout.budget.spent == spent
            assert verify(holdout.guard.receipt()).passed


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_statistic_that_takes_two_rounds_is_refused_for_nothing(name: str, holdout: Holdout) -> None:
    for statistic in REFUSED[name]:
        with pytest.raises(InvalidArgument, match="Nothing was charged"):
            measured(holdout, statistic)
    assert holdout.budget.spent == 0


def test_no_statistic_and_no_rule_is_left_out(holdout: Holdout) -> None:
    assert {*SHARING, *REFUSED} == set(STATISTICS) == {*OF_ROWS, *OF_MODELS}
    for pairs in SHARING.values():
        measured(holdout, pairs[0][1])
    holdout.guard.ask("label = 1", where="u > 0.3")
    found = check_rows(holdout)
    spreads = {rule for rule in RULES if rule.split(",")[0] in {"correlation by sums", *map(_rule, REFUSED)}}
    assert found | spreads | set(ELSEWHERE) | SINGLE == set(RULES)
    assert not found & (spreads | set(ELSEWHERE))


def _rule(name: str) -> str:
    return "standard deviation" if name == "StandardDeviation" else name.lower()


def test_precision_recall_and_f1_are_those_of_one_rounds_rows(holdout: Holdout) -> None:
    """Exactly: a ratio of counts of the same rows, whatever was asked before."""
    desk = holdout.guard.desk
    for statistic in (s.Precision(), s.Recall(), s.F1(), s.Recall(positive=0)):
        answer = holdout.measure(statistic, CLASSES)
        assert isinstance(answer, Answer)
        assert answer.charged == 2
        span = desk.ledger.entries(desk.terms)[-1].span
        assert span is not None
        rows = rows_of_span(desk.engine, Span(*span))
        code = 0 if getattr(statistic, "positive", None) == 0 else 1
        predicted, true = CLASSES[rows] == code, Y[rows] == code
        whole = {"Precision": predicted.sum(), "Recall": true.sum(), "F1": (predicted.sum() + true.sum()) / 2}
        assert answer.value == pytest.approx((predicted & true).sum() / whole[type(statistic).__name__])


def test_a_group_and_a_histogram_have_a_final_look_at_their_own_rows(holdout: Holdout) -> None:
    guard = holdout.guard
    guard.measure(s.Histogram("label", [0, 0.5, 1], where="u > 0.5"))
    first = guard.ask("label >= 0 AND label < 0.5", where="u > 0.5")
    assert first.charged == 2
    assert guard.price("label >= 0 AND label < 0.5", where="u > 0.5").answers == 0
    final = guard.close_rounds()
    assert [each.question for each in final][-1] == first.question
    check_rows(holdout)
    assert verify(guard.receipt()).passed


def test_where_every_answer_has_rows_of_its_own_nothing_is_combined() -> None:
    """No new plan splits, but ledgers that have one keep it."""
    ledger = open_ledger(":memory:")
    with afresh.holdout(X, Y, questions=4, method="stabilized", ledger=ledger) as holdout:
        limits: Limits = Plan(Split(N, 4, 0.05)).limits
        holdout.guard.desk.ledger.open(holdout.guard.desk.engine.identity(), limits)
    with afresh.holdout(X, Y, ledger=ledger) as holdout:
        assert holdout.guard.plan.method == "split"
        asking: list[Callable[[], Any]] = [
            lambda: holdout.measure(s.Recall(), CLASSES),
            lambda: holdout.guard.ask("label = 1", where="u > 0.5"),
            lambda: holdout.guard.measure(s.Histogram("label + u", [0, 1, 2])),
        ]
        for ask in asking:
            with pytest.raises(InvalidArgument, match="Nothing was charged"):
                ask()
        assert holdout.budget.spent == 0
        assert holdout.guard.ask("label = 1").charged == 1
