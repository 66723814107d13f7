"""DuckDB must mean exactly what `tree` says, on a table of values chosen to break it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afresh.engines.base import Moments
from afresh.engines.embedded import EmbeddedEngine
from afresh.queries.parse import parse
from afresh.queries.query import Query, make_query
from afresh.queries.tree import Call, Column, Literal, Node, Op, Type
from engines import oracle
from engines.nasty import ROWS, table
from queries import expressions


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    path = tmp_path_factory.mktemp("nasty") / "nasty.parquet"
    pyarrow.parquet.write_table(table(), path)
    opened = EmbeddedEngine(path)
    assert opened._polars is None
    yield opened
    opened.close()


@st.composite
def _queries(draw: st.DrawFn) -> tuple[Query, Node, Node | None]:
    """A query and the trees it was made of, which the oracle reads as they were written."""
    group = draw(st.one_of(st.none(), expressions.conditions(1)))
    complement = draw(st.booleans())
    if draw(st.booleans()):
        missing = draw(st.sampled_from([None, 0.0, 1.0]))
        tree = draw(expressions.conditions(4))
        return Query(tree, (0.0, 1.0), missing, group, complement), tree, group
    low, high = draw(st.sampled_from([(0.0, 1.0), (-10.0, 10.0), (0.0, 1e300), (-3.0, -2.0), (5e-324, 1.0)]))
    missing = draw(st.sampled_from([None, low, high, (low + high) / 2]))
    tree = draw(expressions.numbers(4))
    return Query(tree, (low, high), missing, group, complement), tree, group


def _check(query: Query, found: Moments, values: list[float]) -> None:
    assert all(0 <= value <= 1 for value in values)
    assert found.n == len(ROWS)
    if query.expression.type is Type.BOOLEAN:
        assert found.total == sum(values), query.text
        assert found.squares == found.total
    else:
        assert found.mean == pytest.approx(math.fsum(values) / found.n, abs=1e-12), query.text
        assert found.squares == pytest.approx(math.fsum(v * v for v in values), abs=1e-9), query.text
    if query.binary:
        assert set(values) <= {0.0, 1.0}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(asked=st.lists(_queries(), min_size=1, max_size=4))
def test_duckdb_agrees_with_the_oracle(engine: EmbeddedEngine, asked: list[tuple[Query, Node, Node | None]]) -> None:
    found = engine.moments([query for query, _, _ in asked])
    for (query, tree, group), moments in zip(asked, found, strict=True):
        _check(query, moments, [oracle.psi(query, tree, group, row) for row in ROWS])


def test_no_operation_lets_a_non_finite_operand_out(engine: EmbeddedEngine) -> None:
    """Every operation on every operand that can be infinite or NaN inside DuckDB."""
    x, y, ten = Column("x", Type.NUMBER), Column("y", Type.NUMBER), Literal(10.0, Type.NUMBER)
    operands: list[Node] = [x, *(Call(op, (x, y), Type.NUMBER) for op in (Op.MULTIPLY, Op.DIVIDE, Op.POWER))]
    trees: list[Node] = [Call(op, (one,), Type.NUMBER) for op in expressions._UNARY for one in operands]
    pairs = [*expressions._BINARY, Op.COALESCE, Op.LEAST, Op.GREATEST]
    trees += [Call(op, args, Type.NUMBER) for op in pairs for one in operands for args in ((one, ten), (ten, one))]
    trees += [Call(Op.CASE, (Column("flag", Type.BOOLEAN), one, ten), Type.NUMBER) for one in operands]
    trees += [Call(Op.IS_NULL, (tree,), Type.BOOLEAN) for tree in trees]
    queries = [Query(tree, (-5.0, 20.0) if tree.type is Type.NUMBER else (0.0, 1.0)) for tree in trees]
    for query, tree, found in zip(queries, trees, engine.moments(queries), strict=True):
        _check(query, found, [oracle.psi(query, tree, None, row) for row in ROWS])


@pytest.mark.parametrize("text", ["trim(city) = 'x'", "length(trim(city)) <= 1", "NOT (x < 1)", "NOT (flag AND other)"])
def test_easily_mistaken(engine: EmbeddedEngine, text: str) -> None:
    tree = parse(text, engine.schema)
    query = Query(tree)
    _check(query, engine.moments([query])[0], [oracle.psi(query, tree, None, row) for row in ROWS])


def test_blocks_see_their_own_rows_only(engine: EmbeddedEngine) -> None:
    engine.deal(7, "seed")
    queries = [make_query("x", engine.schema, (-10, 10)), make_query("flag", engine.schema)]
    whole = engine.moments(queries)
    for query, full in zip(queries, whole, strict=True):
        parts = engine.moments([query] * 7, list(range(7)))
        assert [part.n for part in parts] == [63] * 7
        assert sum(part.total for part in parts) == pytest.approx(full.total)
