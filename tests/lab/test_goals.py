"""The figures that were aimed at, as docs/lab.md has them, and the analyst who hides adaptivity inside a round."""

from pathlib import Path

import numpy as np

from afresh.lab.coverage import markdown
from afresh.lab.goals import HEADER, goals, lines
from afresh.lab.hiding import conversation

PAGE = (Path(__file__).parents[2] / "docs" / "lab.md").read_text()


def test_every_goal_is_reached_and_the_page_has_them() -> None:
    found = goals()
    assert all(each.reached for each in found)
    assert markdown(HEADER, lines(found)) in PAGE


def test_hiding_adaptivity_in_a_round_gains_nothing() -> None:
    """At 95%: 5 or more misses of 6 have probability below 2e-6."""
    assert sum(conversation(300, 31, 0.05, np.random.default_rng([7, i])) for i in range(6)) <= 4
