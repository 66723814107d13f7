"""The fuzzers, for a few thousand texts and trees; `queries.fuzz` says how to run them longer."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from afresh.queries import logic
from afresh.queries.query import make_query
from afresh.queries.serialize import serialize
from afresh.queries.tree import Node, Op, Type
from queries import repeats
from queries.fuzz import Arena, texts


def test_random_texts(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    for text in islice(texts(random.Random(2018)), 3000):
        arena.throw(text)
    arena.finish()
    assert set(arena.counts) == {"refused", "answered"}
    assert min(arena.counts.values()) > 600  # neither side is starved


def _wrong(trees: int) -> list[str]:
    register, dice = repeats.Register(), random.Random(2018)
    found = [register.check(repeats.grow(dice)) for _ in range(trees)]
    assert len(register.seen) < 0.8 * trees  # digests are shared, so that the second check has something to compare
    return [wrong for wrong in found if wrong is not None]


def test_canonical_trees_mean_the_same_where_parts_repeat() -> None:
    assert not _wrong(5000)


def _overwriting_prune(pairs: list[tuple[Node, Node]], default: Node) -> tuple[list[tuple[Node, Node]], Node]:
    """How it once was: two neighbours become one branch, in the place of an earlier one with their condition."""
    kept: dict[str, tuple[Node, Node]] = {}
    for test, result in pairs:
        last = next(reversed(kept), None)
        if last is not None and kept[last][1] == result:
            test = logic.junction(Op.OR, (kept.pop(last)[0], test))
        kept[serialize(test)] = test, result
    return list(kept.values()), default


def test_the_fuzzer_finds_a_branch_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logic, "_prune", _overwriting_prune)
    assert any("another meaning" in wrong for wrong in _wrong(5000))


ONCE_WRONG = [
    "CASE WHEN s IN ('CH', 'AT') THEN 1 WHEN s = 'CH' THEN 0.2 WHEN s = 'AT' THEN 0.2 ELSE 0 END",
    "CASE WHEN p OR q THEN FALSE WHEN p THEN TRUE WHEN q THEN TRUE ELSE FALSE END",
]


@pytest.mark.parametrize("text", ONCE_WRONG)
def test_once_wrong(text: str) -> None:
    query = make_query(text, repeats.SCHEMA)
    assert repeats.Register().check(query.expression) is None
    if query.expression.type is Type.BOOLEAN:
        assert query.digest == make_query("p AND FALSE", repeats.SCHEMA).digest
    else:
        assert query.digest == make_query("CASE WHEN s IN ('AT', 'CH') THEN 1 ELSE 0 END", repeats.SCHEMA).digest
