"""Whatever knows the operations of the language knows all of them, and no others; their values are the engines'."""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import ibis
import ibis.expr.operations as ibis_operations
import polars as pl
import pyarrow as pa
import pytest
import sqlglot.expressions
from hypothesis import HealthCheck, Phase, given, settings

from afresh.engines.embedded import polars_expr
from afresh.engines.sql.duckdb import DuckDBDialect
from afresh.engines.sql.postgres import PostgresDialect
from afresh.engines.sql.rendering import Dialect, Statement
from afresh.engines.sql.spark import SparkDialect
from afresh.errors import QueryError
from afresh.queries import from_ibis, from_sql, refusals
from afresh.queries.bounds import range_of
from afresh.queries.canonical import canonical
from afresh.queries.operations import COMPARISONS, FUNCTIONS, PARTS, SPELLINGS, Null, Sort
from afresh.queries.parse import parse
from afresh.queries.ranges import Range
from afresh.queries.text import readable
from afresh.queries.tree import Call, Column, Literal, Node, Op, Type, walk
from engines import nasty, oracle, patterns
from queries import expressions, fuzz

PHYSICAL = {  # what DuckDB, Postgres and Spark call the types
    Type.BOOLEAN: ("BOOLEAN", "boolean", "boolean"),
    Type.NUMBER: ("DOUBLE", "double precision", "double"),
    Type.TEXT: ("VARCHAR", "text", "string"),
    Type.DATE: ("DATE", "date", "date"),
    Type.TIMESTAMP: ("TIMESTAMP", "timestamp without time zone", "timestamp_ntz"),
}
SCHEMA = {f"{kind.value}{place}": kind for kind in Type for place in range(5)}
CONSTANT = {Sort.CONSTANT, Sort.WORD, Sort.WHOLE}
EVERY = pytest.mark.parametrize("op", Op, ids=str)


# --- every operation, on columns of every type it takes
def _kinds(op: Op) -> list[Type]:
    """The types that operands of no fixed type may have."""
    for sort in op.row.takes:
        if sort is Sort.TIME:
            return [Type.DATE, Type.TIMESTAMP]
        if sort is Sort.ORDERED:
            return [kind for kind in Type if kind is not Type.BOOLEAN]
        if isinstance(sort, Sort) and sort not in CONSTANT:
            return list(Type)
    return [Type.NUMBER]


def _random(kind: Type, dice: random.Random) -> Any:
    """A value that a column may hold, NULL, NaN, infinities and extremes among them."""
    if kind is Type.NUMBER:
        some = struct.unpack("<d", dice.randbytes(8))[0], float(dice.randint(-5, 5)), dice.gauss(0, 100)
        return dice.choice((dice.choice(nasty.NUMBERS), *some))
    if kind is Type.TEXT:
        return dice.choice((dice.choice(nasty.TEXTS), patterns.text(dice, "a%_b")))
    if kind is Type.BOOLEAN:
        return dice.choice(nasty.FLAGS)
    some_day = date(1, 1, 1) + timedelta(days=dice.randrange(date.max.toordinal()))
    if kind is Type.DATE:
        return dice.choice((dice.choice(nasty.DAYS), some_day))
    some_time = datetime.combine(some_day, datetime.min.time()) + timedelta(microseconds=dice.randrange(86_400_000_000))
    return dice.choice((dice.choice(nasty.MOMENTS), some_time))


def _operand(op: Op, sort: Type | Sort, place: int, kind: Type, dice: random.Random) -> Node:
    if sort is Sort.WORD:
        units = [name for name, part in PARTS.items() if kind is Type.TIMESTAMP or not part.timed]
        return Literal(dice.choice(units) if op is Op.PART else patterns.pattern(dice), Type.TEXT)
    if sort is Sort.WHOLE:
        return Literal(float(dice.randint(place == 1, 4)), Type.NUMBER)
    if sort is Sort.CONSTANT:
        while (value := _random(kind, dice)) is None or (isinstance(value, float) and not math.isfinite(value)):
            pass
        return Literal(value + 0.0 if isinstance(value, float) else value, kind)
    kind = sort if isinstance(sort, Type) else kind
    return Column(f"{kind.value}{place}", kind)


