"""A Spark table or DataFrame in place: how it is opened, what happens when it changes, that nothing gets out."""

from __future__ import annotations

import itertools
import os
import random
import traceback
import uuid
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import pytest

import afresh
from afresh.engines.base import Engine
from afresh.engines.open import open_engine
from afresh.engines.remote import spark as spark_engine
from afresh.engines.remote.spark import SparkEngine
from afresh.engines.remote.versions import version
from afresh.errors import DataChanged, DataError, EngineError, InvalidArgument
from afresh.queries.query import make_query
from engines import oracle, patterns
from engines.conformance import Conformance, check_generated, check_mistaken
from engines.resampled import check_attacks
from queries import raw
from queries.rewrites import Rewrites
from test_benchmarks import check

SECRET = "do-not-tell-7391"


class TestSpark(Conformance):
    times = 0.01 if "AFRESH_TEST_SPARK" in os.environ else 0.04
    batch = 20
    libm = False  # Java has its own

    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls, nasty_frame: Any) -> Engine:
        """The session has a time zone with gaps and is in ANSI mode, Spark's default."""
        return open_engine(nasty_frame)


def test_rows_dropped_added_or_repeated_have_no_budget_of_their_own(spark: Any, tmp_path: Path) -> None:
    def stored(frame: pd.DataFrame) -> dict[str, Any]:
        path = str(tmp_path / f"{uuid.uuid4()}.parquet")
        frame.to_parquet(path)
        return {"data": spark.read.parquet(path).repartition(3)}

    check_attacks(stored, tmp_path / "ledger.sqlite")


def test_whatever_the_session(spark: Any, nasty_frame: Any) -> None:
    """Other settings that change what SQL means."""
    odd = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
        "spark.sql.caseSensitive": "true",
    }
    usual = {key: spark.conf.get(key) for key in odd}
    before = open_engine(nasty_frame).identity().fingerprint
    for key, value in odd.items():
        spark.conf.set(key, value)
    try:
        engine = open_engine(nasty_frame)
        check_mistaken(engine)
        check_generated(engine, 0.01, 20, libm=False)
        assert engine.identity().fingerprint == before
        assert {key: spark.conf.get(key) for key in odd} == odd
    finally:
        for key, value in usual.items():
            spark.conf.set(key, value)


def test_what_texts_mean(spark: Any) -> None:
    """Some constructs in others, as on the embedded engine: a statement takes Spark long."""
    kinds = "x double, y double, k bigint, p boolean, q boolean, r boolean, s string, u string"
    frame = spark.createDataFrame(
        [tuple(row.values()) for row in raw.ROWS], kinds + ", day date, other date, moment timestamp_ntz"
    )
    dice = random.Random(2018)
    rewrites = Rewrites([[open_engine(frame)]], dice, dealt=False, library=False)
    rewrites.check(islice(raw.nested(dice), 0, None, 40))
    assert rewrites.wrong == []
    assert rewrites.counts["trees"] > 150


def test_no_pattern_goes_back_over_a_text(spark: Any) -> None:
    """The engine's limit of time would end it, with an error."""
    frame = spark.createDataFrame([(text,) for text in patterns.LONG], "s string")
    engine = open_engine(frame)
    queries = [make_query(f"s LIKE '{like}'", engine.schema) for like in patterns.SLOW]
    counts = [sum(oracle.evaluate(query.expression, {"s": text}) for text in patterns.LONG) for query in queries]
    assert [found.total for found in engine.moments(queries)] == counts


@pytest.fixture
def people(spark: Any) -> Iterator[Any]:
    spark.sql("DROP TABLE IF EXISTS people")
    spark.sql(
        "CREATE TABLE people USING parquet AS SELECT id, id % 3 = 0 AS churned, id * 0.5D AS amount, "
        f"CASE WHEN id % 7 = 0 THEN '{SECRET}' ELSE 'CH' END AS country FROM range(1, 601)"
    )
    yield spark
    spark.sql("DROP TABLE IF EXISTS people")


def _totals(engine: Any, *texts: str) -> list[float]:
    return [found.total for found in engine.moments([make_query(text, engine.schema) for text in texts])]


