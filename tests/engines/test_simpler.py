"""Fewer sums and less clipping change no number: halves of groups, CASE of constants, comparisons without CASE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.engines.embedded import engine as embedded
from afresh.engines.embedded import polars_scan
from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.embedded.stored import count_stored
from afresh.engines.simpler import ALL, as_condition, ask_simpler, is_filter, unit_of
from afresh.engines.sql import engine as sql_engine
from afresh.engines.sql.rendering import Statement
from afresh.moments import Moments, Span, even_spans
from afresh.queries.query import Query, make_query, parse_group, split_by_group
from afresh.queries.tree import Call, Column, Literal, Node, Op, Type
from engines import oracle
from engines.conformance import check, check_all
from engines.nasty import ROWS, table
from examples import examples
from queries import expressions

CONSTANTS = [None, 0.0, 1.0, -7.0, 2.0, 0.25, 1e300, 5e-324]


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[EmbeddedEngine]]:
    """A Parquet file that DuckDB reads, one that Polars reads, rows in memory, and a DuckDB file."""
    home = tmp_path_factory.mktemp("simpler")
    pyarrow.parquet.write_table(table(), home / "a.parquet")
    with duckdb.connect(str(home / "a.duckdb")) as database:
        database.execute(f"CREATE TABLE t AS SELECT * FROM read_parquet('{home}/a.parquet')")
    with pytest.MonkeyPatch.context() as patch:
        found = [EmbeddedEngine(home / "a.parquet")]
        assert found[0]._polars is None
        patch.setattr(embedded, "LARGE", 1)
        found += [EmbeddedEngine(home / "a.parquet"), EmbeddedEngine(table()), EmbeddedEngine(home / "a.duckdb")]
        assert [engine._polars is not None for engine in found] == [False, True, True, False]
        yield found
        for engine in found:
            engine.close()


@st.composite
def cases(draw: st.DrawFn, depth: int = 2) -> Node:
    """A CASE of constants, at the bounds, beyond them and between, of NULL, of other numbers, and of a CASE."""
    results: list[Node] = []
    for _ in range(draw(st.integers(2, 4))):
        kind = draw(st.integers(0, 5))
        if kind == 0 and depth:
            results.append(draw(cases(depth - 1)))
        elif kind == 1:
            results.append(draw(expressions.numbers(2)))
        else:
            results.append(
                Literal(draw(st.sampled_from([None, 0.0, 1.0, -7.0, 2.0, 0.25, 1e300, 5e-324])), Type.NUMBER)
            )
    tests = [draw(expressions.conditions(2)) for _ in results[1:]]
    args = [part for pair in zip(tests, results[:-1], strict=True) for part in pair]
    return Call(Op.CASE, (*args, results[-1]), Type.NUMBER)


@examples(0.5)
@given(data=st.data())
def test_halves_and_cases_agree_with_the_oracle(engines: list[EmbeddedEngine], data: st.DataObject) -> None:
    tree = data.draw(st.one_of(cases(), expressions.numbers(3), expressions.conditions(3)))
    group = data.draw(st.one_of(expressions.conditions(2), st.just(ALL)))
    low, high = data.draw(st.sampled_from([(0.0, 1.0), (-1.0, 2.0), (-7.0, 1e300)]))
    bounds = (0.0, 1.0) if tree.type is Type.BOOLEAN else (low, high)
    missing = data.draw(st.sampled_from([None, *bounds]))
    whole = Query(tree, bounds, missing)
    halves = split_by_group(whole, group)
    asked = [*halves, whole]
    values = [oracle.psi(query, tree, query.group, ROWS) for query in asked]
    order = data.draw(st.permutations(range(3)))
    for engine in engines:
        for places in (order, [0, 1], [1, 0], [1]):
            for place, found in zip(places, engine.moments([asked[place] for place in places]), strict=True):
                check(asked[place], found, values[place])


def test_a_mean_within_a_group_is_three_sums(engines: list[EmbeddedEngine]) -> None:
    seen: list[list[Query]] = []

    def ask(queries: Sequence[Query], spans: Sequence[Span] | None) -> list[Moments]:
        seen.append(list(queries))
        return engines[0]._moments(queries, spans)

    schema = engines[0].schema
    group = parse_group("x > 0", schema)
    pairs = [split_by_group(make_query(text, schema, (-5, 5)), group) for text in ("x", "y")]
    ask_simpler(ask, [half for pair in pairs for half in pair], None)
    assert [(query.group is group, query.expression is ALL, query.complement) for query in seen[0]] == [
        (True, False, False),
        (True, True, False),
        (True, False, False),
    ]
    spans = even_spans(len(ROWS), 2)
    engines[0].shuffle("seed")
    ask_simpler(ask, [half for half in pairs[0] for _ in spans], spans * 2)
    assert len(seen[1]) == 4  # each span of rows has a size of its own
    apart = [engines[0]._moments([half], [span])[0] for half in pairs[0] for span in spans]
    together = engines[0].moments([half for half in pairs[0] for _ in spans], spans * 2)
    for one, other in zip(together, apart, strict=True):
        assert (one.n, one.total, one.squares) == pytest.approx((other.n, other.total, other.squares), abs=1e-9)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("CASE WHEN x > 1 THEN 1 ELSE 0 END", "x > 1"),
        ("CASE WHEN x > 1 THEN 3 ELSE 2 END", "x > 1"),
        ("CASE WHEN x > 1 THEN 0 ELSE 1 END", "CASE WHEN x > 1 THEN FALSE ELSE TRUE END"),
        (
            "CASE WHEN x > 1 THEN 1 WHEN flag THEN 0 END",
            "CASE WHEN x > 1 THEN TRUE WHEN flag THEN FALSE ELSE FALSE END",
        ),
        ("CASE WHEN x > 1 THEN 1 WHEN flag THEN 0.5 ELSE 0 END", None),
        ("x", None),
    ],
)
def test_a_case_of_two_constants_is_counted(engines: list[EmbeddedEngine], text: str, condition: str | None) -> None:
    schema = engines[0].schema
    query = make_query(text, schema, (0, 1) if text == "x" else None)
    found = as_condition(query)
    assert (found is query) if condition is None else (found.expression == make_query(condition, schema).expression)
    for engine in engines:
        check(query, engine.moments([query])[0], oracle.psi(query, query.expression, None, ROWS))


def test_constants_on_the_scale_of_a_question() -> None:
    query = Query(Column("x", Type.NUMBER), (-1.0, 3.0), 0.0)
    for value, expected in ((None, 0.25), (-1.0, 0.0), (-1e308, 0.0), (1.0, 0.5), (3.0, 1.0), (1.7e308, 1.0)):
        assert unit_of(query, value) == expected


def test_conditions_as_filters(engines: list[EmbeddedEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    """As of many rows: the oracle's counts, also where a part is NULL or not finite."""
    monkeypatch.setattr(sql_engine, "FEW", 1)
    texts = [
        "x < 1",
        "1 <= x",
        "x = y",
        "x < y",
        "big = 1",
        "x > 0 AND city = 'Bern'",
        "flag OR x * y > 1",
        "x > 2 AND x < 1",
    ]
    for engine in engines:
        trees = [make_query(text, engine.schema).expression for text in texts]
        assert all(is_filter(Query(tree)) for tree in trees)
        for tree in trees:
            check_all(engine, [(Query(tree), tree, None)])


