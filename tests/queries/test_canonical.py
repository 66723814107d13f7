"""Equivalent spellings are one question; different meanings never are."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.queries.canonical import canonical, serialize
from afresh.queries.parse import parse
from afresh.queries.query import Query, make_query, split_by_group
from afresh.queries.tree import Call, Node, Op, Type, columns


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


expressions = _load(Path(__file__).parent / "expressions.py")
SCHEMA = {
    "a": Type.NUMBER,
    "b": Type.NUMBER,
    "c": Type.NUMBER,
    "p": Type.BOOLEAN,
    "q": Type.BOOLEAN,
    "s": Type.TEXT,
    "d": Type.DATE,
    "t": Type.TIMESTAMP,
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
    ("a IN (1, 2)", "a in (2, 1, 1.0)"),
    ("a NOT IN (1, 2)", "NOT a IN (2, 1)"),
    ("a BETWEEN 1 AND 2", "a >= 1 AND a <= 2"),
    ("a NOT BETWEEN 1 AND 2", "a < 1 OR a > 2"),
    ("p AND q", "q AND p"),
    ("p AND (q AND a < 1)", "(a < 1 AND p) AND q AND p"),
    ("p OR p", "p"),
    ("NOT (p AND q)", "NOT q OR NOT p"),
    ("p = TRUE", "p"),
    ("p = FALSE", "NOT p"),
    ("p <> TRUE", "NOT p"),
    ("a + b < 1", "b + a < 1"),
    ("a * b", "b * a"),
    ("- - a", "a"),
    ("a IS NOT NULL", "NOT (a IS NULL)"),
    ("p IS FALSE", "(NOT p) IS TRUE"),
    ("coalesce(a, 0)", "ifnull(a, 0)"),
    ("nullif(a, 0)", "CASE WHEN a = 0 THEN NULL ELSE a END"),
    ("CASE a WHEN 1 THEN 2 END", "CASE WHEN 1 = a THEN 2 ELSE NULL END"),
    ("power(a, 2)", "a ^ 2"),
    ("a % 2", "mod(a, 2)"),
    ("ceil(a)", "ceiling(a)"),
    ("round(a)", "round(a, 0)"),
    ("s NOT ILIKE 'x%'", "not s ilike 'x%'"),
    ("s NOT LIKE 'x%'", "NOT (s LIKE 'x%')"),
    ("d < '2025-01-31'", "d < DATE '2025-01-31'"),
    ("t < '2025-01-31'", "t < TIMESTAMP '2025-01-31 00:00:00'"),
    ("t < DATE '2025-01-31'", "t < TIMESTAMP '2025-01-31T00:00'"),
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
    ("p AND q OR p", "p AND (q OR p)"),
    ("p IS TRUE", "p"),
    ("p IS NOT TRUE", "NOT p"),
    ("p IS NOT TRUE", "p IS FALSE"),
    ("a = 1", "a < 1"),
    ("a IN (1, 2)", "a IN (1, 3)"),
    ("s = '1'", "a = 1"),
    ("s = 'x'", "s = 'X'"),
    ("s = 'x'", "s LIKE 'x'"),
    ("s LIKE 'x'", "s ILIKE 'x'"),
    ("s = ''", "s IS NULL"),
    ("s = 'TRUE'", "s = 'true'"),
    ("s IN ('a,b', 'c')", "s IN ('a', 'b,c')"),
    ("""s IN ('a', 'b')""", """s IN ('a","b', 'b')"""),
    ("least(a, b)", "greatest(a, b)"),
    ("coalesce(a, b)", "coalesce(b, a)"),
    ("CASE WHEN p THEN 1 WHEN q THEN 2 END", "CASE WHEN q THEN 2 WHEN p THEN 1 END"),
    ("CASE WHEN p THEN 1 END", "CASE WHEN p THEN 1 ELSE 0 END"),
    ("a = 0.1", "a = 0.10000000000000002"),
    ("d = '2025-01-31'", "d = '2025-01-30'"),
    ("d = '2025-01-31'", "t = '2025-01-31'"),
    ("p", "CASE WHEN p THEN 1 ELSE 0 END"),
    ("round(a)", "round(a, 1)"),
    ("round(a, 1)", "round(a, -1)"),
    ("ln(a)", "log10(a)"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_same(one: str, other: str) -> None:
    first, second = make_query(one, SCHEMA), make_query(other, SCHEMA)
    assert first == second
    assert first.digest == second.digest
    assert first.text == second.text


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(one: str, other: str) -> None:
    assert make_query(one, SCHEMA).digest != make_query(other, SCHEMA).digest


def test_everything_that_determines_psi_is_in_the_digest() -> None:
    base = make_query("a", SCHEMA, (0, 10), 5)
    inside, outside = split_by_group(base, "p", SCHEMA)
    other_type = make_query("a", {"a": Type.BOOLEAN})
    several = [
        *(base, inside, outside, other_type, split_by_group(base, "q", SCHEMA)[0]),
        *(make_query("a", SCHEMA, (0, 11), 5), make_query("a", SCHEMA, (0, 10), 6), make_query("a", SCHEMA)),
    ]
    assert len({query.digest for query in several}) == len(several)
    assert make_query("a", SCHEMA, (0, 1)).digest == make_query("a", SCHEMA, None, 0).digest
    assert make_query("p", SCHEMA, (0, 1)).digest == make_query("p", SCHEMA, None, False).digest
    assert make_query("p", SCHEMA, missing=1).digest != make_query("p", SCHEMA).digest


def test_digest_never_changes() -> None:
    """Ledgers keep digests for years: if this fails, `VERSION` must change with it."""
    query = make_query("a + b < 3 AND s IN ('x', 'y') OR d >= '2025-01-31'", SCHEMA)
    assert query.digest == "9337f56650954a85acefb59c74dfd2452ed40c4bb1fc6d516ca7f6703c7a4de2"


def test_groups() -> None:
    inside, outside = split_by_group(make_query("p", SCHEMA), "a < 1", SCHEMA)
    assert (inside.complement, outside.complement) == (False, True)
    assert inside.text == "(a < 1) AND (p)"
    assert outside.text == "(a < 1) AND (NOT (p))"
    scaled, mirrored = split_by_group(make_query("b", SCHEMA, (1, 5)), "a < 1", SCHEMA)
    assert scaled.text == "CASE WHEN a < 1 THEN b ELSE 1 END"
    assert mirrored.text == "CASE WHEN a < 1 THEN 6 - (b) ELSE 1 END"
    assert inside.binary
    narrower, _ = split_by_group(inside, "q", SCHEMA)
    assert narrower.group is not None
    assert columns(narrower.group) == {"a", "q"}


def test_binary() -> None:
    assert make_query("CASE WHEN p THEN 1 ELSE 0 END", SCHEMA).binary
    assert not make_query("CASE WHEN p THEN 1 ELSE 0.5 END", SCHEMA).binary
    assert not make_query("CASE WHEN p THEN 1 ELSE 0 END", SCHEMA, (0, 2)).binary
    assert not make_query("CASE WHEN p THEN 1 END", SCHEMA, missing=0.5).binary
    assert not make_query("a", SCHEMA).binary


def _shuffled(node: Node, random: Callable[..., Any]) -> Node:
    """The same meaning, written differently."""
    if not isinstance(node, Call):
        return node
    args = [_shuffled(arg, random) for arg in node.args]
    if node.op in (Op.AND, Op.OR, Op.EQUAL, Op.ADD, Op.MULTIPLY):
        args = list(random(st.permutations(args)))
    if node.op in (Op.AND, Op.OR):
        args = [*args, random(st.sampled_from(args))]
        if random(st.booleans()):
            args = [args[0], Call(node.op, tuple(args[1:]), Type.BOOLEAN)]
    again: Node = Call(node.op, tuple(args), node.type)
    if node.type is Type.BOOLEAN and random(st.booleans()):
        again = Call(Op.NOT, (Call(Op.NOT, (again,), Type.BOOLEAN),), Type.BOOLEAN)
    return again


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_shuffled_trees_keep_their_digest(data: st.DataObject) -> None:
    tree = data.draw(expressions.conditions(3))
    again = _shuffled(tree, data.draw)
    assert Query(tree).digest == Query(again).digest


@settings(max_examples=200, deadline=None)
@given(st.one_of(expressions.conditions(3), expressions.numbers(3)))
def test_canonical_is_idempotent_and_its_text_reads_back(tree: Node) -> None:
    query = Query(tree)
    assert canonical(query.expression) == query.expression
    read = canonical(parse(query.text, expressions.SCHEMA))
    assert serialize(read) == serialize(query.expression), query.text
