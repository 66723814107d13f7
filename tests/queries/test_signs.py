"""Without parentheses a text means what it means in DuckDB, whichever version of sqlglot reads it.

Versions differ in what binds more tightly: 30.13 reads `a + b % c` as `(a + b) % c`, 30.23 `p = q IS NULL` as
`p = (q IS NULL)`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import duckdb
import pytest

from afresh.queries.parse import parse
from afresh.queries.tree import Type
from engines import oracle

NUMBERS, BOOLEANS = ("a", "b", "c"), ("p", "q", "r")
SCHEMA: dict[str, Type | None] = {**dict.fromkeys(NUMBERS, Type.NUMBER), **dict.fromkeys(BOOLEANS, Type.BOOLEAN)}
# every combination of three numbers, and of three truths
ROWS = [
    dict(zip(SCHEMA, (*numbers, *truths), strict=True))
    for numbers, truths in zip(
        itertools.product((2.0, 3.0, 5.0), repeat=3), itertools.product((True, False, None), repeat=3), strict=True
    )
]
ARITHMETIC, COMPARISONS, LOGIC = "+-*/%^", ("<", "<=", "=", "<>", ">", ">="), ("AND", "OR")
TESTS = ("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE")


def texts() -> Iterator[str]:
    """Every two constructs, side by side."""
    for one, other in itertools.product(ARITHMETIC, repeat=2):
        yield from (f"a {one} b {other} c", f"a {one} -b {other} c", f"-a {one} b {other} c")
    for sign, than in itertools.product(ARITHMETIC, COMPARISONS):
        yield from (f"a {sign} b {than} c", f"a {than} b {sign} c", f"NOT a {than} b {sign} c")
    for sign in ARITHMETIC:
        yield from (f"a {sign} b IS NULL", f"a {sign} b::double", f"a {sign} b IN (6, 8)", f"NOT a {sign} b NOT IN (6)")
        yield from (f"a {sign} b BETWEEN b AND c", f"a BETWEEN b {sign} c AND a", f"a BETWEEN b AND a {sign} c")
    for than, word in itertools.product(COMPARISONS, LOGIC):
        yield from (f"a {than} b {word} p", f"p {word} a {than} b", f"NOT a {than} b {word} p")
    for than, test in itertools.product(COMPARISONS, TESTS):
        yield from (f"a {than} b {test}", f"NOT a {than} b {test}")
    for than, test in itertools.product(("=", "<>"), TESTS):
        yield from (f"p {than} q {test}", f"NOT p {than} q {test}", f"p {test} {than} q")
    for one, other in itertools.product(LOGIC, repeat=2):
        yield from (f"p {one} q {other} r", f"NOT p {one} q {other} r", f"p {one} NOT q {other} r")
    for word, test in itertools.product(LOGIC, TESTS):
        yield from (f"p {word} q {test}", f"p {test} {word} q", f"NOT p {test} {word} q", f"p {word} NOT q {test}")
    for word in LOGIC:
        yield from (f"a BETWEEN b AND c {word} p", f"NOT a BETWEEN b AND c {word} p", f"p {word} a NOT BETWEEN b AND c")
        yield from (f"p {word} a IN (2, 3)", f"a NOT IN (2) {word} p", f"CAST(a AS VARCHAR) LIKE '2%' {word} p")


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a DOUBLE, b DOUBLE, c DOUBLE, p BOOLEAN, q BOOLEAN, r BOOLEAN)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", [list(row.values()) for row in ROWS])
        yield connection


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def test_signs_bind_as_in_duckdb(database: duckdb.DuckDBPyConnection) -> None:
    wrong = []
    for text in texts():
        expected = [value for (value,) in database.execute(f"SELECT {text} FROM t ORDER BY rowid").fetchall()]
        found = oracle.evaluate_all(parse(text, SCHEMA), ROWS)
        if not all(map(_same, expected, found)):
            wrong.append(text)
    assert not wrong
