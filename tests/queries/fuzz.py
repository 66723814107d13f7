"""Random questions, from a grammar and by mutation, thrown at the language and the embedded engine.

A few thousand run with the tests. To go on for longer, with other dice each time:

    cd tests && python -m queries.fuzz --minutes 10

`--canonical` checks random trees against their canonical forms instead; see `repeats`. `--raw` checks every rewrite
against what a text means; see `rewrites`.

What must hold of every text: it is a question or gets a `QueryError` or `InvalidArgument`, without much work; no file
is opened on its account; asked of two tables with one schema and one number of rows, but other rows, it is answered on
both or fails on both in the same words; the answer is the oracle's; its readable form is the same question; and
afterwards the engine is as it was.
"""

from __future__ import annotations

import argparse
import logging
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.errors import AfreshError, InvalidArgument, QueryError
from afresh.queries.query import Query, make_query
from afresh.queries.tree import Literal, Type
from engines import nasty, oracle
from queries import raw, repeats, rewrites
from queries.hostile import HOSTILE
from queries.test_canonical import DIFFERENT, SAME
from work import MOST, work

# --- a grammar of questions: {n}umbers, {b}ooleans, {t}exts, {d}ates, {m}oments, and now and then something else
_NUMBERS = ("x", "y", "big", "0", "1", "-1", "0.5", "1e308", "5e-324", "9007199254740993", "3", ".5", "1_000")
_GRAMMAR: dict[str, tuple[str, ...]] = {
    "n": (
        *("{n} + {n}", "{n} - {n}", "{n} * {n}", "{n} / {n}", "{n} % {n}", "{n} ^ {n}", "-{n}", "({n})", "+{n}"),
        *("abs({n})", "sign({n})", "floor({n})", "ceil({n})", "round({n})", "round({n}, 2)", "round({n}, -2)"),
        *("exp({n})", "ln({n})", "log10({n})", "sqrt({n})", "power({n}, {n})", "mod({n}, {n})", "length({t})"),
        *("CASE WHEN {b} THEN {n} ELSE {n} END", "CASE {n} WHEN {n} THEN {n} END", "coalesce({n}, {n})"),
        *("least({n}, {n}, {n})", "greatest({n}, {n})", "nullif({n}, {n})", "TRY_CAST({t} AS DOUBLE)", "{t}::double"),
        *("year({d})", "month({m})", "extract(doy FROM {d})", "date_part('isodow', {m})", "quarter({d})", "epoch({m})"),
        *("hour({m})", "second({m})", "{d} - {d}", "date_diff('{u}', {d}, {d})", "date_diff('{u}', {m}, {m})"),
        *("date_diff('{u}', {d}, {m})", "{b}::int", "CAST({b} AS DOUBLE)", "{n}::double", "day({d})"),
    ),
    "b": (
        *("{n} < {n}", "{n} <= {n}", "{n} = {n}", "{n} <> {n}", "{n} > {n}", "{b} AND {b}", "{b} OR {b}", "NOT {b}"),
        *("({b})", "{b} = {b}", "{n} IS NULL", "{t} IS NOT NULL", "{b} IS TRUE", "{b} IS NOT FALSE", "{b} IS NULL"),
        *("{n} BETWEEN {n} AND {n}", "{n} NOT IN (1, 2, 3.5)", "{n} IN (0)", "{t} IN ('a', 'é', '')", "{t} = {t}"),
        *("{t} < {t}", "{t} LIKE '%a_'", "{t} ILIKE 'B%'", "{t} NOT LIKE '%%'", "starts_with({t}, {t})"),
        *("ends_with({t}, {t})", "contains({t}, {t})", "{d} < {d}", "{m} >= {m}", "{d} = '2025-01-31'"),
        *("{m} < DATE '2025-01-31'", "coalesce({b}, {b})", "CASE WHEN {b} THEN {b} ELSE {b} END"),
    ),
    "t": (
        *("lower({t})", "upper({t})", "trim({t})", "substring({t}, 2)", "substr({t}, 1, 3)", "left({t}, 2)"),
        *("coalesce({t}, {t})", "CAST({n} AS VARCHAR)", "CASE WHEN {b} THEN {t} END", "least({t}, {t})", "{b}::text"),
    ),
    "d": ("coalesce({d}, {d})", "least({d}, {d})", "CASE WHEN {b} THEN {d} ELSE {d} END"),
    "m": ("greatest({m}, {m})", "CASE WHEN {b} THEN {m} END", "nullif({m}, {m})"),
}
_LEAVES: dict[str, tuple[str, ...]] = {
    "n": _NUMBERS,
    "b": ("flag", "other", "TRUE", "FALSE", "flag"),
    "t": ("city", '"Odd ""name\'"', "'a'", "''", "'it''s'", "'日本'", "'1e5'", "'%'"),
    "d": ("day", "DATE '2025-01-31'", "DATE '0001-01-01'", "DATE '9999-12-31'"),
    "m": ("moment", "TIMESTAMP '2025-01-31 12:00:00.000001'", "TIMESTAMP '1969-12-31 23:59:59'"),
    "u": ("day", "week", "month", "quarter", "year", "hour", "minute", "second", "SECOND", "eon"),
}
_ODD = (
    *("NULL", "*", "count(*)", "random()", "(SELECT 1)", "tags", "nothing", "?", "$1", "''", "1e999", "x.y", "now()"),
    *("x::int", "x::json", "day + 1", "CAST(NULL AS DOUBLE)", "CAST(NULL AS DATE)", "x IN (1, NULL)", "[1]", "{{}}"),
)
_TOKENS = (
    *"()[]{},;.:'\"`-+*/%<>=!~@#$^&|\\?_ \n\t\0",
    *("--", "/*", "*/", "::", "->", "||", "$$", "''", "AND", "OR", "NOT", "NULL", "CASE", "WHEN", "THEN", "END", "IS"),
    *("IN", "LIKE", "BETWEEN", "SELECT", "FROM", "OVER (", "CAST(", "AS", "DATE ", "INTERVAL ", "é", "²", "\u202e"),
    *("DISTINCT", "EXISTS", "FILTER (WHERE", "x", "flag", "city", "1e", "0x", "1e400", "TRY_CAST(", "COLLATE"),
)


