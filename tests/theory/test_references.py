import pytest

from afresh.theory.references import fixed_questions_half_width, jung_error, main_theorem_error
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
