"""The literature, small: the full figures are in docs/lab.md."""

import numpy as np
import pytest

from afresh.lab.figures import SELECTED, feature_selection, ladder, published_jung_error


def test_feature_selection_overfits_the_holdout() -> None:
    """n = d = 1500 in place of 10,000, for which Thresholdout's constants are not meant; fixed seed."""
    curves = feature_selection(1500, 1500, 0, np.random.default_rng(1))
    at = SELECTED.index(70)
    assert curves["holdout: reported"][at] > 0.58
    assert abs(curves["holdout: fresh"][at] - 0.5) < 0.05


def test_boosting_attack_on_a_leaderboard() -> None:
    """Published: .467 .452 .441 .427, and .490 .486 .490 .484 for the Ladder. Ten repeats, sd about .003."""
    errors = ladder(10, 2018)
    assert errors["holdout"] == pytest.approx([0.467, 0.452, 0.441, 0.427], abs=0.009)
    assert errors["ladder-free"] == pytest.approx([0.490, 0.486, 0.490, 0.484], abs=0.014)


def test_jung_bound_as_published() -> None:
    assert published_jung_error(10**6, 10**4, 0.05) == pytest.approx(0.096, abs=5e-4)
