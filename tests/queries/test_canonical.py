"""Equivalent spellings are one question; different meanings never are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.queries.canonical import canonical
from afresh.queries.parse import parse
from afresh.queries.query import Query, make_query, split_by_group
from afresh.queries.text import readable
from afresh.queries.tree import Call, Literal, Node, Op, Type
from engines import oracle
from engines.nasty import ROWS
from examples import examples
from queries import expressions

SCHEMA = {
    "a": Type.NUMBER,
    "b": Type.NUMBER,
    "c": Type.NUMBER,
    "p": Type.BOOLEAN,
    "q": Type.BOOLEAN,
    "r": Type.BOOLEAN,
    "s": Type.TEXT,
    "d": Type.DATE,
    "e": Type.DATE,
    "t": Type.TIMESTAMP,
    "u": Type.TIMESTAMP,
    "Two Words": Type.NUMBER,
}

SAME = [
    ("a < 1", "A<1.0"),
    ("a < 1", '"a" < 1e0'),
    ("a < 1", "((a) < (1))"),
    ("a < 1", "1 > a"),
    ("a <= 1", "1 >= a"),
    ("a < 1", "NOT a >= 1"),
    ("a < 1", "not not a < 1"),
    ("a = 1", "1 = a"),
    ("a == 1", "a = +1"),
    ("a <> 1", "a != 1"),
    ("a <> 1", "NOT (a = 1)"),
    ("a = 1", "a IN (1)"),
    ("-a = 1", "-a IN (1)"),
    ("-a IN (1, 2)", "a IN (-2, -1)"),
    ("-a IN (1, 2)", "-a = 1 OR a = -2"),
    ("a IN (1, 2)", "a in (2, 1, 1.0)"),
    ("a IN (1, 2, 3)", "a = 3 OR a IN (2, 1)"),
    ("a NOT IN (1, 2)", "NOT a IN (2, 1)"),
    ("a NOT IN (1, 2)", "a <> 2 AND a <> 1"),
    ("a BETWEEN 1 AND 2", "a >= 1 AND a <= 2"),
    ("a NOT BETWEEN 1 AND 2", "a < 1 OR a > 2"),
    ("p AND q", "q AND p"),
    ("p AND (q AND a < 1)", "(a < 1 AND p) AND q AND p"),
    ("p OR p", "p"),
    ("p AND q OR p", "p AND (q OR p)"),
    ("p OR (q AND p) OR (r AND p)", "p"),
    ("NOT (p AND q)", "NOT q OR NOT p"),
    ("p AND TRUE", "p OR FALSE"),
    ("p AND 1 = 2", "q AND FALSE"),
    ("p = TRUE", "p"),
    ("p = FALSE", "NOT p"),
    ("p <> TRUE", "NOT p"),
    ("p IS TRUE AND q IS TRUE", "(q AND p) IS TRUE"),
    ("p IS TRUE IS TRUE", "p IS TRUE"),
    ("a IS NULL IS TRUE", "a IS NULL"),
    ("coalesce(p, FALSE)", "p IS TRUE"),
    ("coalesce(p, TRUE)", "p IS NOT FALSE"),
    ("CASE WHEN p THEN TRUE ELSE FALSE END", "p IS TRUE"),
    ("CASE WHEN p THEN FALSE ELSE TRUE END", "p IS NOT TRUE"),
    ("a + b < 1", "b + a < 1"),
    ("a * b", "b * a"),
    ("- - a", "a"),
    ("a - b", "a + (-b)"),
    ("a - b", "-(b - a)"),
    ("a - 3", "-3 + a"),
    ("a + 3", "a - (-3)"),
    ("-a - b", "-(a + b)"),
    ("a * (-b)", "-(b * a)"),
    ("a / (-3)", "-a / 3"),
    ("a * 1 + 0", "a"),
    ("a / 1", "a"),
    ("-1 * a", "-a"),
    ("0 - a", "-a"),
    ("-a < 3", "a > -3"),
    ("a < 2 * 3", "a < 6"),
    ("a < 1 / 4", "a < 0.25"),
    ("abs(-a)", "abs(abs(a))"),
    ("floor(floor(a))", "floor(a)"),
    ("a IS NOT NULL", "NOT (a IS NULL)"),
    ("(-a) IS NULL", "abs(a) IS NULL"),
    ("p IS FALSE", "(NOT p) IS TRUE"),
    ("coalesce(a, 0)", "ifnull(a, 0)"),
    ("coalesce(a, coalesce(b, 0))", "coalesce(a, NULL, b, a, 0, c)"),
    ("least(a, b)", "least(b, a)"),
    ("least(a, least(b, 3))", "least(5, b, 3, a, b)"),
    ("greatest(a, NULL, b)", "greatest(b, a)"),
    ("nullif(a, 0)", "CASE WHEN a = 0 THEN NULL ELSE a END"),
    ("CASE a WHEN 1 THEN 2 END", "CASE WHEN 1 = a THEN 2 ELSE NULL END"),
    ("CASE WHEN p THEN 1 WHEN q THEN 1 ELSE 0 END", "CASE WHEN q OR p THEN 1 ELSE 0 END"),
    ("CASE WHEN p THEN 1 ELSE CASE WHEN q THEN 2 ELSE 3 END END", "CASE WHEN p THEN 1 WHEN q THEN 2 ELSE 3 END"),
    ("CASE WHEN p THEN 1 WHEN p THEN 2 ELSE 3 END", "CASE WHEN p IS TRUE THEN 1 ELSE 3 END"),
    ("CASE WHEN p THEN 1 WHEN q THEN 0 ELSE 0 END", "CASE WHEN FALSE THEN 7 WHEN p THEN 1 ELSE 0 END"),
    ("CAST(p AS DOUBLE)", "CASE WHEN p THEN 1 WHEN NOT p THEN 0 END"),
    ("p::int", "CAST(p AS DOUBLE)"),
    ("power(a, 2)", "a ^ 2"),
    ("a % 2", "mod(a, 2)"),
    ("ceil(a)", "ceiling(a)"),
    ("round(a)", "round(a, 0)"),
    ("s NOT ILIKE 'x%'", "not s ilike 'X%'"),
    ("s ILIKE 'x_y%'", "lower(s) LIKE 'x_y%'"),
    ("s NOT LIKE 'x%'", "NOT (s LIKE 'x%')"),
    ("s LIKE 'x%'", "starts_with(s, 'x')"),
    ("s LIKE '%x%'", "contains(s, 'x')"),
    ("s LIKE '%%x'", "ends_with(s, 'x')"),
    ("s LIKE 'x'", "s = 'x'"),
    ("s LIKE '%'", "starts_with(s, '')"),
    ("substr(s, 1, 2) = 'ab'", "left(s, 2) = 'ab'"),
    ("substring(s FROM 2 FOR 3) = 'ab'", "substring(s, 2, 3) = 'ab'"),
    ("s = lower('ABC')", "s = 'abc'"),
    ("TRY_CAST(s AS DOUBLE) > 3", "s::double > 3"),
    ("CAST(a AS VARCHAR) = '3'", "a::text = '3'"),
    ("CAST(a AS DOUBLE)", "a"),
    ("d < '2025-01-31'", "d < DATE '2025-01-31'"),
    ("t < '2025-01-31'", "t < TIMESTAMP '2025-01-31 00:00:00'"),
    ("t < DATE '2025-01-31'", "t < TIMESTAMP '2025-01-31T00:00'"),
    ("least(DATE '2025-01-31', t) < u", "least(t, TIMESTAMP '2025-01-31 00:00:00') < u"),
    ("t < greatest(DATE '2025-01-31', TIMESTAMP '2025-01-01 00:00:00')", "t < TIMESTAMP '2025-01-31 00:00:00'"),
    ("year(d) = 2025", "extract(YEAR FROM d) = 2025"),
    ("month(t) = 2", "date_part('Month', t) = 2"),
    ("quarter(d)", "extract('quarter' from d)"),
    ("d - e", "date_diff('day', e, d)"),
    ("datediff('day', d, e) < 3", "DATEDIFF(day, d, e) < 3"),
    ("d - DATE '2025-01-31' < 3", "d - '2025-01-31' < 3"),
    ('"two words" < 1', '"Two Words" < 1'),
    ("a = -0.0", "a = 0"),
]
DIFFERENT = [
    ("a < 1", "a <= 1"),
    ("a < 1", "b < 1"),
    ("a < b", "b < a"),
    ("a - b", "b - a"),
    ("a / b", "b / a"),
    ("a + (b + c)", "(a + b) + c"),
    ("a * (b * c)", "(a * b) * c"),
    ("(a * 2) * 3", "a * 6"),
    ("a / 10", "a * 0.1"),
    ("a * 0", "0 * b"),
    ("a - a", "b - b"),
    ("p AND q OR r", "p AND (q OR r)"),
    ("p OR NOT p", "q OR NOT q"),
    ("p AND NOT p", "q AND NOT q"),
    ("p IS TRUE", "p"),
    ("p IS NOT TRUE", "NOT p"),
    ("p IS NOT TRUE", "p IS FALSE"),
    ("coalesce(p, FALSE)", "coalesce(p, TRUE)"),
    ("a = a", "a IS NOT NULL"),
    ("a = 1", "a < 1"),
    ("a IN (1, 2)", "a IN (1, 3)"),
    ("a = 1 OR b = 2", "a = 2 OR b = 1"),
    ("a <> 1 OR a <> 2", "a NOT IN (1, 2)"),
    ("s = '1'", "a = 1"),
    ("s = 'x'", "s = 'X'"),
    ("s LIKE 'x_'", "s ILIKE 'x_'"),
    ("s LIKE 'x%'", "s LIKE '%x'"),
    ("s LIKE '%'", "s IS NOT NULL"),
    ("s LIKE 'a%b'", "s LIKE 'ab'"),
    ("contains(s, '%')", "s LIKE '%'"),
    ("contains(s, '_')", "s LIKE '%_%'"),
    ("s = ''", "s IS NULL"),
    ("s = 'TRUE'", "s = 'true'"),
    ("s IN ('a,b', 'c')", "s IN ('a', 'b,c')"),
    ("""s IN ('a', 'b')""", """s IN ('a","b', 'b')"""),
    ("lower(s) = 'x'", "upper(s) = 'x'"),
    ("trim(s) = 'x'", "s = 'x'"),
    ("substr(s, 1, 2) = 'ab'", "substr(s, 2, 2) = 'ab'"),
    ("substr(s, 2) = 'ab'", "substr(s, 2, 2) = 'ab'"),
    ("TRY_CAST(s AS DOUBLE) = 1", "s = '1'"),
    ("TRY_CAST(a AS VARCHAR) = '1'", "a = 1"),
    ("least(a, b)", "greatest(a, b)"),
    ("least(a, 3)", "least(a, 4)"),
    ("coalesce(a, b)", "coalesce(b, a)"),
    ("coalesce(a, 0)", "coalesce(a, b, 0)"),
    ("CASE WHEN p THEN 1 WHEN q THEN 2 END", "CASE WHEN q THEN 2 WHEN p THEN 1 END"),
    ("CASE WHEN p THEN 1 END", "CASE WHEN p THEN 1 ELSE 0 END"),
    ("CASE WHEN p THEN 1 ELSE 0 END", "CASE WHEN NOT p THEN 0 ELSE 1 END"),
    ("a = 0.1", "a = 0.10000000000000002"),
    ("d = '2025-01-31'", "d = '2025-01-30'"),
    ("d = '2025-01-31'", "t = '2025-01-31'"),
    ("d - e", "e - d"),
    ("date_diff('day', t, u)", "date_diff('hour', t, u) / 24"),
    ("date_diff('month', d, e)", "date_diff('quarter', d, e)"),
    ("year(d)", "year(e)"),
    ("month(d)", "day(d)"),
    ("extract(dow from d)", "extract(isodow from d)"),
    ("minute(t)", "second(t)"),
    ("p", "CASE WHEN p THEN 1 ELSE 0 END"),
    ("round(a)", "round(a, 1)"),
    ("round(a, 1)", "round(a, -1)"),
    ("round(a)", "floor(a + 0.5)"),
    ("ln(a)", "log10(a)"),
    ("sqrt(a)", "power(a, 0.5)"),
    ("abs(a)", "a"),
]


def _query(text: str) -> Query:
    """Bounds are given where none can be inferred: they are not what is tested here."""
    tree = parse(text, SCHEMA)
    return Query(tree, (0, 1) if tree.type is Type.BOOLEAN else (-10, 10))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_same(one: str, other: str) -> None:
    assert _query(one).digest == _query(other).digest


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(one: str, other: str) -> None:
    assert _query(one).digest != _query(other).digest


# the nasty table under the names used here
NAMES = {"a": "x", "b": "y", "c": "big", "p": "flag", "q": "other", "s": "city", "d": "day", "t": "moment"}
NASTY = [
    {name: row[real] for name, real in NAMES.items()}
    | {"r": row["x"] == 1, "e": ROWS[i - 7]["day"], "u": ROWS[i - 5]["moment"], "Two Words": row["y"]}
    for i, row in enumerate(ROWS)
]


def _seen(tree: Node) -> list[Any]:
    found = [oracle.evaluate(tree, row) for row in NASTY]
    return [value + 0.0 if isinstance(value, float) else value for value in found]


@pytest.mark.parametrize(("one", "other"), [*SAME, *DIFFERENT])
def test_lists_mean_what_they_say(one: str, other: str) -> None:
    """Canonical trees mean what was written; spellings called the same are the same on every row."""
    first, second = parse(one, SCHEMA), parse(other, SCHEMA)
    values = _seen(first)
    assert _seen(canonical(first)) == values
    assert _seen(canonical(second)) == _seen(second)
    if (one, other) in SAME:
        assert _seen(second) == values


def test_everything_that_determines_psi_is_in_the_digest() -> None:
    base = make_query("a", SCHEMA, (0, 10), 5)
    inside, outside = split_by_group(base, parse("p", SCHEMA))
    other_type = make_query("a", {"a": Type.BOOLEAN})
    several = [
        *(base, inside, outside, other_type, split_by_group(base, parse("q", SCHEMA))[0]),
        *(make_query("a", SCHEMA, (0, 11), 5), make_query("a", SCHEMA, (0, 10), 6), make_query("a", SCHEMA, (0, 1))),
    ]
    assert len({query.digest for query in several}) == len(several)
    assert make_query("a", SCHEMA, (0, 1)).digest == make_query("a", SCHEMA, (0, 1), 0).digest
    assert make_query("p", SCHEMA, (0, 1)).digest == make_query("p", SCHEMA, None, False).digest
    assert make_query("p", SCHEMA, missing=1).digest != make_query("p", SCHEMA).digest


def test_digest_never_changes() -> None:
    """Ledgers keep digests for years: if this fails, `VERSION` must change with it."""
    query = make_query("a + b < 3 AND s IN ('x', 'y') OR d >= '2025-01-31'", SCHEMA)
    assert query.digest == "410ad730e257ccc5391e36c6df2ad6e309031e32e7c7065cc6f29d47c31842d6"


def test_groups() -> None:
    inside, outside = split_by_group(make_query("p", SCHEMA), parse("a < 1", SCHEMA))
    assert (inside.complement, outside.complement) == (False, True)
    assert inside.text == "(a < 1) AND (p)"
    assert outside.text == "(a < 1) AND (NOT (coalesce(p, FALSE)))"
    scaled, mirrored = split_by_group(make_query("b", SCHEMA, (1, 5)), parse("a < 1", SCHEMA))
    assert scaled.text == "CASE WHEN a < 1 THEN b ELSE 1 END within [1, 5], missing as 1"
    assert mirrored.text == "CASE WHEN a < 1 THEN 6 - (b) ELSE 1 END within [1, 5], missing as 5"
    assert inside.levels == 2


def test_levels() -> None:
    assert make_query("CASE WHEN p THEN 1 ELSE 0 END", SCHEMA).levels == 2
    assert make_query("CAST(p AS DOUBLE)", SCHEMA).levels == 2
    assert make_query("CASE WHEN p THEN 1 WHEN q THEN 0 ELSE 0.5 END", SCHEMA).levels is None
    assert make_query("CASE WHEN p THEN 1 ELSE 0 END", SCHEMA, (0, 2)).levels is None
    assert make_query("CASE WHEN p THEN 1 END", SCHEMA, (0, 1), missing=0.5).levels is None
    assert make_query("a", SCHEMA, (0, 1)).levels is None


def _shuffled(node: Node, random: Callable[..., Any]) -> Node:
    """The same meaning, written differently."""
    if not isinstance(node, Call):
        return node
    args = [_shuffled(arg, random) for arg in node.args]
    if node.op in (Op.AND, Op.OR, Op.EQUAL, Op.ADD, Op.MULTIPLY, Op.LEAST, Op.GREATEST):
        args = list(random(st.permutations(args)))
    if node.op in (Op.AND, Op.OR):
        args = [*args, random(st.sampled_from(args))]
        if random(st.booleans()):
            args = [args[0], Call(node.op, tuple(args[1:]), Type.BOOLEAN)]
    again: Node = Call(node.op, tuple(args), node.type)
    if random(st.booleans()):
        if node.type is Type.BOOLEAN:
            again = Call(Op.NOT, (Call(Op.NOT, (again,), Type.BOOLEAN),), Type.BOOLEAN)
        elif node.type is Type.NUMBER:
            again = Call(Op.NEGATE, (Call(Op.NEGATE, (again,), Type.NUMBER),), Type.NUMBER)
    return again


def _ask(tree: Node) -> Query:
    return Query(tree, (0.0, 1.0))


TREES = st.one_of(expressions.conditions(3), expressions.numbers(3))


@examples(2)
@given(st.data())
def test_shuffled_trees_keep_their_digest(data: st.DataObject) -> None:
    tree = data.draw(TREES)
    assert _ask(tree).digest == _ask(_shuffled(tree, data.draw)).digest


@examples(3)
@given(TREES)
def test_canonical_is_idempotent_and_texts_read_back(tree: Node) -> None:
    query, plain = _ask(tree), canonical(tree)
    assert canonical(plain) == plain
    for each in (tree, plain):
        if not (isinstance(each, Literal) and each.value is None):
            text = readable(each)
            assert make_query(text, expressions.SCHEMA, query.bounds).digest == query.digest, text


def _values(tree: Node) -> list[Any]:
    found = [oracle.evaluate(tree, row) for row in ROWS]
    return [value + 0.0 if isinstance(value, float) else value for value in found]


@examples(5)
@given(TREES)
def test_canonical_means_the_same_on_every_row(tree: Node) -> None:
    """Every rewrite is exact, bit by bit: a digest names one function."""
    assert _values(canonical(tree)) == _values(tree)


def _small(depth: int) -> st.SearchStrategy[Node]:
    """Few leaves, many operations: trees that collide often."""
    leaf: st.SearchStrategy[Node] = st.sampled_from(
        [
            parse(text, expressions.SCHEMA)
            for text in ("flag", "other", "x < 1", "x = 0", "x = 1", "x <> 0", "x <> 1", "TRUE")
        ]
    )
    if depth == 0:
        return leaf
    part = _small(depth - 1)
    kind = Type.BOOLEAN
    return st.one_of(
        leaf,
        st.tuples(st.sampled_from([Op.AND, Op.OR, Op.EQUAL, Op.COALESCE]), part, part).map(
            lambda t: Call(t[0], t[1:], kind)
        ),
        st.tuples(st.sampled_from([Op.NOT, Op.IS_TRUE, Op.IS_NULL]), part).map(lambda t: Call(t[0], t[1:], kind)),
        st.tuples(part, part, part).map(lambda t: Call(Op.CASE, t, kind)),
    )


@examples(0.6)
@given(st.lists(_small(2), min_size=40, max_size=40))
def test_equal_digests_are_equal_functions(trees: list[Node]) -> None:
    """Of many small conditions those that collide agree on all rows; those that do not agree do not collide."""
    by_digest: dict[str, list[Any]] = {}
    for tree in trees:
        values = _values(tree)
        assert by_digest.setdefault(_ask(tree).digest, values) == values
