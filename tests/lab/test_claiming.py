"""Analysts of open rows and of symbols, with fixed seeds: what is certified is seldom false."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from afresh.lab.claiming import ANALYSTS, HEADER, OWN, PAIRS, WAYS, Cell, cells, conversation, lines, misses
from afresh.lab.coverage import clopper_pearson, markdown
from afresh.lab.population import POPULATIONS
from afresh.lab.simulation import Trial, run

DOCS = Path(__file__).parents[2] / "docs"
LAB = (DOCS / "lab.md").read_text()
HEAD = markdown(HEADER, []).splitlines()[0]
TABLE = [
    line.strip("| ").split(" | ")
    for line in (DOCS / "lab-coverage.md").read_text().split(HEAD)[1].split("\n\n")[0].splitlines()[2:]
]


@pytest.mark.parametrize(("way", "analyst"), PAIRS)
def test_what_is_certified_is_seldom_false(way: str, analyst: str) -> None:
    """At 95%: more than 7 of 12 conversations with a miss have probability below 2e-8; in any test, below 1e-6."""
    missed = [misses(Cell(way, analyst, name, 200, 10), 0.05, 2, seed=i) for i, name in enumerate(POPULATIONS)]
    assert sum(missed) <= 7


@pytest.mark.parametrize(("way", "analyst"), [("claims", "last"), ("challenges", "last"), ("claims", "every-10")])
def test_levels_that_forget_do_not_hold(way: str, analyst: str) -> None:
    """The same conversations, if passes and failures cost nothing: the analysts do learn something.

    Each has a miss with probability above .9 (all of 100 had one); fewer than 2 in 8, below 1e-6.
    """
    cell = Cell(way, analyst, "fair")
    assert misses(cell, 0.05, 8, forgetful=True) >= 2
    assert misses(cell, 0.05, 1) == 0


def test_ties_are_accepted_now_and_then_so_the_test_can_see_misses() -> None:
    """At 50% allowed, ties get in sometimes: the level of a gate is not vacuous.

    More than 50 of 60 have probability below 1e-7, and none below 1e-6: of 400 conversations, 108 had a miss.
    """
    assert 0 < misses(Cell("challenges", "fixed", "fair", 300, 20), 0.5, 60) <= 50


def test_every_analyst_meets_every_population_in_every_way() -> None:
    found = {each[:3] for each in cells()}
    assert found >= {(way, name, population) for way in WAYS for name in ANALYSTS for population in POPULATIONS}
    assert found >= {(*pair, population) for pair in OWN for population in POPULATIONS}


def test_a_line_is_as_long_as_the_header() -> None:
    done = list[int]()
    found = list(lines([Cell("claims", "last", "fair", 200, 6)], 2, done.append))
    assert [len(line) for line in found] == [len(HEADER)]
    assert sum(done) == 2 + 2 + 1


def test_a_conversation_can_be_held_again() -> None:
    cell = Cell("contests", "gambling", "differences", 300, 20)
    one, again = (conversation(cell, 0.05, (7, 1)) for _ in range(2))
    assert [each["winner"] for each in one.talk.records] == [each["winner"] for each in again.talk.records]


def test_the_page_has_every_cell_and_none_misses_more_than_it_may() -> None:
    """A cell may have more misses than expected: more than one in 10,000 such cells would have, and it fails."""
    assert [tuple(line[:3]) for line in TABLE] == [each[:3] for each in cells()]
    for line in TABLE:
        repeats = int(line[5])
        for place, failure in ((6, 0.05), (8, 0.5)):
            missed = int(line[place])
            assert line[place + 1] == f"{clopper_pearson(repeats - missed, repeats)[0]:.3f}"
            assert binom.sf(missed - 1, repeats, failure) > 1e-4, line


@pytest.mark.parametrize("way", WAYS)
def test_the_summary_is_that_of_the_table(way: str) -> None:
    own = [line for line in TABLE if line[0] == way]
    played = sum(int(line[5]) for line in own)
    at_95, at_50 = (sum(int(line[place]) for line in own) for place in (6, 8))
    forgot = [sum(int(each) for each in parts) for parts in zip(*(line[10].split("/") for line in own), strict=True)]
    said = [f"{played:,}", f"{at_95:,}", f"{at_50:,}", f"{forgot[0]:,} of {forgot[1]:,}"]
    assert re.search(rf"^\| {way} \| {len(own)} \| {' .* '.join(map(re.escape, said))} \|$", LAB, re.MULTILINE)


@pytest.mark.parametrize("mechanism", ["open-half", "checked"])
@pytest.mark.parametrize("population", ["fair", "differences"])
def test_whoever_overfits_the_open_rows_is_found_out(mechanism: str, population: str) -> None:
    columns = run(Trial(mechanism, "overfitting", population, 1000, 40), range(4))
    assert max(columns["misses"]) == 0
    if (mechanism, population) == ("open-half", "fair"):  # its votes look good where it can see, and fail
        calm = run(Trial(mechanism, "fixed", population, 1000, 40), range(4))
        assert np.mean(columns["mean_half_width"]) > 1.2 * np.mean(calm["mean_half_width"])


def test_checked_is_narrow_against_attacks() -> None:
    """At (10^4, 1000), by the lab's worst analyst there; one conversation."""
    columns = run(Trial("checked", "gambling", "fair", 10_000, 1000), range(1))
    assert columns["mean_half_width"][0] <= 0.118
    assert columns["misses"] == [0]
