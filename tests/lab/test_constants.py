"""The search for the constants of checked answers: the constants in use come first, and all meet the same samples."""

from pathlib import Path

import numpy as np
import pytest

from afresh.lab import constants
from afresh.lab.analysts import ANALYSTS, LOOKING
from afresh.lab.constants import HEADER, SETTINGS, lines, play, search, text
from afresh.lab.simulation import Trial, run
from afresh.theory.checked import FOUND, Constants, expected_half_width, plan_checked

PAGE = (Path(__file__).parents[2] / "docs" / "lab.md").read_text()


def test_all_analysts_play_for_whom_the_sizes_make_sense() -> None:
    assert {*constants.ANALYSTS} == {*ANALYSTS, *LOOKING} - {"reconstructing", "scientist"}


def test_the_constants_in_use_are_played_as_the_lab_plays_them() -> None:
    assert SETTINGS[0] == FOUND
    found = play(FOUND, ["every-10"], 600, 30, range(1, 3))
    usual = run(Trial("checked", "every-10", "fair", 600, 30), range(1, 3))
    assert found.widths["every-10"].tolist() == usual["mean_half_width"]
    assert found.worst == "every-10"


def test_the_best_meet_new_samples() -> None:
    wider = FOUND._replace(noise=0.3)  # by 8% while nothing fails, so it is screened alone
    screened, best = search(1, 2, 600, 30, (FOUND, wider, FOUND._replace(growth=0.08)))
    assert [each.constants.noise for each in screened] == [0.22, 0.3, 0.22]
    assert [each.constants.growth for each in best] == [0.05, 0.08]
    assert {*best[0].widths} <= {*constants.ANALYSTS}
    again = play(FOUND, [best[0].worst], 600, 30, range(1, 3))
    assert np.array_equal(best[0].widths[best[0].worst], again.widths[best[0].worst])
    for found in (screened, best):
        assert all(len(line) == len(HEADER) for line in lines(found, 600, 30))


def test_without_a_second_part_it_only_screens() -> None:
    assert len(list(search(1, 0, 200, 10, (FOUND,)))) == 1


@pytest.mark.parametrize("setting", SETTINGS, ids=text)
def test_the_page_has_every_setting(setting: Constants) -> None:
    """With its half-width while nothing fails."""
    calm = expected_half_width(plan_checked(10_000, 1000, 0.05, setting))
    name = f"**{text(setting)}**" if setting == FOUND else text(setting)
    assert f"| {name} | {calm:.4f}".replace("| 0.", "| .") in PAGE