def test_many_questions_of_few_rows(engines: list[EmbeddedEngine]) -> None:
    """Columns are made finite below all of them, and the numbers are the oracle's, also where a part is not finite."""
    texts = ["x < 1", "1 <= x", "x = y", "x < y", "NOT x < 1", "x IS NULL", "big = 1", "flag OR x * y > 1", "x <> y"]
    for engine in engines:
        trees = [make_query(text, engine.schema).expression for text in texts]
        asked: list[tuple[Query, Node, Node | None]] = [(Query(tree), tree, None) for tree in trees]
        asked += [(Query(trees[0], missing=1.0), trees[0], None), (Query(trees[3], complement=True), trees[3], None)]
        for text in "x", "x + y", "abs(x)":
            number = make_query(text, engine.schema, (-2.0, 3.0)).expression
            asked.append((Query(number, (-2.0, 3.0), 1.0), number, None))
            asked.append((Query(number, (-2.0, 3.0), group=trees[1]), number, trees[1]))
        assert len(asked) >= sql_engine.SEVERAL
        assert engine.rows < sql_engine.FEW
        check_all(engine, asked)
    statement = Statement(engines[0].dialect, engines[0]._columns, below=True)
    statement.add(Query(trees[0]))
    assert (statement.short(), statement.steps()[-1]) == (None, ["count(*)", "count_if((c0 < 1.0e0))"])
    assert statement.scan() == ['CASE WHEN isfinite(d."x") THEN d."x" END AS c0']


