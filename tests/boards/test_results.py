"""Tables of per-item results that are there already."""

from pathlib import Path

import numpy as np
import pytest

from afresh.boards import made_up_results, read_results, table_of_results
from afresh.boards.results import ItemResults
from afresh.errors import DataError, InvalidArgument


def test_files_of_results_are_read_and_ranked(tmp_path: Path) -> None:
    made = made_up_results(models=4, items=300, spread=2.0, seed=1)
    paths = made.write(tmp_path)
    read = read_results(dict(zip(made.names, paths, strict=True)))
    assert read.names == made.names
    assert np.array_equal(read.scores, made.scores)
    table = table_of_results(read, name="bench")
    assert table.separated > 2
    assert "by" not in str(table).split("\n")[2].split()
    assert "nobody chose" in str(table)
    best = int(made.scores.mean(axis=1).argmax())
    assert made.names[best] in table.best
    other = read_results({"a": {"x": 1, "y": 0.5}, "b": {"y": 0.25, "x": [1, 0]}})
    assert other.scores.tolist() == [[1, 0.5], [0.5, 0.25]]
    assert len(table_of_results(other).best) == 2


def test_what_cannot_be_ranked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="different items: 'z'"):
        read_results({"a": {"x": 1, "y": 0}, "b": {"x": 1, "y": 0, "z": 1}})
    with pytest.raises(DataError, match="score of item 'x' is not a number"):
        read_results({"a": {"x": float("nan")}})
    with pytest.raises(InvalidArgument, match="results"):
        read_results({})
    with pytest.raises(InvalidArgument, match="all pairs"):
        table_of_results(ItemResults(("m",) * 2001, ("x",), np.zeros((2001, 1))))


@pytest.mark.parametrize("binary", [True, False])
def test_places_hold_at_once(binary: bool) -> None:
    """At 50% in 60 runs: more than 52 failures have probability below 1e-7 if half of the runs may fail."""
    rng, failed = np.random.default_rng(11), 0
    truth = np.repeat([0.3, 0.32, 0.4, 0.6], 2)
    for _ in range(60):
        errors = (rng.random((8, 200)) < truth[:, None]).astype(np.float64)
        if not binary:
            errors = (errors + truth[:, None]) / 2
        table = table_of_results(
            ItemResults(tuple("abcdefgh"), tuple(map(str, range(200))), 1 - errors), confidence=0.5
        )
        for each in table:
            own = truth["abcdefgh".index(each.name)]
            first, last = 1 + (truth < own).sum(), (truth <= own).sum()
            assert each.places is not None
            if first < each.places[0] or last > each.places[1]:
                failed += 1
                break
    assert failed <= 52