def sentence(dice: random.Random, kind: str, depth: int) -> str:
    """A text of the grammar; one part in fifty is of another type, or nothing a question may hold."""
    luck = dice.random()
    if luck < 0.01:
        return dice.choice(_ODD)
    if luck < 0.02 and kind != "u":
        kind = dice.choice("nbtdm")
    if depth == 0 or kind == "u":
        return dice.choice(_LEAVES[kind])
    text = dice.choice(_GRAMMAR[kind] if dice.random() < 0.8 else _LEAVES[kind])
    while (start := text.find("{")) >= 0 and text[start + 2 : start + 3] == "}" and text[start + 1] in _LEAVES:
        text = text[:start] + sentence(dice, text[start + 1], depth - 1) + text[start + 3 :]
    return text


SEEDS = [text for pairs in (SAME, DIFFERENT) for pair in pairs for text in pair]
SEEDS += [text for cases in HOSTILE.values() for text, _ in cases]


def mutant(dice: random.Random) -> str:
    """A known text with some pieces cut, doubled, moved, or replaced."""
    text = dice.choice(SEEDS) if dice.random() < 0.5 else sentence(dice, dice.choice("nb"), 3)
    for _ in range(dice.randint(1, 6)):
        start, end = sorted(dice.randint(0, len(text)) for _ in range(2))
        end = min(end, start + dice.choice((1, 3, 10, 100)))
        piece = text[start:end]
        match dice.randint(0, 6):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:end] + piece * dice.choice((1, 2, 20)) + text[end:]
            case 2:
                text = text[:start] + dice.choice(_TOKENS) + text[end:]
            case 3:
                text = text[:start] + dice.choice(_TOKENS) + text[start:]
            case 4:
                text = text[:start] + chr(dice.choice((dice.randint(1, 127), dice.randint(128, 0xD7FF)))) + text[end:]
            case 5:
                other = dice.choice(SEEDS)
                text = text[:start] + other[dice.randint(0, len(other)) :] + text[end:]
            case _:
                text = text[:start] + f"({piece})" + text[end:]
    return text[:12_000]


