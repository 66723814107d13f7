"""The range of a number follows from its expression, or has to be said; what is inferred holds on every row."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from afresh.errors import QueryError
from afresh.queries.bounds import range_of
from afresh.queries.canonical import canonical
from afresh.queries.query import make_query
from afresh.queries.tree import Node, Type
from engines import oracle
from engines.nasty import ROWS
from examples import examples
from queries import expressions

SCHEMA = {"a": Type.NUMBER, "p": Type.BOOLEAN, "s": Type.TEXT, "d": Type.DATE, "t": Type.TIMESTAMP}

INFERRED = [
    ("CASE WHEN p THEN 1 ELSE 0 END", (0, 1)),
    ("CASE WHEN p THEN 10 WHEN a > 1 THEN -5 ELSE 2 END", (-5, 10)),
    ("CASE WHEN p THEN 10 WHEN a > 1 THEN -5 END", (-5, 10)),
    ("CAST(p AS DOUBLE)", (0, 1)),
    ("p::int + (a > 3)::int", (0, 2)),
    ("least(greatest(a, 0), 100)", (0, 100)),
    ("greatest(0, least(a, 100))", (0, 100)),
    ("least(greatest(a, 0), 100) / 50 - 1", (-1, 1)),
    ("abs(least(greatest(a, -3), 2))", (0, 3)),
    ("-least(greatest(a, -3), 2)", (-2, 3)),
    ("coalesce(least(greatest(a, 0), 100), 200)", (0, 100)),  # greatest skips NULL
    ("coalesce(a % 7, 20)", (-7, 20)),
    ("sign(a)", (-1, 1)),
    ("sign(a) * 3 + 1", (-2, 4)),
    ("a % 7", (-7, 7)),
    ("abs(a) % 7", (0, 7)),
    ("month(d)", (1, 12)),
    ("quarter(t)", (1, 4)),
    ("extract(dow from d)", (0, 6)),
    ("extract(isodow from d)", (1, 7)),
    ("hour(t) * 60 + minute(t)", (0, 23 * 60 + 59)),
    ("least(length(s), 10)", (0, 10)),
    ("round(least(greatest(a, 0), 9.6))", (0, 10)),
    ("floor(least(greatest(a, 0.5), 9.6))", (0, 9)),
    ("ceil(least(greatest(a, 0.5), 9.4))", (1, 10)),
    ("sqrt(least(greatest(a, 0), 100))", (0, 10)),
    ("sqrt(least(a, 100))", (0, 10)),
    ("exp(least(greatest(a, -1), 0))", (math.exp(-1), 1)),
    ("ln(least(greatest(a, 1), 10))", (0, math.log(10))),
    ("power(least(greatest(a, -3), 2), 2)", (0, 9)),
    ("power(least(greatest(a, -3), 2), 3)", (-27, 8)),
    ("power(least(greatest(a, 0), 2), 0.5)", (0, math.pow(2, 0.5))),
    ("nullif(sign(a), 0)", (-1, 1)),
    ("1 / (2 + sign(a))", (1 / 3, 1)),
]


@pytest.mark.parametrize(("text", "bounds"), INFERRED)
def test_inferred(text: str, bounds: tuple[float, float]) -> None:
    assert make_query(text, SCHEMA).bounds == bounds
    assert make_query(text, SCHEMA).digest == make_query(text, SCHEMA, bounds).digest


@pytest.mark.parametrize(
    "text",
    [
        *("a", "a + 1", "abs(a)", "length(s)", "least(a, 3)", "greatest(a, 3)", "sqrt(a)", "exp(a)", "ln(a)"),
        *("CASE WHEN p THEN 1 ELSE a END", "coalesce(a, 0)", "TRY_CAST(s AS DOUBLE)", "year(d)", "d - '2025-01-31'"),
        *("date_diff('hour', t, '2025-01-31')", "1 / a", "1 / sign(a)", "power(sign(a), -1)", "sign(a) * a", "a % a"),
        *("ln(sign(a))", "least(a, a)", "1e308 * (2 + 2 * sign(a))", "exp(1000 * sign(a))"),
        *("CASE WHEN p THEN 1.7e308 ELSE -1.7e308 END",),
    ],
)
def test_not_inferred(text: str) -> None:
    with pytest.raises(QueryError, match=r"has no bounds.*write bounds=\(low, high\), or --bounds LOW"):
        make_query(text, SCHEMA)
    assert make_query(text, SCHEMA, (0, 1)).bounds == (0, 1)


def test_a_number_of_one_value_or_none_has_no_scale() -> None:
    for text in ("3", "CASE WHEN p THEN 1 END", "sign(2)"):
        with pytest.raises(QueryError, match=r"has no value but .* ELSE 0"):
            make_query(text, SCHEMA)
    for text in ("1 / 0", "CAST(NULL AS DOUBLE)", "ln(-1) + a * 0 + nullif(0, 0)"):
        with pytest.raises(QueryError, match="NULL on every row"):
            make_query(text, SCHEMA)


@examples(3)
@given(expressions.numbers(3))
def test_ranges_hold_on_every_row(tree: Node) -> None:
    """Also of what is asked with other bounds; ln and the like may round one unit beyond."""
    for each in (tree, canonical(tree)):
        found = range_of(each)
        for row in ROWS:
            value = oracle.evaluate(each, row)
            if value is None:
                assert found.may_be_null
            else:
                slack = 1e-12 * abs(value)
                assert found.low - slack <= value <= found.high + slack
