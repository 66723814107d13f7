"""Between any bounds a number becomes one in [0, 1], however it is rounded, and halves of a group add up to at most 1.

Every row is a group of its own here, so that a sum is its value.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.moments import Aim, Grouped
from afresh.queries.query import make_query, parse_group, split_by_group
from afresh.theory.numbers import aim_in_group, mean_square
from engines import oracle

BOUNDS = [
    (1e16, 1e16 + 2),  # three numbers
    (1 - 2.0**-53, 1.0),
    (1.5 + 2.0**-52, 1.5 + 2.0**-51),
    (-1.0, 1e16),
    (-1e308, 7e307),
    (1e308, 1.7e308),
    (0.0, 5e-324),
    (-1e-310, 1e-310),
    (0.1, 0.3),
    (0.0, 1 / 3),
    (1e-300, 1.0),
]


def near(low: float, high: float) -> list[float]:
    """Numbers at both bounds, beside them and between them, in order."""
    between = [low + (high - low) * share for share in (1e-300, 1e-17, 0.1, 1 / 3, 0.5, 0.7, 1 - 2.0**-53)]
    beside = [math.nextafter(end, side) for end in (low, high) for side in (-math.inf, math.inf)]
    return sorted({-1.7e308, low, high, 1.7e308, *between, *beside})


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("expression", ["x", "abs(x) * sign(x)"])  # also as a computed number
def test_every_row_is_in_the_unit_interval(bounds: tuple[float, float], expression: str) -> None:
    values = near(*bounds)
    table = pa.table({"id": range(len(values) + 1), "x": [*values, None]})
    engine = EmbeddedEngine(table)
    query = make_query(expression, engine.schema, bounds, bounds[1])
    groups = [parse_group(f"id = {place}", engine.schema) for place in range(len(values) + 1)]
    halves = [half for group in groups for half in split_by_group(query, group)]
    found = [moments.total for moments in engine.moments(halves)]
    alone = [m.total for m in engine.moments([replace(query, group=group) for group in groups])]
    engine.close()
    inside, rest = found[::2], found[1::2]
    assert alone == inside
    assert all(0 <= each <= 1 for each in found)
    assert inside[:-1] == sorted(inside[:-1])
    assert (inside[0], inside[values.index(bounds[1])], inside[-1]) == (0.0, 1.0, 1.0)
    for one, other in zip(inside, rest, strict=True):  # a millionth of the slack that vectors of shares have
        assert Fraction(one) + Fraction(other) <= 1 + Fraction(1, 2**53)
    meant = oracle.psi(query, query.expression, None, [{"x": each} for each in [*values, None]])
    assert inside == pytest.approx(meant, abs=1e-12)


def test_bounds_with_few_numbers_between_them_leave_as_many_steps() -> None:
    """Nothing is lost beyond what the numbers themselves are."""
    engine = EmbeddedEngine(pa.table({"id": [0, 1, 2], "x": [1e16, 1e16 + 2, 1e16 + 4]}))
    query = make_query("x", engine.schema, (1e16, 1e16 + 4))
    groups = [parse_group(f"id = {place}", engine.schema) for place in range(3)]
    assert [m.total for m in engine.moments([replace(query, group=each) for each in groups])] == [0.0, 0.5, 1.0]
    engine.close()


ROWS = [(value, inside) for value in (0.0, 2.0**-60, 0.3, 0.5, 0.7, 1 - 2.0**-53, 1.0) for inside in (True, False)]


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_what_answers_about_a_group_average_is_in_the_unit_interval(second: bool, large: bool) -> None:
    """Row by row in exact arithmetic; and sums and squares about the center are what rows give, but for rounding."""
    total = sum(value for value, inside in ROWS if inside)
    squares = sum(value * value for value, inside in ROWS if inside)
    moments = Grouped(len(ROWS), total, squares, len(ROWS) // 2, second)
    for first, share in itertools.product((0.0, 2.0**-40, 0.1, 1 / 3, 0.5, 1 - 2.0**-40, 1.0), repeat=2):
        aim = Aim(*aim_in_group(first, share, second=second, large=large))
        a, g, d, centre = map(Fraction, aim)
        exact = [(a * Fraction(value) + g) * inside + d for value, inside in ROWS]
        assert all(0 <= each <= 1 for each in exact)
        found, around = moments.of(aim), sum((each - centre) ** 2 for each in exact) / len(ROWS)
        assert found.mean == pytest.approx(float(sum(exact) / len(ROWS)), abs=1e-15)
        most = max(centre, 1 - centre) ** 2
        square = mean_square(found.mean, found.squares / found.n, float(centre))
        assert 0 <= square <= 1
        assert square == pytest.approx(float(around / most), abs=1e-14)
