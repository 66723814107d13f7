"""Conversations of symbols: the levels and the path of a guard, and what counts as a miss."""

import numpy as np
import pandas as pd
import pytest

from afresh.guard.open import open as open_guard
from afresh.lab.population import POPULATIONS, Bit, Question
from afresh.lab.symbols import Conversation, Gain, Loss, Talk, levels_of
from afresh.mechanisms.checked import Checked
from afresh.mechanisms.planned_checks import plan_open_rows
from afresh.mechanisms.tasks import Claim
from afresh.moments import Moments


def planned(rows: int, questions: int, failure: float = 0.05) -> Checked:
    mechanism = plan_open_rows(rows, questions, failure, share=0.5)
    assert mechanism is not None
    return mechanism


def held_with(population: str, rows: int = 2000, questions: int = 100) -> Conversation:
    drawn = POPULATIONS[population]
    sample = drawn.draw(rows, np.random.default_rng(5))
    return Conversation(Talk(planned(rows, questions)), drawn, sample)


@pytest.mark.parametrize(
    ("population", "bit", "gain", "alone"),
    [
        ("fair", 2, 3, 3),
        ("p=0.01", 2, 3, 3),
        ("rare", 2, 3, 3),
        ("differences", 3, 3, None),
        ("uneven", None, None, None),
    ],
)
def test_levels_are_those_of_the_values(population: str, bit: int | None, gain: int | None, alone: int | None) -> None:
    drawn, sample = POPULATIONS[population], held_with(population).sample
    wanted: list[tuple[Question, int | None]] = [
        *((Bit(0), bit), (Loss(Bit(0)), bit)),
        *((Gain(Bit(0), Bit(1)), gain), (Gain(Bit(0)), alone)),
    ]
    for question, levels in wanted:
        assert levels_of(question, drawn) == levels
        values = set(np.unique(question.values(sample)).tolist())
        assert levels is None or values <= ({0, 1} if levels == 2 else {0, 0.5, 1})
        assert 0 <= min(values) <= max(values) <= 1
        assert abs(question.values(sample).mean() - question.truth(drawn)) < 0.07  # six deviations: below 1e-8


@pytest.mark.parametrize("population", ["fair", "p=0.1"])
def test_a_claim_passes_where_an_analyst_wants_it_to(population: str) -> None:
    """The level is public and limits of shares use only the sum, so one claim shows the side of a mean."""
    held = held_with(population)
    for j in range(30):
        guarded = Bit(j).values(held.sample)[1000:]
        passed = held.claim(Bit(j), held.end_for(Bit(j), 0.0), expected=True)
        assert passed == (guarded.sum() >= 1000 * Bit(j).truth(held.population))
    assert not held.missed
    assert held.talk.trail.events > 1  # of 30 halves: below 1e-7


def test_anything_false_that_passes_is_a_miss() -> None:
    held = held_with("fair")
    assert held.claim(Bit(0), 0.1, 0.9, expected=True)
    assert not held.missed
    assert not held.claim_beyond(Bit(0), above=True, expected=False)
    held.sample.bit(1)[1000:] = 1  # far from its truth
    assert held.claim_beyond(Bit(1), above=True, expected=False)
    assert held.missed
    for ask in (
        lambda held: held.challenge(Bit(1), Bit(2)),
        lambda held: held.contest([Bit(1)], Bit(2)) == 0,
        lambda held: held.contest([Bit(1), Bit(2)], None, 10) == 0,
    ):
        held = held_with("fair")
        held.sample.bit(1)[1000:] = 1
        assert ask(held)
        assert held.missed


def test_symbols_follow_the_same_path_as_a_guards() -> None:
    """Claims that pass or fail whatever rows are guarded; the second and the fourth fail, and cost as much."""
    frame = pd.DataFrame({"c": np.arange(1000) % 2})
    talk = Talk(planned(1000, 50))
    with open_guard(frame, ledger=":memory:", questions=50, open=0.5, allow_wide=True) as guard:
        for least in (0.1, 0.8, 0.2, 0.9, 0.05):
            guard.claim("c = 1", between=(least, None))
            talk.ask(Moments(500, 250.0, 250.0), Claim(least, 1.0), levels=2)
        kept = guard.desk.ledger.released(guard.desk.terms)
        assert guard.plan.mechanism == talk.mechanism
    assert [each["passed"] for each in talk.records] == [1, 0, 1, 0, 1]
    for of_guard, of_lab in zip(kept, talk.records, strict=True):
        assert of_guard == pytest.approx(of_lab)