@pytest.mark.parametrize(("few", "little"), [(0, 2**26), (0, 0), (100_000, 0)])
def test_conditions_in_memory_are_counted_by_one_thread_or_several(
    engines: list[EmbeddedEngine], monkeypatch: pytest.MonkeyPatch, few: int, little: int
) -> None:
    """Without a plan if they are simple, and whichever way they are counted, the numbers are the oracle's."""
    monkeypatch.setattr(polars_scan, "_FEW", few)
    monkeypatch.setattr(polars_scan, "_LITTLE", little)
    scan = engines[2]._polars
    assert scan is not None
    for text, simple in ("x < 2", True), ("x > 0 AND y < 1", True), ("1 < x", True), ("city = 'Bern'", False):
        tree = make_query(text, engines[2].schema).expression
        for query in Query(tree), Query(tree, missing=1.0), Query(tree, complement=True):
            translated = scan.translate(query)
            assert translated is not None
            assert (scan._counted([(query, translated)]) is not None) is (bool(few) or (simple and bool(little)))
            check_all(engines[2], [(query, tree, None)])


def test_columns_of_truths_are_counted_with_their_groups_and_what_is_missing(engines: list[EmbeddedEngine]) -> None:
    """In memory bits are counted without a plan, but only those of whole columns that are asked as they are."""
    for engine in engines:
        flag, positive = (make_query(text, engine.schema).expression for text in ("flag", "x > 0"))
        asked = [
            Query(flag),
            Query(flag, missing=1.0),
            Query(flag, group=positive),
            Query(flag, group=flag),
            Query(flag, group=positive, complement=True),
        ]
        for some in (asked[:1], asked[1:2], [asked[0], asked[2]], [asked[2], asked[3]], asked):
            check_all(engine, [(query, flag, query.group) for query in some])


def _sql(engine: EmbeddedEngine, text: str) -> list[str]:
    statement = Statement(engine.dialect, engine._columns)
    statement.add(make_query(text, engine.schema))
    short = statement.short()
    assert short is not None
    return short[1:]


def test_dates_are_compared_as_they_are_stored(engines: list[EmbeddedEngine]) -> None:
    assert "CASE" not in _sql(engines[0], "day < '2000-01-01'")[0]
    assert "isfinite" not in _sql(engines[0], "x < y")[0]


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"])
@pytest.mark.parametrize("few", [1, 10**6])
def test_times_beyond_the_years_of_the_language_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, few: int
) -> None:
    values = ["2000-01-01", "1999-12-31", "infinity", "-infinity", None]
    if kind != "TIMESTAMP_NS":  # which ends in 2262
        values += ["0001-01-01", "9999-12-31", "0044-03-15 (BC)", "20000-01-01"]
    path = tmp_path / "times.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute(f"CREATE TABLE t (d {kind})")
        database.executemany("INSERT INTO t VALUES (?::VARCHAR::" + kind + ")", [[value] for value in values])
    monkeypatch.setattr(sql_engine, "FEW", few)
    engine = EmbeddedEngine(path)
    first, last = ("0001-01-01", "9999-12-31") if kind != "TIMESTAMP_NS" else ("1999-12-31", "2000-01-01")
    for text, expected in {
        "d >= '2000-01-01'": 1 + (last > "2000-01-01"),
        "d < '2000-01-01'": 1 + (first < "1999-12-31"),
        f"d <= '{last}'": len(values) - (3 if kind == "TIMESTAMP_NS" else 5),
        f"d >= '{first}'": len(values) - (3 if kind == "TIMESTAMP_NS" else 5),
        "d = d": len(values) - (3 if kind == "TIMESTAMP_NS" else 5),
        "d = '2000-01-01'": 1,
        "d IS NULL": 3 if kind == "TIMESTAMP_NS" else 5,
    }.items():
        assert engine.moments([make_query(text, engine.schema)])[0].total == expected, text
    engine.close()