def trees(op: Op) -> Iterator[Call]:
    """The operation in all its forms."""
    dice = random.Random(op.value)
    for kind in _kinds(op):
        longer = [op.row.takes + op.row.takes[-1:]] if op.row.more else []
        longer += [op.row.takes[:2] + op.row.takes] if op is Op.CASE else []
        for takes in (op.row.takes, *longer):
            for _ in range(8 if CONSTANT & {*takes} else 1):
                args = tuple(_operand(op, sort, place, kind, dice) for place, sort in enumerate(takes))
                yield Call(op, args, kind if isinstance(op.row.returns, Sort) else op.row.returns)
    if op.row.takes == (Type.TEXT, Type.TEXT):  # Polars takes it only of a constant
        yield Call(op, (Column("text0", Type.TEXT), Literal("a", Type.TEXT)), Type.BOOLEAN)


@cache
def rows() -> list[dict[str, Any]]:
    dice = random.Random(14)
    return [{name: _random(kind, dice) for name, kind in SCHEMA.items()} for _ in range(600)]


@cache
def table() -> pa.Table:
    types = dict(zip(Type, (pa.bool_(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("us")), strict=True))
    return pa.table({name: pa.array([row[name] for row in rows()], types[kind]) for name, kind in SCHEMA.items()})


def _operations(tree: Node) -> set[Op]:
    return {node.op for node in walk(tree) if isinstance(node, Call)}


# --- values
def _check_null(op: Op, args: list[Any], value: Any) -> None:
    missing = [arg is None for arg in args]
    match op.row.null:
        case Null.KEPT:
            assert (value is None) == any(missing)
        case Null.MADE:
            assert value is None or not any(missing)
        case Null.DECIDED:
            assert value is not None or any(missing)
        case Null.SKIPPED:
            assert (value is None) == all(missing)
        case Null.CHOSEN:
            assert any(value is arg for arg in args)
        case Null.NEVER:
            assert value is not None


def _agree(op: Op, expected: Any, found: Any) -> bool:
    """Where a library of mathematics has the last bit, it may differ; elsewhere nothing may."""
    if expected is None or found is None or not op.row.library:
        return bool(expected == found) and (expected is None) == (found is None)
    return math.isclose(expected, found, rel_tol=1e-14, abs_tol=1e-300)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1}).register("incoming", table())


def _by_duckdb(tree: Call) -> list[Any]:
    statement = Statement(DuckDBDialect(), {name: PHYSICAL[kind][0] for name, kind in SCHEMA.items()})
    statement.outputs = [statement._clean(tree)]
    sql = f"SELECT {', '.join(statement.scan())} FROM incoming AS d"
    for step in statement.steps():
        sql = f"SELECT {', '.join(step)} FROM ({sql})"
    return [value for (value,) in _connection().execute(sql).fetchall()]


def _by_polars(tree: Call) -> list[Any]:
    frame = pl.from_arrow(table())
    assert isinstance(frame, pl.DataFrame)
    return frame.select(polars_expr.Translator(frame.schema, clean=False)._clean(tree).expr).to_series().to_list()


@EVERY
def test_the_value_is_that_of_every_engine_here(op: Op) -> None:
    translated = 0
    for tree in trees(op):
        args = [oracle.evaluate_all(arg, rows()) for arg in tree.args]
        expected = [op.evaluate(*values) for values in zip(*args, strict=True)]
        found = {"duckdb": _by_duckdb(tree)}
        try:
            found["polars"] = _by_polars(tree)
            translated += 1
        except polars_expr.NotTranslated:
            pass
        for place, values in enumerate(zip(*args, strict=True)):
            _check_null(op, list(values), expected[place])
            for engine, each in found.items():
                assert _agree(op, expected[place], each[place]), (engine, readable(tree), values, each[place])
    assert (translated > 0) == (op not in polars_expr.LEFT)


@EVERY
def test_the_range_holds_all_values(op: Op) -> None:
    """Of constants and of columns, clipped to what else is known of them."""
    zero, ten = Literal(0.0, Type.NUMBER), Literal(10.0, Type.NUMBER)
    for tree in trees(op):
        clipped = (Call(Op.LEAST, (Call(Op.GREATEST, (arg, zero), arg.type), ten), arg.type) for arg in tree.args)
        calm = tuple(new if arg.type is Type.NUMBER else arg for arg, new in zip(tree.args, clipped, strict=True))
        for each in (tree, tree if CONSTANT & {*op.row.takes} else Call(op, calm, tree.type)):
            found = range_of(each) if each.type is Type.NUMBER else Range(-math.inf, math.inf)
            for value in oracle.evaluate_all(each, rows()):
                assert value is not None or found.may_be_null
                if isinstance(value, float):
                    slack = 1e-12 * abs(value) if op.row.library else 0.0
                    assert found.low - slack <= value <= found.high + slack