def test_ways_to_open(people: Any) -> None:
    engines = [
        open_engine(people, "people"),
        open_engine(people.table("people")),
        open_engine(people, "default.people"),
    ]
    table = ibis.pyspark.connect(people).table("people")
    engines += [open_engine(table), open_engine(table.filter(table.id > 0))]
    assert all(isinstance(engine, SparkEngine) for engine in engines)
    assert len({engine.identity().fingerprint for engine in engines}) == 1
    assert _totals(engines[-1], "churned", "country = 'CH'") == [200, 515]
    frame = people.table("people")
    assert (
        open_engine(frame.orderBy("amount", ascending=False)).identity().fingerprint
        == engines[0].identity().fingerprint
    )
    assert open_engine(frame.replace(0.5, 0.0, "amount")).identity() != engines[0].identity()
    engines[0].close()
    with pytest.raises(DataError, match="no table 'nothing'"):
        open_engine(people, "nothing")
    with pytest.raises(InvalidArgument, match="needs table="):
        open_engine(people)
    with pytest.raises(InvalidArgument, match="leave it out"):
        open_engine(people.table("people"), "people")
    for frame, words in {
        "SELECT 1 AS a, 2 AS A": "differ only in case",
        "SELECT 1 AS a WHERE FALSE": "no rows",
        "SELECT array(1) AS a": "no column",
        "SELECT raise_error('x') AS a, 1 AS a": "two columns",
    }.items():
        with pytest.raises(DataError, match=words):
            open_engine(people.sql(frame))


def test_a_changed_table_is_refused_before_anything_is_charged(people: Any) -> None:
    with afresh.open(people, questions=5, table="people") as guard:
        guard.ask("churned")
        people.sql("INSERT INTO people VALUES (601, TRUE, 1D, 'CH')")
        with pytest.raises(DataChanged, match="different files"):
            guard.ask("id > 3")
        assert guard.budget.spent == 1
    with afresh.open(people, questions=5, table="people", new_rows="one was added") as guard:
        assert (guard.rows, guard.budget.spent) == (601, 0)
        people.sql("ALTER TABLE people ADD COLUMNS (more INT)")
        with pytest.raises(DataChanged, match="columns or types"):
            guard.ask("churned")
        people.sql("DROP TABLE people")
        with pytest.raises(DataChanged, match="removed"):
            guard.ask("churned")
        assert guard.budget.spent == 0


def test_a_change_after_the_check_is_noticed(people: Any) -> None:
    engine = open_engine(people, "people")
    people.sql("INSERT INTO people VALUES (601, TRUE, 1D, 'CH')")
    with pytest.raises(DataChanged, match="number of rows"):
        _totals(engine, "churned")


def test_a_question_is_one_job(people: Any) -> None:
    """With adaptive execution, Spark counts every stage of a query as a job: as many as a query by hand has."""
    context, frame = people.sparkContext, people.table("people")
    adaptive, names = people.conf.get("spark.sql.adaptive.enabled"), (f"group {i}" for i in itertools.count())

    def jobs(work: Callable[..., object], *arguments: object, **options: object) -> int:
        name = next(names)
        context.setJobGroup(name, name)
        try:
            work(*arguments, **options)
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
        context._jsc.sc().listenerBus().waitUntilEmpty()  # what the tracker counts arrives later than results do
        return len(context.statusTracker().getJobIdsForGroup(name))

    try:
        for n, options in enumerate(({"data": frame}, {"data": people, "table": "people"})):
            with afresh.open(**options, questions=20, allow_wide=True) as guard:
                people.conf.set("spark.sql.adaptive.enabled", "false")
                assert jobs(guard.ask, f"id < {n + 10}") == 1
                assert jobs(guard.ask, f"id < {n + 10}") == 0
                assert jobs(guard.ask, "amount", bounds=(0, 300 + n), where="churned") == 1
                assert jobs(guard.ask_many, [f"id < {n + 20}", f"id < {n + 30}"]) == 1
                people.conf.set("spark.sql.adaptive.enabled", "true")
                by_hand = jobs(lambda: frame.selectExpr("count(*)", "count_if(id < 7)").collect())
                assert jobs(guard.ask, f"id < {n + 40}") == by_hand
    finally:
        people.conf.set("spark.sql.adaptive.enabled", adaptive)