def test_what_is_beyond_the_language_is_taken_off_in_whichever_block_of_a_file_it_is(tmp_path: Path) -> None:
    """DuckDB skips blocks by the ends of their columns: of some blocks here that is NaN, or an infinity, or both."""
    path, block = tmp_path / "blocks.duckdb", 122_880
    special = {block // 2: "nan", 2 * block + 7: "-inf", 3 * block + 1: "inf", 3 * block + 2: "nan", 4 * block: "-inf"}
    with duckdb.connect(str(path)) as database:
        cases = " ".join(f"WHEN {row} THEN '{value}'::DOUBLE" for row, value in special.items())
        x = f"CASE i {cases} WHEN 5 THEN NULL ELSE i % 1000 END"
        day = f"CASE WHEN i = {block} THEN DATE 'infinity' WHEN i = 2 THEN DATE '-infinity' ELSE DATE '2000-01-01' END"
        database.execute(f"CREATE TABLE t AS SELECT {x} AS x, {day} AS day FROM range({5 * block}) AS r(i)")
        database.execute("UPDATE t SET x = 'inf' WHERE x = 17 AND day = DATE '-infinity'")  # of no row
    finite = [float(i % 1000) for i in range(5 * block) if i not in special and i != 5]
    engine = EmbeddedEngine(path)
    counts = {
        "x < 120": sum(x < 120 for x in finite),
        "x <= 120": sum(x <= 120 for x in finite),
        "120 < x": sum(x > 120 for x in finite),
        "x >= 120": sum(x >= 120 for x in finite),
        "x < 1e308": len(finite),
        "x > -1e308": len(finite),
        "x < 0": 0,
        "x > 1000": 0,
        "day <= '2000-01-01'": 5 * block - 2,
        "day > '1999-12-31'": 5 * block - 2,
    }
    for text, expected in counts.items():
        query = make_query(text, engine.schema)
        assert (count_stored(query, "t", engine._columns) is not None) is text.startswith("day")
        assert engine.moments([query]) == [Moments(5 * block, expected, expected)], text
    engine.close()


def test_a_group_without_rows_and_one_of_all(engines: list[EmbeddedEngine]) -> None:
    for engine in engines:
        for where, size in {"x > 1 AND x < 1": 0, "flag OR NOT flag OR flag IS NULL": len(ROWS)}.items():
            group = parse_group(where, engine.schema)
            inside, rest = split_by_group(make_query("x", engine.schema, (-5, 5), 0.0), group)
            found = engine.moments([inside, rest])
            assert found[0].total + found[1].total == pytest.approx(size)
            assert [one.n for one in found] == [len(ROWS)] * 2


def test_rows_that_appear_are_noticed_within_a_group_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are counted, and not only those that are looked at."""
    monkeypatch.setattr(embedded, "LARGE", 1)
    pl.DataFrame({"x": [1.0, 2.0, 3.0]}).write_parquet(tmp_path / "a.parquet")
    for source in (tmp_path / "a.parquet", pl.DataFrame({"x": [1.0, 2.0, 3.0]})):
        engine = EmbeddedEngine(source)
        halves = split_by_group(make_query("x", engine.schema, (0, 5)), parse_group("x > 1", engine.schema))
        for polars in (True, False):
            if not polars:
                engine.__dict__["_polars"] = None
            engine._rows = 4
            with pytest.raises(Exception, match="a different number of rows"):
                engine.moments(halves)
            engine._rows = 3
            assert engine.moments(halves)[0].total == pytest.approx(1.0)
        engine.close()
