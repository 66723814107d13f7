"""Categories that are one value in two spellings are refused, for nothing: no row may count twice at one price."""

import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh.errors import InvalidArgument
from afresh.models.labels import Labels, check_classes
from afresh.queries.query import make_query
from afresh.queries.tree import Type
from afresh.statistics import GroupMeans, Histogram, Measures

SCHEMA: dict[str, Type | None] = {
    "x": Type.NUMBER,
    "t": Type.TEXT,
    "d": Type.DATE,
    "m": Type.TIMESTAMP,
    "b": Type.BOOLEAN,
}
ROWS = 3000
FRAME = pd.DataFrame(
    {
        "x": np.resize([0.0, -0.0, 1.0, 2.0], ROWS),
        "t": np.resize(["a", "\u00e9", "e\u0301"], ROWS),
        "d": np.resize([date(2026, 1, 1), date(2026, 1, 2)], ROWS),
        "m": np.resize(np.array(["2026-01-01", "2026-01-01T12"], "datetime64[us]"), ROWS),
        "b": np.resize([True, False, False], ROWS),
    }
)


@pytest.fixture(scope="module")
def guard() -> Iterator[afresh.Guard]:
    with afresh.open(FRAME, questions=100, method="symmetrized", ledger=":memory:") as guard:
        yield guard


@pytest.mark.parametrize(
    ("by", "categories"),
    [
        ("x", [0.0, -0.0]),
        ("x", [-0.0, 0, 1]),
        ("x", [1, 1.0]),
        ("x", [1, Decimal("1.00")]),
        ("x", [Fraction(1, 2), 0.5]),
        ("x", [np.float64(1), np.int64(1)]),
        ("x", [np.float32(0.5), 0.5]),
        ("x", [1, True]),
        ("x", [2**53, 2**53 + 1]),
        ("x", ["1", 1]),
        ("t", ["a", np.str_("a")]),
        ("d", ["2026-01-01", "2026-01-01 00:00:00"]),
        ("m", ["2026-01-01", "2026-01-01T00:00:00"]),
        ("m", ["2026-01-01 00:00:00", "2026-01-01 00:00:00.000000"]),
    ],
    ids=str,
)
def test_one_value_in_two_spellings_is_refused(guard: afresh.Guard, by: str, categories: list[Any]) -> None:
    for ask in (guard.measure, guard.price):
        with pytest.raises(InvalidArgument, match=r"categories == .*different from each other"):
            ask(GroupMeans("b", by, [*categories, "z" if by == "t" else "2027-01-01" if by in "dm" else 7]))
    assert guard.budget.spent == 0


@pytest.mark.parametrize("category", [math.nan, math.inf, None, date(2026, 1, 1), datetime(2026, 1, 1), [1], b"a"])
def test_what_no_row_can_equal_is_refused(category: Any) -> None:
    with pytest.raises(InvalidArgument, match="a string, a finite number, True or False"):
        GroupMeans("b", "x", [1, category])


def test_two_texts_that_look_alike_are_two(guard: afresh.Guard) -> None:
    """One with an accented letter, one with a letter and an accent: no rule here knows what a reader would see."""
    before = guard.budget.spent
    found = guard.measure(GroupMeans("b", "t", ["\u00e9", "e\u0301"]))
    assert isinstance(found, Measures)
    assert len(found) == 2
    assert guard.budget.spent == before + 4  # one by one, as a database might compare them alike


def test_zero_is_one_category_whatever_its_sign(guard: afresh.Guard) -> None:
    """Half of the rows are zeros; noise is beyond 7 deviations with probability below 1e-10."""
    one, other = (guard.measure(GroupMeans("b", "x", [zero, 1, 2])) for zero in (0.0, -0.0))
    assert isinstance(one, Measures)
    assert isinstance(other, Measures)
    assert other.charged == 0  # the same question
    assert one["0.0"].interval == other["-0.0"].interval


NUMBERS: list[Any] = [
    0.0,
    -0.0,
    1,
    1.0,
    2.0,
    Decimal("0.1"),
    0.1,
    np.float32(0.1),
    1 + 1e-9,
    1.00000499999,
    1.00000500001,
]
NUMBERS += [2**53, 2**53 + 1, 2.0**53 + 2, 5e-324, 1e-46, 1e39, 1e40, -1e40, Fraction(1, 3), 1 / 3]


@given(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=5))
def test_categories_that_are_asked_at_once_exclude_one_another(categories: list[Any]) -> None:
    """In double precision, in which questions are, and in single precision, should a database compare in that."""
    try:
        means = GroupMeans("b", "x", categories)
    except InvalidArgument:
        assert len({float(each) for each in categories}) < len(categories) or len(set(map(str, categories))) < len(
            categories
        )
        return
    assert len({float(each) for each in categories}) == len(categories)
    if means.coordinates(SCHEMA) is not None:
        with np.errstate(over="ignore"):
            single = [float(np.float32(float(each))) for each in categories]
        assert len(set(single)) == len(single)


def test_edges_and_lists_know_one_zero() -> None:
    wrong: list[Any] = [[0.0, -0.0, 1], [0, 0.0], [1, Decimal(1)], [2**53, 2**53 + 1], [False, True], [0, math.nan]]
    for edges in wrong:
        with pytest.raises(InvalidArgument, match="increasing order"):
            Histogram("x", edges)
    for one, other in (("x IN (0, -0.0)", "x = 0"), ("x IN (1, 1.0, 1e0, 2)", "x IN (2, 1)"), ("x IN (-0.0)", "x = 0")):
        assert make_query(one, SCHEMA).digest == make_query(other, SCHEMA).digest
    assert make_query("t = '\u00e9'", SCHEMA).digest != make_query("t = 'e\u0301'", SCHEMA).digest


@pytest.mark.parametrize(
    "classes",
    [[0.0, -0.0], [1, True], [1, "1"], ["True", True], [2**53, 2**53 + 1, 0.5], [math.nan, 1], [1, np.int8(1)]],
)
def test_classes_that_are_one_are_refused(classes: list[Any]) -> None:
    with pytest.raises(InvalidArgument, match=r"classes == .*all different"):
        check_classes(classes)


@pytest.mark.parametrize(
    "classes", [[0, 1], ["a", "b"], [True, False], [0.5, 2**53], [date(2026, 1, 1), date(2026, 1, 2)]]
)
def test_classes_are_found_whatever_the_type_of_labels(classes: list[Any]) -> None:
    known = check_classes(classes)
    assert known is not None
    for values in (np.array([*classes, *classes]), np.array([*classes, *classes], dtype=object)):
        assert Labels(values, known).codes.tolist() == [*range(len(classes))] * 2
