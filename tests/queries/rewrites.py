"""Compares everything that rewrites a question with `raw`, which shares no code with it.

A parsed tree, its canonical form, and the sums of every engine must be what the text means. All pairs of constructs run
with the tests. At length, and with other dice each time:

    cd tests && python -m queries.fuzz --raw --trees 1000000
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import duckdb
import pyarrow.parquet

from afresh.engines.base import Engine
from afresh.engines.embedded import engine as embedded
from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.errors import QueryError
from afresh.moments import Span
from afresh.queries.canonical import canonical
from afresh.queries.query import Query, make_query, parse_group, split_by_group
from afresh.queries.tree import Node, Type
from queries import raw
from queries.raw import Tree

_BOUNDS = [(0.0, 1.0), (0.0, 1.0), (-1.0, 2.0), (-3.0, 1e300)]
_HALVES = [Span(0, len(raw.ROWS) // 2), Span(len(raw.ROWS) // 2, len(raw.ROWS))]


@contextmanager
def engines(folder: Path) -> Iterator[list[list[Engine]]]:
    """A Parquet and a DuckDB file that DuckDB reads, a Parquet file and rows in memory that Polars reads; all dealt."""
    pyarrow.parquet.write_table(raw.table(), folder / "a.parquet")
    with duckdb.connect(str(folder / "a.duckdb")) as database:
        database.execute(f"CREATE TABLE t AS SELECT * FROM read_parquet('{folder}/a.parquet')")
    with ExitStack() as stack:
        found = [EmbeddedEngine(folder / "a.parquet")]
        stack.enter_context(mock.patch.multiple(embedded, LARGE=1, LARGE_DEALT=1))
        found += [EmbeddedEngine(source) for source in (folder / "a.parquet", raw.table(), folder / "a.duckdb")]
        for engine in found:
            engine.shuffle("seed")
            stack.callback(engine.close)
        assert [engine._polars is not None for engine in found[1:]] == [True, True, False]
        stored, scanned, held, file = found
        yield [[stored, file], [scanned, held]]


@dataclass
class Case:
    """A question as it is asked, and what must be summed."""

    query: Query
    tree: Tree
    units: list[float]


@dataclass
class Rewrites:
    """Asks engines what trees mean, and counts what went wrong."""

    engines: Sequence[Sequence[Engine]]  # one of each kind is asked
    dice: random.Random
    dealt: bool = True
    library: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def check(self, trees: Iterable[Tree]) -> None:
        """Check them, a few hundred in a scan."""
        cases: list[Case] = []
        for tree in trees:
            cases += self._cases(raw.asked(self.dice, tree))
            if len(cases) >= 190:
                self._sums(cases)
                cases = []
        if cases:
            self._sums(cases)

    def _cases(self, tree: Tree) -> list[Case]:
        """The ways to ask one question: of all rows, or of a group, of which also the other half."""
        dice, schema = self.dice, self.engines[0][0].schema
        within = raw.grown(dice, "b", 2) if dice.random() < 0.3 else None
        low, high = (0.0, 1.0) if tree.kind == "b" else dice.choice(_BOUNDS)
        missing = dice.choice([None, low, high] if tree.kind == "b" else [None, low, high, 0.5])
        if not self.library and raw.LIBRARY.search(tree.text + (within.text if within else "")):
            return []
        try:
            query = make_query(tree.text, schema, None if tree.kind == "b" else (low, high), missing)
            group = None if within is None else parse_group(within.text, schema)
        except QueryError as error:
            self.counts[f"refused: {error}"] += 1
            return []
        self.counts["trees"] += 1
        self._meaning(query.expression, tree)
        if within is not None and group is not None:
            self._meaning(group, within)
        asked = [query] if group is None else split_by_group(query, group)
        return [Case(one, tree, raw.units(tree, (low, high), one.fill, within, one.complement)) for one in asked]

    def _meaning(self, node: Node, tree: Tree) -> None:
        """What was parsed, and its canonical form, give the same on every row."""
        for what, form in (("parsed", node), ("canonical", canonical(node))):
            found = raw.values_of(form)
            if found != tree.values or [*map(type, found)] != [*map(type, tree.values)]:
                self.wrong.append(f"{what}: {tree.text} is {tree.values}, not {found}")

    def _sums(self, cases: list[Case]) -> None:
        queries = [case.query for case in cases]
        for engine in map(self.dice.choice, self.engines):
            found = [[moments] for moments in engine.moments(queries)]
            if self.dealt and self.dice.random() < 0.25:
                spans = [span for _ in queries for span in _HALVES]
                halves = engine.moments([query for query in queries for _ in _HALVES], spans)
                found = [[*one, *halves[2 * i : 2 * i + 2]] for i, one in enumerate(found)]
            for case, (whole, *parts) in zip(cases, found, strict=True):
                for some in ([whole], parts) if parts else ([whole],):
                    self._compare(engine, case, [(one.n, one.total, one.squares) for one in some])

    def _compare(self, engine: Engine, case: Case, parts: list[tuple[int, float, float]]) -> None:
        n, total, squares = (math.fsum(part[i] for part in parts) for i in range(3))
        expected = math.fsum(case.units), math.fsum(unit * unit for unit in case.units)
        exact = case.query.expression.type is Type.BOOLEAN
        near = 0.0 if exact else 1e-9
        if n != len(case.units) or abs(total - expected[0]) > near or abs(squares - expected[1]) > near:
            where = type(engine).__name__ + (" dealt" if len(parts) > 1 else "")
            self.wrong.append(f"{where}: {case.query.text} sums to {total}, {squares}, not {expected}")


def random_trees(dice: random.Random) -> Iterator[Tree]:
    """Endless trees, larger than pairs."""
    while True:
        yield raw.grown(dice, dice.choice("nnb"), dice.choice((2, 2, 2, 3, 3, 4)))