# --- the arena
_watching = False
_opened: list[str] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what is opened or started while a text is read; Python's own modules do not count."""
    reaches = event.split(".")[0] in ("open", "socket", "subprocess", "os", "shutil", "ctypes")
    if _watching and reaches and not str(arguments[0] if arguments else "").endswith((".py", ".pyc")):
        _opened.append(f"{event} {arguments!r}")


class _Logged(logging.Handler):
    """sqlglot's warnings would print questions."""

    def emit(self, record: logging.LogRecord) -> None:
        _opened.append(f"the log: {record.getMessage()}")


sys.addaudithook(_watch)
logging.getLogger().addHandler(_Logged())


@contextmanager
def watched() -> Iterator[None]:
    global _watching
    _watching = True
    try:
        yield
    finally:
        _watching = False


@dataclass
class Arena:
    """Two engines over tables of one schema and size; what is thrown at them, and how it went."""

    folder: Path
    counts: Counter[str] = field(default_factory=Counter)
    hardest: tuple[int, str] = (0, "")
    slowest_scan: tuple[float, str] = (0.0, "")

    def __post_init__(self) -> None:
        self.secret = self.folder / "secret.csv"
        self.secret.write_text("a\n1\n")
        rough = nasty.table()
        plain = [dict.fromkeys(rough.column_names) for _ in nasty.ROWS]
        smooth = pa.Table.from_pylist(plain, schema=rough.schema)
        tags = pa.array([["x"]] * len(rough))
        self.engines = [EmbeddedEngine(table.append_column("tags", tags)) for table in (rough, smooth)]
        self.schema = self.engines[0].schema
        assert dict(self.schema) == dict(self.engines[1].schema)
        self.before = self.state()

    def state(self) -> list[Any]:
        """Everything a question could have changed."""
        found: list[Any] = [sorted((path.name, path.read_bytes()) for path in self.folder.iterdir())]
        for engine in self.engines:
            statements = (
                "SELECT name, value FROM duckdb_settings() ORDER BY ALL",
                "SELECT table_name, estimated_size, column_count FROM duckdb_tables() ORDER BY ALL",
                "SELECT view_name FROM duckdb_views() ORDER BY ALL",
                "SELECT database_name FROM duckdb_databases() ORDER BY ALL",
                "SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY ALL",
                "SELECT name FROM duckdb_variables() ORDER BY ALL",
            )
            found += [engine._connection.execute(sql).fetchall() for sql in statements]
            found.append(engine._run("SELECT count(*), sum(hash(data)) FROM data"))
        return found

    def throw(self, text: str) -> None:
        """One text, all checks."""
        query: Query | None = None
        said = ""

        def read() -> None:
            nonlocal query, said
            try:
                query = self.read(text)
            except (QueryError, InvalidArgument) as error:
                said = str(error)
            except Exception as error:
                raise AssertionError(f"{text!r} crashed with {error!r}") from error

        with watched():
            calls = work(read)
        self.hardest = max(self.hardest, (calls, text))
        assert calls < MOST, f"{text!r} took {calls:,} calls"
        assert not _opened, f"{text!r} opened {_opened}"
        if query is None:
            assert 0 < len(said) < 2000, repr(text)
            self.counts["refused"] += 1
            return
        self.ask(text, query)

    def read(self, text: str) -> Query:
        try:
            query = make_query(text, self.schema)
        except QueryError as error:
            if "has no bounds" not in str(error) and "has no value but" not in str(error):
                raise
            query = make_query(text, self.schema, (-5.0, 5.0))
        if not (isinstance(query.expression, Literal) and query.expression.value is None):
            bounds = query.bounds if query.expression.type is Type.NUMBER else None
            again = make_query(query.text, self.schema, bounds)
            assert again.digest == query.digest, f"{query.text!r} is not {text!r}"
        return query

    def ask(self, text: str, query: Query) -> None:
        outcomes = []
        expected = oracle.psi(query, query.expression, None, nasty.ROWS)
        start = time.perf_counter()
        for engine in self.engines:
            try:
                moments = engine.moments([query])[0]
                if engine is self.engines[0]:
                    assert abs(moments.mean - math.fsum(expected) / moments.n) <= 1e-12, repr(text)
                outcomes.append("answered")
            except AfreshError as error:
                outcomes.append(f"{type(error).__name__}: {error}")
        self.slowest_scan = max(self.slowest_scan, (time.perf_counter() - start, text))
        assert outcomes[0] == outcomes[1], f"{text!r}: {outcomes}"
        self.counts[outcomes[0]] += 1

    def finish(self) -> None:
        """Nothing has changed."""
        assert self.state() == self.before
        for engine in self.engines:
            engine.close()