# --- the ways in, and types
def _names(of: str) -> set[str]:
    """The names of nodes in sqlglot or Ibis, from all tables."""
    tables = [op.row for op in Op], COMPARISONS.values(), PARTS.values(), SPELLINGS.values()
    return {name for rows in tables for row in rows for name in getattr(row, of).split()}


def test_parsers_know_what_the_table_names() -> None:
    leaves = {"Paren", "Column", "Literal", "Boolean", "Null", "Anonymous"}
    assert set(from_sql._HANDLERS) == _names("sql") | leaves
    assert set(from_ibis._HANDLERS) == _names("ibis") | {"Field", "Literal", "Alias"}
    assert [name for name in _names("sql") if not hasattr(sqlglot.expressions, name)] == []
    assert [name for name in _names("ibis") if not hasattr(ibis_operations, name)] == []


@EVERY
def test_its_text_is_read_as_itself(op: Op) -> None:
    for tree in trees(op):
        assert canonical(parse(readable(tree), SCHEMA)) == canonical(tree), readable(tree)
    assert op in _operations(parse(readable(tree), SCHEMA))


@EVERY
def test_operands_of_other_types_are_refused(op: Op) -> None:
    for tree in trees(op):
        for place, arg in enumerate(tree.args):
            sort = op.row.takes[min(place, len(op.row.takes) - 1)]
            if sort is Sort.ANY or sort in CONSTANT or (op in (Op.TO_TEXT, Op.TO_NUMBER)):
                continue
            wrong: Node = Column("text4", Type.TEXT) if arg.type is not Type.TEXT else Column("number4", Type.NUMBER)
            mixed = Call(op, (*tree.args[:place], wrong, *tree.args[place + 1 :]), tree.type)
            with pytest.raises(QueryError, match=r"needs|constants|subtracted"):
                parse(readable(mixed), SCHEMA)
    if Sort.ORDERED in op.row.takes:
        conditions = tuple(Column(f"boolean{place}", Type.BOOLEAN) for place in range(2))
        with pytest.raises(QueryError, match="have no order"):
            parse(readable(Call(op, conditions, Type.BOOLEAN)), SCHEMA)


