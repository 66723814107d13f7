"""The coverage table in the docs: complete, and summed up rightly."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from afresh.lab.analysts import ANALYSTS, BINNING
from afresh.lab.coverage import HEADER, SUMMARY, Cell, clopper_pearson, markdown, summary, trials
from afresh.lab.mechanisms import CERTIFIED, MECHANISMS
from afresh.lab.session import AtOnce

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "lab-coverage.md").read_text()
OPENED = ("development", "exam")  # ways of `open-half`, measured at the smaller size alone; the page says so
RNG = np.random.default_rng(1)
AT_95, AT_50 = PAGE.split("## At 50% confidence")


MEASURED = [name for name in CERTIFIED if name not in OPENED]


def cells(text: str) -> list[Cell]:
    """A cell that stands in two tables counts once, with the more conversations."""
    found: dict[tuple[str, ...], Cell] = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.strip("|").split("|")]
        if len(parts) == len(HEADER) and re.fullmatch(r"\d+/\d+", parts[5]):
            held, repeats = map(int, parts[5].split("/"))
            n, k = (int(part.replace(",", "")) for part in parts[3:5])
            worst, rms, width = map(float, parts[7:])
            low, high = clopper_pearson(held, repeats)
            assert parts[6] == f"{low:.3f}"
            mechanism, analyst, population = parts[:3]
            cell = Cell(mechanism, analyst, population, n, k, repeats, repeats - held, low, high, worst, rms, width)
            before = found.setdefault(tuple(parts[:5]), cell)
            if before.repeats < repeats:
                found[tuple(parts[:5])] = cell
    return list(found.values())


def test_the_summaries_are_those_of_the_tables() -> None:
    for text in (AT_95, AT_50):
        assert markdown(SUMMARY, summary(cells(text))) in text
    assert markdown(SUMMARY, summary(cells(AT_95))) in (DOCS / "lab.md").read_text()


@pytest.mark.parametrize(("n", "k"), [(2000, 200), (10_000, 1000)])
def test_the_table_is_complete(n: int, k: int) -> None:
    """Every certified method and the plain mean, every analyst for whom the size makes sense, every population."""
    usual = [name for name in ANALYSTS if name != "scientist"]
    methods = [*MEASURED, *OPENED] if n == 2000 else MEASURED
    wanted = {tuple(t.names.values()) for t in trials(n, k, [*methods, "empirical"], usual)}
    at_once = [name for name in methods if isinstance(MECHANISMS[name](2000, 20, 0.05).start(RNG), AtOnce)]
    wanted |= {tuple(t.names.values()) for t in trials(n, k, [*at_once, "empirical"], BINNING)}
    assert wanted <= {(c.mechanism, c.analyst, c.population) for c in cells(AT_95) if (c.n, c.k) == (n, k)}


@pytest.mark.parametrize(("analyst", "n", "k"), [("scientist", 4000, 100), ("reconstructing", 500, 1000)])
def test_analysts_with_their_own_rows_are_in_the_table(analyst: str, n: int, k: int) -> None:
    wanted = {tuple(t.names.values()) for t in trials(n, k, [*MEASURED, "empirical"], [analyst])}
    assert wanted <= {(c.mechanism, c.analyst, c.population) for c in cells(AT_95) if (c.n, c.k) == (n, k)}


def test_no_certified_method_falls_below_its_confidence_and_the_plain_mean_does() -> None:
    """Exact intervals may miss as often as they say: more misses in a cell than one in 10,000 such cells would have."""
    for text, confidence in ((AT_95, 0.95), (AT_50, 0.5)):
        for cell in cells(text):
            if cell.mechanism in CERTIFIED:
                assert binom.sf(cell.missed - 1, cell.repeats, 1 - confidence) > 1e-4, cell
    failed = [c for c in cells(AT_95) if c.mechanism == "empirical" and c.high < 0.95]
    assert {c.analyst for c in failed} >= {"selection", "last", "squares", "every-10", "gambling", "reconstructing"}


def test_guess_and_check_is_as_narrow_as_asked_for() -> None:
    """Against every analyst of its tables: .045 at (10^5, 1000) and .135 at (10^4, 1000), with either guesser."""
    most = {(100_000, 1000): 0.045, (10_000, 1000): 0.135}
    attacks = {name for name in ANALYSTS if name not in ("scientist", "reconstructing")}
    for size, width in most.items():
        for guesser in ("", "-calibrated"):
            own = [c for c in cells(AT_95) if c.mechanism == f"guess-and-check{guesser}" and (c.n, c.k) == size]
            assert {c.analyst for c in own} == attacks
            assert max(c.half_width for c in own) <= width