def texts(dice: random.Random) -> Iterator[str]:
    """Endless random texts, half of them by mutation."""
    while True:
        yield mutant(dice)
        yield sentence(dice, dice.choice("nb"), dice.randint(1, 5))


def fuzz_texts(seed: int, minutes: float) -> None:
    """Throw texts for some minutes, and say how it went."""
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(Path(folder))
        end = time.monotonic() + 60 * minutes
        for text in texts(random.Random(seed)):
            if time.monotonic() > end:
                break
            arena.throw(text)
        arena.finish()
    print(f"{arena.counts.total():,} texts: {dict(arena.counts)}")
    print(f"hardest to read: {arena.hardest[0]:,} calls for {arena.hardest[1][:300]!r}")
    print(f"slowest to answer: {arena.slowest_scan[0]:.3f} s for {arena.slowest_scan[1][:300]!r}")


def fuzz_trees(seed: int, count: int) -> int:
    """Check so many trees against their canonical forms; how many failed."""
    dice, register, failed = random.Random(seed), repeats.Register(), 0
    for done in range(1, count + 1):
        wrong = register.check(repeats.grow(dice))
        if wrong is not None:
            failed += 1
            print(wrong, flush=True)
        if done % 10_000 == 0 or done == count:
            print(f"{done:,} of {count:,} trees, {len(register.seen):,} digests: {failed} wrong", flush=True)
    return failed


def fuzz_rewrites(seed: int, count: int) -> int:
    """Compare so many texts with what they mean; how many sums, parsed trees or canonical forms were wrong."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, rewrites.engines(Path(folder)) as engines:
        rewritten = rewrites.Rewrites(engines, dice)
        rewritten.check(raw.nested(dice))
        trees, told = rewrites.random_trees(dice), 0
        while rewritten.counts["trees"] < count:
            rewritten.check(islice(trees, min(10_000, count - rewritten.counts["trees"])))
            print(*rewritten.wrong[told:], sep="\n", end="")
            told = len(rewritten.wrong)
            print(f"{dict(rewritten.counts)}: {told} wrong", flush=True)
    return told


def main() -> None:
    """Fuzz, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--canonical", action="store_true", help="check trees against their canonical forms")
    parser.add_argument("--raw", action="store_true", help="check rewrites against what texts mean")
    parser.add_argument("--trees", type=int, default=1_000_000, help="how many trees")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    if arguments.raw:
        sys.exit(1 if fuzz_rewrites(seed, arguments.trees) else 0)
    if arguments.canonical:
        sys.exit(1 if fuzz_trees(seed, arguments.trees) else 0)
    fuzz_texts(seed, arguments.minutes)


if __name__ == "__main__":
    main()