_IBIS = {
    Type.BOOLEAN: "boolean",
    Type.NUMBER: "float64",
    Type.TEXT: "string",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


def test_ibis_nodes_are_read_as_their_operations() -> None:
    t = ibis.table({name: _IBIS[kind] for name, kind in SCHEMA.items()}, name="t")
    x, y, p, s = (t[name].op() for name in ("number0", "number1", "boolean0", "text0"))
    d, e, m, n = (t[name].op() for name in ("date0", "date1", "timestamp0", "timestamp1"))
    by_sort = {Type.NUMBER: (x, y), Type.BOOLEAN: (p, p), Type.TEXT: (s, s), Sort.ALIKE: (x, y), Sort.ORDERED: (x, y)}
    given: dict[str, tuple[Any, ...]] = {
        "IsNull": (x,),
        "NotNull": (x,),
        "InValues": (x, (1.0, 2.0)),
        "Between": (x, 1.0, 2.0),
        "NullIf": (x, y),
        "IfElse": (p, x, y),
        "SearchedCase": ((p,), (x,), y),
        "SimpleCase": (x, (1.0,), (2.0,), y),
        "StringSQLLike": (s, "a_"),
        "StringSQLILike": (s, "a_"),
        "Substring": (s, 1, 2),
        "Round": (x, 2),
        "DateDiff": (d, e),
        "DateDelta": ("day", d, e),
        "TimestampDelta": ("hour", m, n),
    }
    owners = [(name, op) for op in Op for name in op.row.ibis.split()]
    owners += [(row.ibis, row.op) for row in COMPARISONS.values()]
    owners += [(name, Op.PART) for part in PARTS.values() for name in part.ibis.split()]
    owners += [(name, None) for row in SPELLINGS.values() for name in row.ibis.split()]  # type: ignore[misc]  # none
    for name, op in owners:
        node = getattr(ibis_operations, name)
        if name in ("Cast", "TryCast"):
            made = node(x, "string") if op is Op.TO_TEXT else node(s, "float64")
        elif name in given:
            made = node(*given[name])
        elif op in (None, Op.PART):
            made = node(m)
        else:
            operands = [by_sort[sort][place] for place, sort in enumerate(op.row.takes)]
            made = node(operands) if op.row.returns is Sort.ALIKE else node(*operands)
        tree = parse(made.to_expr(), SCHEMA)
        assert op is None or op in _operations(tree), name


# --- what is derived once
@EVERY
def test_the_canonical_form_means_the_same(op: Op) -> None:
    for tree in trees(op):
        made = canonical(tree)
        assert oracle.evaluate_all(made, rows()) == oracle.evaluate_all(tree, rows())
        if op.row.idempotent:
            assert canonical(Call(op, (tree,), tree.type)) == made
        for row in rows()[:20]:
            constants = tuple(Literal(oracle.evaluate(arg, row), arg.type) for arg in tree.args)
            folded = canonical(Call(op, constants, tree.type))
            value = op.evaluate(*(constant.value for constant in constants))
            if op.row.folds:
                assert isinstance(folded, Literal)
                assert folded.value == value
            elif op is not Op.LIKE and None not in [constant.value for constant in constants]:
                assert folded == Call(op, constants, tree.type)


@pytest.mark.parametrize(("place", "dialect"), [(0, DuckDBDialect()), (1, PostgresDialect()), (2, SparkDialect())])
def test_dialects_write_every_operation(place: int, dialect: Dialect) -> None:
    """What they write is run where the engines are tested."""
    assert set(dialect.rules) == set(Op)
    for op in Op:
        for tree in trees(op):
            statement = Statement(dialect, {name: PHYSICAL[kind][place] for name, kind in SCHEMA.items()})
            assert statement._clean(tree).sql


def test_polars_takes_or_leaves_every_operation() -> None:
    tables = [{*polars_expr._SIMPLE}, {*polars_expr._OF_LITERALS}, {*polars_expr._COMPARE}, {Op.CASE}, polars_expr.LEFT]
    assert sorted(op for table in tables for op in table) == sorted(Op)
    assert {*polars_expr._PARTS} == {*PARTS} - {"epoch"}


# --- what others are shown, and are tested with
def test_refusals_offer_every_function() -> None:
    offered = str(refusals.refuse_function("foo")).rpartition("allowed are ")[2].split(", ")
    assert offered == FUNCTIONS
    assert {op.value for op in Op if not op.row.sign} <= {*offered}
    assert not {*refusals._NAMED, *refusals._INSTEAD} & {*offered}
    general = str(refusals.refuse(sqlglot.expressions.Var(this="x")))
    arithmetic_or_comparisons = {op for op in Op if op.row.binds >= 4 and op is not Op.LIKE} | {Op.NEGATE}
    for op in {*Op} - arithmetic_or_comparisons - {Op.IS_TRUE}:
        assert op.word in general or op.word.lower() in general


def test_the_page_lists_the_language() -> None:
    page = (Path(__file__).parents[2] / "docs" / "questions.md").read_text().partition("## The language")[2]
    listed = " ".join(re.findall("`([^`]+)`", page.partition("\n## ")[0])).replace("[NOT] ", "")
    words = {word.lower() for word in re.findall(r"[A-Za-z_0-9]+", listed)}
    assert {op.word for op in Op if op.word.lower() not in words and op.word not in listed} == set()
    assert [name for name in FUNCTIONS if name not in words] == []
    assert [sign for sign in COMPARISONS if sign not in listed.split()] == []
    called = {name.lower() for name in re.findall(r"([A-Za-z_0-9]+)\(", listed)} - {"in"}
    assert called <= {*FUNCTIONS}


def test_both_fuzzers_make_every_operation() -> None:
    dice, seen = random.Random(5), set[Op]()
    for kind, texts in fuzz._GRAMMAR.items():
        for text in texts:
            while (hole := re.search(r"\{([a-z])\}", text)) is not None:
                text = text.replace(hole.group(), dice.choice(fuzz._LEAVES[hole.group(1)][:1]), 1)
            seen |= _operations(parse(text if kind in "nb" else f"({text}) IS NULL", expressions.SCHEMA))
    assert seen == set(Op)
    words = " ".join(text for texts in fuzz._GRAMMAR.values() for text in texts).lower()
    assert [name for name in FUNCTIONS if f"{name}(" not in words] == ["minute"]
    grown = set[Op]()

    @settings(max_examples=1000, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
    @given(expressions.conditions(3), expressions.numbers(3))
    def grow(one: Node, other: Node) -> None:
        grown.update(_operations(one), _operations(other))

    grow()
    assert grown == set(Op)
