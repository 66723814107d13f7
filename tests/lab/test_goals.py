"""The figures that were aimed at, as docs/lab.md has them, and the analyst who hides adaptivity inside a round."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afresh.lab import batches
from afresh.lab.coverage import markdown
from afresh.lab.goals import HEADER, goals, lines
from afresh.lab.hiding import conversation
from afresh.lab.population import POPULATIONS, evaluate

PAGE = (Path(__file__).parents[2] / "docs" / "lab.md").read_text()


def test_every_goal_is_reached_and_the_page_has_them() -> None:
    found = goals()
    assert all(each.reached for each in found)
    assert markdown(HEADER, lines(found)) in PAGE


def test_hiding_adaptivity_in_a_round_gains_nothing() -> None:
    """At 95%: 5 or more misses of 6 have probability below 2e-6."""
    assert sum(conversation(300, 31, 0.05, np.random.default_rng([7, i])) for i in range(6)) <= 4


@pytest.mark.parametrize("population", ["fair", "p=0.01", "uneven"])
@pytest.mark.parametrize("analyst", ["last", "every-10", "climbing"])
def test_rounds_of_many_questions_and_their_final_look_hold(analyst: str, population: str) -> None:
    """At 95%: 4 or more misses of 6 have probability below 9e-5. Later rounds have fewer rows in the final look."""
    found = [batches.conversation(analyst, population, 1000, 100, 20, 0.05, (3, i)) for i in range(6)]
    assert sum(each.missed for each in found) <= 3
    assert all(each.final < 0.6 * each.first for each in found)


def test_the_pages_say_what_rounds_of_many_questions_did() -> None:
    page = (Path(__file__).parents[2] / "docs" / "lab-coverage.md").read_text()
    head = markdown(batches.HEADER, []).splitlines()[0]
    lines = [line.strip("| ").split(" | ") for line in page.split(head)[1].split("\n\n")[0].splitlines()[2:]]
    assert {(line[0], line[1]) for line in lines} == {(a, p) for a in batches.ANALYSTS for p in POPULATIONS}
    missed, played = (sum(int(line[place]) for line in lines) for place in (7, 6))
    assert f"missed in {missed} of {played:,} conversations" in " ".join(PAGE.split())
    assert max(int(line[7]) / int(line[6]) for line in lines) <= 0.05


def test_rounds_that_reuse_their_rows_would_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same analyst, if every round saw the same rows: it votes the way these rows look."""
    played, looks = batches.conversation, batches._looks
    rows = slice(0, 200)

    def reused(mechanism: Any, values: Any, look: int) -> Any:
        return looks(mechanism, values if look == 3 else kept[-1][:, rows], look)

    kept: list[Any] = []

    def keeping(questions: Any, sample: Any) -> Any:
        kept.append(evaluate(questions, sample))
        return kept[-1]

    monkeypatch.setattr(batches, "evaluate", keeping)
    monkeypatch.setattr(batches, "_looks", reused)
    assert sum(played("last", "fair", 1000, 200, 5, 0.05, (3, i)).missed for i in range(6)) >= 5
