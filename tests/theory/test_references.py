import math

import numpy as np
import pytest

from afresh.theory.references import fixed_questions_half_width, jung_error, main_theorem_error, rogers_half_width
from oracle import reference, split


@pytest.mark.parametrize(("n", "k"), [(10**4, 100), (10**5, 1000), (10**6, 10**4)])
def test_against_the_oracle(n: int, k: int) -> None:
    assert main_theorem_error(n, k, 0.05, 0.5) == pytest.approx(reference.paper_eq3(0.5, n, k, 0.05), rel=1e-12)
    assert fixed_questions_half_width(n, k, 0.05, 0.1) == pytest.approx(
        split.no_adaptivity_half_width(0.1, n, k, 0.05), rel=1e-9
    )
    best = reference.jung_half_width(n, k, 0.05)[0]
    assert best * (1 - 1e-6) <= jung_error(n, k, 0.05) <= best * 1.005


def test_the_printed_figures() -> None:
    assert jung_error(10**6, 10**4, 0.05) == pytest.approx(0.079, abs=6e-4)
    assert jung_error(10**5, 1000, 0.05) == pytest.approx(0.135, abs=5e-4)


@pytest.mark.parametrize(("n", "k", "failure"), [(10**4, 100, 0.05), (10**5, 1000, 0.01), (10**6, 10**4, 0.05)])
def test_rogers_against_a_grid(n: int, k: int, failure: float) -> None:
    rho = np.geomspace(1e-12, 1e-2, 1500)[:, None]
    lam = 1 / (1 + np.exp(-np.linspace(-4, 8, 500)))
    square = (2 * rho * k * n - np.log1p(-lam)) / (4 * n * lam)
    widths = np.sqrt(2 * square / failure) + np.sqrt(math.log(4 * k / failure) / rho) / n
    assert rogers_half_width(n, k, failure) <= widths.min() <= rogers_half_width(n, k, failure) * 1.001