def test_no_error_quotes_a_row(people: Any, capfd: pytest.CaptureFixture[str]) -> None:
    engine = SparkEngine(people.sql("SELECT id, CAST(country AS INT) AS n FROM people WHERE id % 7 = 0"))
    capfd.readouterr()
    with pytest.raises(EngineError) as caught:
        _totals(engine, "n > 1")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + "".join(capfd.readouterr())
    assert _totals(engine, "id > 594") == [1]


def test_time_is_limited(people: Any) -> None:
    with pytest.raises(DataError, match="the DataFrame fails"):
        SparkEngine(people.range(10**14).filter("id % 3 = 1"), timeout=2)  # counting takes a day
    assert people.range(3).count() == 3


def test_files_have_no_version(people: Any) -> None:
    """So their rows are hashed at each opening; tests/engines/iceberg.py is about tables that have one."""
    assert SparkEngine(people, "people").state() is None
    assert version(people.table("people")) is None
    assert version(people.range(3)) is None
    assert version(object()) is None  # over Spark Connect there is no plan to look at


def test_types_and_their_limits(people: Any) -> None:
    """Every value of every type can be asked about, whatever the session's time zone."""
    wanted = {
        "small": ("CAST(-128 AS TINYINT)", "small = -128"),
        "large": ("9223372036854775807L", "large = 9223372036854775807"),
        "exact": ("CAST('99999999999999999999999999999999999.999' AS DECIMAL(38, 3))", "exact > 9.9e34"),
        "single": ("CAST(0.1 AS FLOAT)", "single > 0.1 AND single < 0.10001"),
        "nan": ("CAST('NaN' AS FLOAT)", "nan IS NULL"),
        "zero": ("-0.0D", "zero = 0 AND zero IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)"),
        "zoned": ("TIMESTAMP '2025-01-31 12:00:00.000001+05:45'", "zoned = '2025-01-31 06:15:00.000001'"),
        "gap": ("TIMESTAMP_NTZ '2025-03-09 02:30:00'", "gap = '2025-03-09 02:30:00'"),
        "early": ("DATE '0000-01-01'", "early IS NULL"),
        "late": ("DATE '+12345-01-01'", "late IS NULL"),
        "old": ("TIMESTAMP '0001-01-01 00:00:00+00:00'", "old = '0001-01-01 00:00:00'"),
        "far": ("TIMESTAMP '+290000-01-01 00:00:00+00:00'", "far IS NULL"),
        "text": ("'B' COLLATE UTF8_LCASE", "text <> 'b' AND text < 'a'"),
    }
    others = {"many": "array(1)", "pair": "named_struct('a', 1)", "raw": "X'ff'", "span": "INTERVAL '1' DAY"}
    columns = [f"{sql} AS `{name}`" for name, (sql, _) in wanted.items()]
    columns += [f"{sql} AS `{name}`" for name, sql in others.items()]
    frame = people.sql(f"SELECT {', '.join(columns)}")
    engine = open_engine(frame)
    assert [name for name, kind in engine.schema.items() if kind is None] == list(others)
    texts = [question for _, question in wanted.values()]
    assert dict(zip(texts, _totals(engine, *texts), strict=True)) == dict.fromkeys(texts, 1.0)
    assert len(engine.identity().fingerprint) == len("rows-3:") + 64


def test_the_session_is_left_alone(people: Any) -> None:
    """No view, no setting, no tag stays behind."""
    before = people.catalog.listTables(), people.conf.getAll
    engine = open_engine(people, "people")
    _totals(engine, "churned", "amount % 0 IS NULL")
    assert (people.catalog.listTables(), people.conf.getAll) == before
    assert not people.sparkContext.getJobTags()


def test_split_works_in_place(people: Any) -> None:
    with afresh.open(people.table("people"), questions=4, method="rounds") as guard:
        assert 0 <= guard.ask("churned").value <= 1


def test_workers_that_cannot_hash_are_told_from_data_that_fail(
    nasty_frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("do-not-tell-7391")

    monkeypatch.setattr(spark_engine, "sum_frame", fail)
    with pytest.raises(EngineError, match="failed to read the data"):
        open_engine(nasty_frame).identity()
    monkeypatch.setattr(spark_engine, "try_workers", fail)
    with pytest.raises(DataError, match="PYSPARK_PYTHON") as caught:
        open_engine(nasty_frame).identity()
    assert "7391" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.usefixtures("spark")
def test_its_benchmark_measures_something() -> None:
    check("spark")
