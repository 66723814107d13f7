"""Every rewrite against what texts mean; `queries.rewrites` says how to run it longer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from afresh.engines import simpler
from afresh.engines.base import Engine
from afresh.queries.operations import Op
from afresh.queries.query import Query
from afresh.queries.tree import Call, Literal, Node, Type
from queries import raw
from queries.rewrites import Rewrites, engines, random_trees


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[list[Engine]]]:
    with engines(tmp_path_factory.mktemp("rewrites")) as found:
        yield found


def test_the_table_has_every_operation() -> None:
    assert set(raw.MEANINGS) == {op.value for op in Op}


def test_every_construct_in_every_other(embedded: list[list[Engine]]) -> None:
    dice = random.Random(2018)
    rewrites = Rewrites(embedded, dice)
    rewrites.check(raw.nested(dice))
    assert rewrites.wrong == []
    assert rewrites.counts.keys() == {"trees"}  # none is refused
    assert rewrites.counts["trees"] > 7000


def test_larger_trees(embedded: list[list[Engine]]) -> None:
    dice = random.Random(2019)
    rewrites = Rewrites(embedded, dice)
    rewrites.check(islice(random_trees(dice), 500))
    assert rewrites.wrong == []


def _only_constants(query: Query, node: Node) -> Node:
    """How it once was: results that are no constants were left out before the others were compared."""
    if isinstance(node, Literal):
        return Literal(simpler.unit_of(query, node.value) == 1.0, Type.BOOLEAN)  # type: ignore[arg-type]  # a number
    assert isinstance(node, Call)
    last = len(node.args) - 1
    args = [_only_constants(query, arg) if i % 2 or i == last else arg for i, arg in enumerate(node.args)]
    test, *values = args
    one_zero = [value.value for value in values if isinstance(value, Literal)] == [True, False]
    return test if one_zero and node is query.expression else Call(Op.CASE, tuple(args), Type.BOOLEAN)


def test_a_branch_that_is_lost_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simpler, "_condition", _only_constants)
    with engines(tmp_path) as found:
        dice = random.Random(2018)
        rewrites = Rewrites(found[:1], dice)
        rewrites.check(tree for tree in raw.nested(dice) if tree.text.count("THEN 1 WHEN") and tree.kind == "n")
    assert any("sums to" in wrong for wrong in rewrites.wrong)


def test_once_wrong(embedded: list[list[Engine]]) -> None:
    """A CASE in the second branch of a CASE."""
    text = "CASE WHEN x >= 1 THEN 1 WHEN p THEN CASE WHEN q THEN 1 ELSE 0 END ELSE 0 END"
    values = [
        1.0 if raw.case(raw.MEANINGS["less_equal"](1.0, x), True, p, q, False) is True else 0.0
        for x, p, q in zip(*([row[name] for row in raw.seen()] for name in "xpq"), strict=True)
    ]
    rewrites = Rewrites(embedded, random.Random(7))
    rewrites.check([raw.Tree("n", text, values)] * 20)
    assert rewrites.wrong == []
