"""The half-widths that were set as goals for the narrower ways of asking."""

import math

import pytest

from afresh.theory.exact import half_width
from afresh.theory.figures import FAILURE, figures
from afresh.theory.rounds import capped_share, looks


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.task)
def test_goals_are_reached_with_little_to_spare(figure: object) -> None:
    assert figure.reached  # type: ignore[attr-defined]
    assert figure.found > 0.85 * figure.most  # type: ignore[attr-defined] # else the goal is an old one


def test_rounds_against_the_rule_of_thumb() -> None:
    """sqrt(r ln(2k/beta)/(2n)) is Hoeffding's; exact binomial limits are an eighth narrower."""
    for rows, rounds in ((10**5, 10), (10**4, 10)):
        rule = math.sqrt(rounds * math.log(2 * 1000 / FAILURE) / (2 * rows))
        exact = float(half_width("two-valued", rows // rounds, FAILURE / 1000, 0.5))
        assert 0.86 * rule < exact < 0.9 * rule


def test_what_a_final_look_costs_before_and_gives_at_the_end() -> None:
    """(1e5, 1000), 10 rounds: .0203 without one, .0211 with half the share kept, then .0067 for round 1."""
    share = capped_share(FAILURE, 1000)
    now, later = looks(share, 0.5)
    assert float(half_width("two-valued", 10**4, share, 0.5)) == pytest.approx(0.0203, abs=1e-4)
    assert float(half_width("two-valued", 10**4, now, 0.5)) == pytest.approx(0.0211, abs=1e-4)
    assert float(half_width("two-valued", 10**5, later, 0.5)) == pytest.approx(0.0067, abs=1e-4)
    # Keeping a tenth costs next to nothing now, and a tenth of the width then.
    now, later = looks(share)
    assert float(half_width("two-valued", 10**4, now, 0.5)) < 0.0205
    assert float(half_width("two-valued", 10**5, later, 0.5)) < 0.0073
