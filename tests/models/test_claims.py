"""Claims, challenges and contests of models: only symbols are released, and what they certify is true."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import afresh
from afresh.errors import InvalidArgument
from afresh.receipts import verify
from afresh.receipts.page import as_html, as_markdown

N = 20_000
RNG = np.random.default_rng(8)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=N) > 0).astype(int)


def cut(at: float, column: int = 0) -> Any:
    def model(rows: Any) -> Any:
        return (np.asarray(rows)[:, column] > at).astype(int)

    return model


GOOD, FAIR, BAD = cut(0.0), cut(0.5), cut(0.0, 1)  # wrong on about 15, 21 and 50% of rows
each = pytest.mark.parametrize("features", ["public", "hidden"])


def opened(features: Any = "public", **options: Any) -> afresh.Holdout:
    found = {"questions": 40, "method": "checked", "ledger": ":memory:", **options}
    return afresh.holdout(X, Y, features=features, **found)


def verified(holdout: afresh.Holdout) -> None:
    outcome = verify(json.dumps(holdout.guard.receipt()))
    assert outcome.passed, str(outcome)


@each
def test_a_better_model_is_certified_and_nothing_else(features: Any) -> None:
    with opened(features) as holdout:
        assert holdout.claim(GOOD, better_than=FAIR, names=["good", "fair"])
        assert not holdout.claim(FAIR, better_than=GOOD, names=["fair", "good"])
        assert holdout.claim(GOOD, better_than=BAD, by=0.2, names=["good", "bad"])
        assert not holdout.claim(GOOD, better_than=BAD, by=0.45, names=["good", "bad"])
        assert holdout.claim(GOOD, between=(0.1, 0.2), names=["good"])
        assert holdout.claim(GOOD, better_than=FAIR, names=["good", "fair"]).charged == 0
        assert holdout.budget.spent == 5
        verified(holdout)


def test_what_a_claim_detects_follows_how_often_models_differ() -> None:
    with opened() as holdout:
        close = holdout.detects(cut(0.02), better_than=GOOD)
        assert close < 0.6 * holdout.detects(FAIR, better_than=GOOD)
        assert holdout.claim(FAIR, better_than=GOOD, names=["fair", "good"]).detects < 0.05
    with opened("hidden") as holdout:
        told = holdout.detects(FAIR, better_than=GOOD, disagreement=0.05)
        assert told < 0.5 * holdout.detects(FAIR, better_than=GOOD)


@each
def test_the_ratchet_only_goes_up(features: Any) -> None:
    with opened(features) as holdout:
        with pytest.raises(InvalidArgument, match="no incumbent yet"):
            holdout.challenge(GOOD, names=["good"])
        assert holdout.challenge(FAIR, incumbent=BAD, names=["fair", "bad"])
        assert not holdout.challenge(BAD, names=["bad"])
        assert holdout.challenge(GOOD, names=["good"])
        for i, at in enumerate((0.3, 0.4, -0.4, 0.6)):
            assert not holdout.challenge(cut(at), names=[f"other {i}"])
        assert "challenge: good" in holdout.guard.transcript.records[2].question
        again = holdout.challenge(GOOD, incumbent=FAIR, names=["good", "fair"])  # as after a restart
        assert (again.passed, again.charged) == (True, 0)
        verified(holdout)


@each
def test_a_contest_tells_the_winner_or_no_improvement(features: Any) -> None:
    with opened(features) as holdout:
        names = ["bad", "good", "fair"]
        plain = holdout.contest([BAD, GOOD, FAIR], names=names)
        assert (plain.winner, plain.value, plain.charged) == (1, None, 1)
        binned = holdout.contest([BAD, GOOD, FAIR], names=names, bins=20)
        assert binned.value is not None
        assert binned.value.low < np.mean(GOOD(X) != Y) < binned.value.high
        assert binned.value.half_width < 0.08
        beaten = holdout.contest([BAD, GOOD], incumbent=FAIR, names=["bad", "good", "fair"], bins=20)
        assert (beaten.winner, beaten.incumbent) == (1, "fair")
        assert "good wins and beats fair" in str(beaten)
        none = holdout.contest([BAD, FAIR], incumbent=GOOD, names=["bad", "fair", "good"])
        assert (none.winner, none.verdict, none.value) == (None, "no certified improvement", None)
        assert json.loads(none.to_json())["winner"] is None
        assert holdout.budget.spent == 4
        verified(holdout)


@each
def test_the_models_of_a_contest_may_have_names_as_elsewhere(features: Any) -> None:
    with opened(features) as holdout:
        assert "good wins: " in str(holdout.contest({"bad": BAD, "good": GOOD, "fair": FAIR}))
        beaten = holdout.contest({"bad": BAD, "good": GOOD}, incumbent=FAIR)
        assert (beaten.winner, beaten.incumbent) == (1, "incumbent")
        for models, given, message in (
            ({"incumbent": BAD, "good": GOOD}, {"incumbent": FAIR}, "a model is called 'incumbent'"),
            ({"bad": BAD, "good": GOOD}, {"incumbent": FAIR, "names": ["a", "b", "c"]}, "leave out names="),
            (GOOD, {}, "must be a list, one for each model"),
        ):
            with pytest.raises(InvalidArgument, match=message):
                holdout.contest(models, **given)
        assert holdout.budget.spent == 2


@each
@pytest.mark.parametrize("bins", [None, 20])
def test_a_contest_says_beforehand_what_it_detects(features: Any, bins: int | None) -> None:
    """A winner is certified at the level of a claim, more for each candidate: a union over all that might win."""
    with opened(features) as holdout:
        alone = holdout.detects(GOOD, better_than=FAIR)
        said = [holdout.detects(GOOD, better_than=FAIR, among=m, binned=bins is not None) for m in (1, 2, 50)]
        assert said == sorted(said)
        assert (said[0] == alone) == (bins is None)
        assert alone < said[-1] < 1.6 * alone
        names = ["good", "bad", "fair"]
        found = holdout.contest([GOOD, BAD], incumbent=FAIR, bins=bins, names=names)
        far = holdout.detects(BAD, better_than=FAIR, among=2, binned=bins is not None)  # after this one
        assert found.winner == 0
        assert found.detects is not None
        assert 0.9 * said[1] < found.detects <= far
        assert "wins about nine times in ten, which was known in advance" in " ".join(str(found).split())
        assert holdout.contest([GOOD, BAD], names=["good", "bad"]).detects is None
    for bad in ({"among": 0}, {"among": 1.5}, {"binned": 3}):
        with opened(features) as holdout, pytest.raises(InvalidArgument):
            holdout.detects(GOOD, better_than=FAIR, **bad)


@each
def test_records_say_in_words_what_was_released(features: Any) -> None:
    """Nobody may read a failed claim as a share of one half, or "no improvement" as too few rows."""
    with opened(features) as holdout:
        holdout.claim(GOOD, better_than=FAIR, names=["good", "fair"])
        holdout.claim(FAIR, better_than=GOOD, names=["fair", "good"])
        holdout.challenge(BAD, incumbent=GOOD, names=["bad", "good"])
        holdout.contest([BAD, GOOD], names=["bad", "good"])
        binned = holdout.contest([FAIR, GOOD], names=["fair", "good"], bins=20)
        holdout.contest([BAD, FAIR], incumbent=GOOD, names=["bad", "fair", "good"])
        transcript, receipt = holdout.guard.transcript, holdout.guard.receipt()
    words = ["passed", "failed", "failed", "model 2 wins", "model 2 wins", "no certified improvement"]
    assert [record.said for record in transcript] == words
    assert [record.shown()[0] for record in transcript] == words
    ends = [record.shown()[1:] for record in transcript]
    assert ends[:4] + ends[5:] == [["", ""]] * 5
    assert binned.value is not None
    assert float(ends[4][0]) <= binned.value.low
    for page in (as_markdown(receipt), as_html(receipt)):
        shown = re.sub(r"<[^>]+>|[|\s]+", " ", page)
        assert re.search(r" 2 +failed ", shown)
        assert re.search(rf" 5 +model 2 wins, {ends[4][0]} to {ends[4][1]} ", shown)
        assert re.search(r" 6 +no certified improvement ", shown)
        assert "too few rows" not in shown
        assert "too few rows" not in str(transcript)


def test_numbers_have_contests_too() -> None:
    target = X @ [1.0, 0.5, 0.0]
    with afresh.holdout(
        X, target, loss=afresh.losses.Squared(clip=4.0), questions=20, method="checked", ledger=":memory:"
    ) as holdout:
        near, far = X @ [1.0, 0.4, 0.0], X @ [1.0, 0.0, 0.0]
        assert holdout.claim(near, better_than=far, by=0.1)
        assert not holdout.claim(far, better_than=near)
        found = holdout.contest([far, near], names=["far", "near"], bins=10, incumbent=None)
        assert found.winner == 1
        verified(holdout)


def test_refusals_are_free() -> None:
    with opened() as holdout:
        for wrong in (
            {},
            {"better_than": FAIR, "between": (0.1, 0.2)},
            {"better_than": FAIR, "by": -1},
            {"between": 3},
        ):
            with pytest.raises(InvalidArgument):
                holdout.claim(GOOD, **wrong)
        for models, more in (([], {}), ([GOOD, GOOD], {}), ([GOOD], {"bins": 1}), ([GOOD], {"incumbent": GOOD})):
            with pytest.raises(InvalidArgument):
                holdout.contest(models, **more)
        assert holdout.budget.spent == 0
    with opened(method="stabilized") as holdout, pytest.raises(InvalidArgument, match="need method='checked'"):
        holdout.contest([GOOD, FAIR])


@pytest.mark.parametrize("features", ["public", "hidden"])
def test_an_incumbent_is_one_for_its_loss(features: Any) -> None:
    """Predictions are made for a loss: probabilities would match no label, and everybody would beat them."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4000, 2))
    y = (x[:, 0] > 0).astype(int)

    class Model:
        def __init__(self, right: float, seed: int) -> None:
            self.right, self.seed = right, seed

        def predict(self, x: Any) -> Any:
            truth = np.asarray(x)[:, 0] > 0
            wrong = np.random.default_rng(self.seed).random(len(truth)) > self.right
            return (truth ^ wrong).astype(int)

        def predict_proba(self, x: Any) -> Any:
            p = np.where(self.predict(x) == 1, 0.9, 0.1)
            return np.column_stack([1 - p, p])

    good, awful = Model(0.75, 1), Model(0.25, 2)
    with afresh.holdout(
        x, y, features=features, classes=[0, 1], questions=20, method="checked", simulation_seed=1, made_up=True
    ) as holdout:
        holdout.challenge(awful, incumbent=good, loss="brier", names=["awful", "good"])
        with pytest.raises(InvalidArgument, match="no incumbent yet for the zero-one loss"):
            holdout.challenge(awful, names=["awful"])
        spent = holdout.budget.spent
        assert not holdout.challenge(awful, incumbent=good, names=["awful", "good"]).passed
        assert not holdout.challenge(awful, loss="brier", names=["worse"]).passed
        assert holdout.budget.spent <= spent + 2


def test_a_contest_takes_two() -> None:
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 2000)
    with afresh.holdout(
        np.zeros((2000, 1)), y, questions=20, method="checked", simulation_seed=1, made_up=True
    ) as holdout:
        for few in ([], [y]):
            with pytest.raises(InvalidArgument, match="a contest needs two, or one and an incumbent"):
                holdout.contest(few)
        assert holdout.budget.spent == 0
        assert holdout.contest([y], incumbent=1 - y, names=["right", "wrong"]).winner == 0
