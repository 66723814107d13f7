"""A Postgres table or view in place: how it is opened, what happens when it changes, that no row gets out."""

from __future__ import annotations

import json
import random
import re
import sys
import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import polars as pl
import psycopg
import pytest

import afresh
from afresh.engines.base import Engine
from afresh.engines.open import open_engine
from afresh.engines.remote import postgres
from afresh.engines.remote.postgres import PostgresEngine
from afresh.errors import DataChanged, DataError, EngineError, InvalidArgument, MissingExtra
from afresh.queries.asked import ask
from afresh.queries.query import make_query
from afresh.queries.tree import Type
from cli.program import afresh as program
from engines import oracle, patterns
from engines.conformance import Conformance
from engines.resampled import check_attacks
from queries import raw
from queries.rewrites import Rewrites

SECRET = "do-not-tell-7391"


class TestPostgres(Conformance):
    times = 2.0

    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls, nasty_url: str) -> Iterator[Engine]:
        engine = open_engine(nasty_url, table="nasty")
        yield engine
        engine.close()


@pytest.fixture
def database(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection
        connection.execute("DROP SCHEMA IF EXISTS mine CASCADE")


def test_rows_dropped_added_or_repeated_have_no_budget_of_their_own(
    database: psycopg.Connection[Any], postgres_url: str, tmp_path: Path
) -> None:
    database.execute("CREATE SCHEMA mine")

    def stored(frame: pd.DataFrame) -> dict[str, Any]:
        types = {"i": "integer", "f": "float8", "b": "boolean"}
        columns = [f'"{name}" {types.get(kind.kind, "text")}' for name, kind in frame.dtypes.items()]
        database.execute(b"DROP TABLE IF EXISTS mine.resampled")
        database.execute(f"CREATE TABLE mine.resampled ({', '.join(columns)})".encode())
        with database.cursor().copy("COPY mine.resampled FROM STDIN") as copy:
            for row in frame.itertuples(index=False):
                copy.write_row(row)
        return {"data": postgres_url, "table": "mine.resampled"}

    check_attacks(stored, tmp_path / "ledger.sqlite")


@pytest.mark.parametrize("kinds", [1, 300, 30_000])
def test_the_sketch_is_complete_however_many_rows_repeat(
    database: psycopg.Connection[Any], postgres_url: str, kinds: int
) -> None:
    """In tables with more rows than are compared at once, as in memory."""
    database.execute("CREATE SCHEMA mine")
    database.execute(f"CREATE TABLE mine.kinds AS SELECT i % {kinds} AS a FROM generate_series(1, 30000) AS i".encode())
    found = open_engine(postgres_url, "mine.kinds").identity("key").sketch
    in_memory = open_engine(pl.DataFrame({"a": [i % kinds for i in range(30_000)]})).identity("key").sketch
    assert found == in_memory
    assert bytes.fromhex(found).count(0) >= 256 - kinds


@pytest.fixture
def people(database: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    database.execute("CREATE SCHEMA mine")
    database.execute(
        "CREATE TABLE mine.people AS SELECT i AS id, i % 3 = 0 AS churned, i * 0.5 AS amount, "
        f"CASE WHEN i % 7 = 0 THEN '{SECRET}' ELSE 'CH' END AS country FROM generate_series(1, 600) AS i"
    )
    database.execute("CREATE VIEW mine.seen AS SELECT id, churned FROM mine.people")
    database.execute('CREATE TABLE mine."Odd Name" AS SELECT 1 AS a')
    return database


def test_what_texts_mean(postgres_url: str, database: psycopg.Connection[Any]) -> None:
    """Every construct in every other, as on the embedded engine."""
    database.execute("CREATE SCHEMA mine")
    database.execute(
        "CREATE TABLE mine.raw (x float8, y float8, k bigint, p boolean, q boolean, r boolean, s text, u text, "
        "day date, other date, moment timestamp)"
    )
    with database.cursor().copy("COPY mine.raw FROM STDIN") as copy:
        for row in raw.ROWS:
            copy.write_row(list(row.values()))
    engine = open_engine(postgres_url, table="mine.raw")
    dice = random.Random(2018)
    rewrites = Rewrites([[engine]], dice, dealt=False, library=False)
    rewrites.check(islice(raw.nested(dice), 0, None, 3))
    engine.close()
    assert rewrites.wrong == []
    assert rewrites.counts["trees"] > 2000


def _totals(engine: Any, *texts: str) -> list[float]:
    return [found.total for found in engine.moments([make_query(text, engine.schema) for text in texts])]


def test_no_pattern_goes_back_over_a_text(postgres_url: str, database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE SCHEMA mine")
    database.execute("CREATE TABLE mine.texts (s text)")
    with database.cursor().copy("COPY mine.texts FROM STDIN") as copy:
        for text in patterns.LONG:
            copy.write_row([text])
    engine = open_engine(postgres_url, table="mine.texts")
    queries = [make_query(f"s LIKE '{like}'", engine.schema) for like in patterns.SLOW]
    counts = [sum(oracle.evaluate(query.expression, {"s": text}) for text in patterns.LONG) for query in queries]
    assert [found.total for found in engine.moments(queries)] == counts
    engine.close()


def test_tables_and_views_are_found(postgres_url: str, people: Any) -> None:
    assert afresh.open(postgres_url, questions=3, table="mine.people").rows == 600
    view = open_engine(postgres_url, "mine.seen")
    assert dict(view.schema) == {"id": Type.NUMBER, "churned": Type.BOOLEAN}
    assert _totals(view, "churned", "id > 500") == [200, 100]
    assert open_engine(postgres_url, "mine.Odd Name").rows == 1
    assert open_engine(postgres_url, "MINE.PEOPLE").rows == 600
    people.execute("ALTER ROLE CURRENT_USER SET search_path = mine")
    try:
        assert open_engine(postgres_url, "people").rows == 600
    finally:
        people.execute("ALTER ROLE CURRENT_USER RESET search_path")
    for table in (None, "people", "mine.nothing", "pg_catalog.pg_class", "mine.people; DROP TABLE mine.people"):
        with pytest.raises(DataError, match=r"choose one with table=: .*mine\.people"):
            open_engine(postgres_url, table)


def test_what_cannot_be_opened(postgres_url: str, people: Any) -> None:
    people.execute("CREATE TABLE mine.none (a integer)")
    people.execute("CREATE TABLE mine.useless AS SELECT '{1}'::integer[] AS a")
    people.execute('CREATE TABLE mine.twice AS SELECT 1 AS a, 2 AS "A"')
    people.execute("CREATE VIEW mine.broken AS SELECT 1 / (id - 1) AS a FROM mine.people")
    for table, words in {"none": "no rows", "useless": "no column", "twice": "differ only in case"}.items():
        with pytest.raises(DataError, match=words):
            open_engine(postgres_url, f"mine.{table}")
    assert open_engine(postgres_url, "mine.broken").rows == 600  # only its column fails


def test_predictions_need_rows_with_an_order(postgres_url: str, people: Any) -> None:
    with afresh.open(postgres_url, questions=3, table="mine.people") as guard:
        with pytest.raises(DataError, match="write the table to a Parquet file"):
            afresh.holdout(guard, label="churned")
        assert guard.budget.spent == 0


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://nobody:hush@127.0.0.1:1/none?connect_timeout=2", "at 127.0.0.1:1/none: .*refused"),
        ("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2&password=hush", "127.0.0.1:1/none"),
        ("postgresql://nobody:hush@no-such-host.invalid/none", "at no-such-host.invalid/none"),
        ("postgresql://nobody:hu/sh@127.0.0.1:1/none", "cannot be read; write postgresql://"),
        ("postgresql://nobody:hu@sh@127.0.0.1:1/none", "cannot be read; write postgresql://"),
        ("postgresql://nobody:hush%@127.0.0.1:1/none", "cannot be read; write postgresql://"),
        ("postgresql://nobody:hush@127.0.0.1:1/none?colour=hush", "cannot be read; write postgresql://"),
        ("mysql://nobody:hush@127.0.0.1/none", "cannot open mysql://... ;"),
    ],
)
def test_addresses_that_lead_nowhere(url: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as refused:
        open_engine(url, "a")
    assert not re.search("hu|sh(?!ows)", str(refused.value).replace("no-such", ""))
    assert refused.value.__context__ is None


def test_wrong_database_and_user_are_named(postgres_url: str) -> None:
    with pytest.raises(DataError, match='database "nowhere" does not exist'):
        open_engine(postgres_url.replace("/postgres?", "/nowhere?"), "a")
    with pytest.raises(DataError, match='role "nobody" does not exist'):
        open_engine(postgres_url.replace("//postgres:", "//nobody:hush"), "a")


def test_wide_questions_share_no_statement(postgres_url: str, people: Any) -> None:
    """A relation has at most 1664 columns, and so has whatever a statement computes on its way."""
    engine = open_engine(postgres_url, "mine.people")
    texts = [f"greatest({', '.join(f'id / {100 * i + j} * 2' for i in range(1, 41))}) > 3" for j in range(45)]
    assert _totals(engine, *texts) == [float(sum(2 * k / (100 + j) > 3 for k in range(1, 601))) for j in range(45)]


def test_the_command_line(postgres_url: str, people: Any) -> None:
    done = program("ask", postgres_url, "churned", "--table", "mine.people", "--json", "--allow-wide")
    assert 0 <= json.loads(done.stdout)["value"] <= 1
    secret = "postgresql://nobody:hush@127.0.0.1:1/none?connect_timeout=2"
    done = program("ask", secret, "a")
    assert done.returncode == 1
    assert done.stderr.startswith("afresh: cannot use the Postgres database at 127.0.0.1:1/none")
    assert "hush" not in done.stderr


def test_ibis_tables_are_read_in_place(postgres_url: str, people: Any) -> None:
    backend = ibis.connect(postgres_url)
    table = backend.table("people", database="mine")
    engine = open_engine(table)
    assert isinstance(engine, PostgresEngine)
    assert engine.identity().fingerprint == open_engine(postgres_url, "mine.people").identity().fingerprint
    part = table.filter(table.id <= 100).mutate(twice=table.amount * 2).select("id", "twice")
    engine = open_engine(part)
    assert isinstance(engine, PostgresEngine)
    assert engine.rows == 100
    assert _totals(engine, "twice <= 10") == [10]
    with pytest.raises(InvalidArgument, match="leave it out"):
        open_engine(table, "people")
    backend.disconnect()


def test_other_rows_are_refused_before_anything_is_charged(postgres_url: str, people: Any) -> None:
    for table in ("mine.people", "mine.seen"):
        with afresh.open(postgres_url, questions=5, table=table) as guard:
            first = guard.ask("churned")
            people.execute("UPDATE mine.people SET amount = amount")  # as many rows as before
            assert guard.ask("churned") == first or guard.ask("churned").value == first.value
            people.execute("INSERT INTO mine.people (id) VALUES (601)")
            for _ in range(2):
                with pytest.raises(DataChanged, match="number of rows"):
                    guard.ask("id > 3")
            assert guard.budget.spent == 1
            people.execute("DELETE FROM mine.people WHERE id = 601")
            guard.ask("id > 3")
            assert guard.budget.spent == 2


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE mine.people ADD COLUMN more integer",
        "ALTER TABLE mine.people RENAME COLUMN amount TO price",
        "ALTER TABLE mine.people ALTER COLUMN id TYPE bigint",
        "ALTER TABLE mine.people RENAME TO persons",
    ],
)
def test_another_schema_is_refused_before_anything_is_charged(postgres_url: str, people: Any, change: str) -> None:
    people.execute("DROP VIEW mine.seen")
    with afresh.open(postgres_url, questions=5, table="mine.people") as guard:
        people.execute(change)
        with pytest.raises(DataChanged, match=r"columns or types|renamed"):
            guard.ask("churned")
        assert guard.budget.spent == 0


def test_a_change_after_the_check_is_noticed(postgres_url: str, people: Any) -> None:
    engine = open_engine(postgres_url, "mine.people")
    query = make_query("churned", engine.schema)
    people.execute("INSERT INTO mine.people (id) VALUES (601)")
    with pytest.raises(DataChanged, match="number of rows"):
        engine.moments([query])
    people.execute("DELETE FROM mine.people WHERE id = 601")
    people.execute("ALTER TABLE mine.people ADD COLUMN more integer")
    with pytest.raises(DataChanged, match="columns or types"):
        engine.moments([query])
    with pytest.raises(DataChanged, match="columns or types"):
        engine.identity()


def test_a_quiet_table_is_not_counted_again(postgres_url: str, people: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = PostgresEngine(postgres_url, "mine.people")
    monkeypatch.setattr(engine, "_check_count", lambda count: pytest.fail("counted"))
    engine.check_unchanged()
    people.execute("CREATE TABLE mine.unrelated ()")
    with pytest.raises(BaseException, match="counted"):
        engine.check_unchanged()


def test_a_group_is_read_alone_while_nothing_is_written(
    postgres_url: str, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its other rows are counted only after somebody has written, and a change is noticed all the same."""
    engine = PostgresEngine(postgres_url, "mine.people")
    said: list[str] = []
    one = postgres._one

    def counted() -> bool:
        said.clear()
        assert engine.moments(queries) == first
        return any("(SELECT count(*) FROM" in sql for sql in said)

    def heard(cursor: Any, sql: str) -> Any:
        said.append(sql)
        return one(cursor, sql)

    monkeypatch.setattr(postgres, "_one", heard)
    queries: Any = ask("amount", engine.schema, (0, 500), "country = 'CH'", 0).queries
    first = engine.moments(queries)
    assert first[0].total == pytest.approx(sum(i * 0.5 for i in range(1, 601) if i % 7) / 500)
    assert not all(counted() for _ in range(5))  # the server itself writes at times
    people.execute("CREATE TABLE mine.unrelated ()")
    assert counted()
    people.execute("DELETE FROM mine.people WHERE country <> 'CH'")  # the group is the same
    with pytest.raises(DataChanged, match="number of rows"):
        engine.moments(queries)
    engine.close()


def test_no_error_quotes_a_row(postgres_url: str, people: Any) -> None:
    people.execute("CREATE VIEW mine.trap AS SELECT id, country::integer AS n FROM mine.people")
    engine = PostgresEngine(postgres_url, "mine.trap")
    with pytest.raises(EngineError) as caught:
        _totals(engine, "n > 1")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert _totals(engine, "id > 599") == [1]  # the connection is still good


def test_nothing_can_be_written_and_time_is_limited(postgres_url: str, people: Any) -> None:
    people.execute("CREATE SEQUENCE mine.counter")
    people.execute("CREATE VIEW mine.writes AS SELECT nextval('mine.counter') AS n FROM mine.people LIMIT 5")
    people.execute("CREATE VIEW mine.slow AS SELECT pg_sleep(0.2) IS NULL AS s FROM mine.people WHERE id < 4")
    with pytest.raises(DataError, match="cannot be read"):
        open_engine(postgres_url, "mine.writes")
    slow = PostgresEngine(postgres_url, "mine.slow")
    slow._timeout = 0.3
    with pytest.raises(EngineError, match="failed to read"):
        _totals(slow, "s")
    assert people.execute("SELECT last_value, is_called FROM mine.counter").fetchone() == (1, False)


def test_a_lost_connection_is_made_again(postgres_url: str, people: Any) -> None:
    engine = PostgresEngine(postgres_url, "mine.people")
    people.execute("SELECT pg_terminate_backend(%s)", [engine._held[0].info.backend_pid])
    with pytest.raises(EngineError):
        _totals(engine, "churned")
    assert _totals(engine, "churned") == [200]
    engine.close()
    engine.close()


def test_types_and_their_limits(postgres_url: str, people: Any) -> None:
    """Every value of every type can be asked about, and is read as elsewhere."""
    people.execute("CREATE TYPE mine.mood AS ENUM ('sad', 'glad')")
    people.execute("CREATE DOMAIN mine.positive AS integer CHECK (VALUE > 0)")
    wanted: dict[str, tuple[str, str]] = {  # a column's expression, and a question that is true of it
        "small": ("(-32768)::smallint", "small = -32768"),
        "whole": ("2147483647::integer", "whole = 2147483647"),
        "large": ("9223372036854775807::bigint", "large = 9223372036854775807"),
        "exact": ("12345678901234567890.12::numeric(22, 2)", "exact = 12345678901234567890.12"),
        "plain": ("0.1::numeric", "plain = 0.1"),
        "huge": ("1e400::numeric", "huge IS NULL"),
        "edge": (f"{2**1024 - 2**970 - 1}::numeric", "edge > 1.79e308"),
        "over": (f"{2**1024 - 2**970}::numeric", "over IS NULL"),
        "tiny": ("1e-400::numeric", "tiny = 0"),
        "least": ("3e-324::numeric", "least = 5e-324"),
        "undefined": ("'NaN'::numeric", "undefined IS NULL"),
        "undefined2": ("'NaN'::numeric(5, 2)", "undefined2 IS NULL"),
        "endless": ("'-Infinity'::numeric", "endless IS NULL"),
        "single": ("0.1::real", "single > 0.1 AND single < 0.10001"),
        "single_inf": ("'Infinity'::real", "single_inf IS NULL"),
        "fixed": ("'ab'::char(5)", "fixed = 'ab' AND length(fixed) = 2"),
        "mood": ("'sad'::mine.mood", "mood = 'sad' AND mood > 'glad'"),
        "key": ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", "key = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
        "posit": ("5::mine.positive", "posit = 5"),
        "label": ("'x'::name", "label = 'x'"),
        "locale": ("'b' COLLATE \"unicode\"", "locale > 'C'"),
        "first": ("'4713-01-01 BC'::date", "first IS NULL"),
        "last": ("'5874897-12-31'::date", "last IS NULL"),
        "never": ("'infinity'::date", "never IS NULL"),
        "early": ("'4713-01-01 00:00:00 BC'::timestamp", "early IS NULL"),
        "late": ("'294276-12-31 23:59:59.999999'::timestamptz", "late IS NULL"),
        "eternal": ("'-infinity'::timestamptz", "eternal IS NULL"),
        "zoned": ("'2025-01-31 12:00:00.000001+05:45'::timestamptz", "zoned = '2025-01-31 06:15:00.000001'"),
        "rough": ("'2025-01-31 12:00:00.5'::timestamp(1)", "rough = '2025-01-31 12:00:00.5'"),
    }
    others = {"doc": "'{}'::jsonb", "many": "ARRAY[1]", "raw": "'\\xff'::bytea", "span": "'1 day'::interval"}
    columns = [f"{sql} AS {name}" for name, (sql, _) in wanted.items()]
    columns += [f"{sql} AS {name}" for name, sql in others.items()]
    people.execute(f"CREATE TABLE mine.limits AS SELECT {', '.join(columns)}")
    people.execute("ALTER ROLE CURRENT_USER SET timezone = 'Asia/Kathmandu'")
    try:
        engine = open_engine(postgres_url, "mine.limits")
        assert [name for name, kind in engine.schema.items() if kind is None] == list(others)
        texts = [question for _, question in wanted.values()]
        assert dict(zip(texts, _totals(engine, *texts), strict=True)) == dict.fromkeys(texts, 1.0)
        before = engine.identity().fingerprint
    finally:
        people.execute("ALTER ROLE CURRENT_USER RESET timezone")
    assert open_engine(postgres_url, "mine.limits").identity().fingerprint == before
    people.execute("UPDATE mine.limits SET doc = '{\"a\": 1}'")
    assert open_engine(postgres_url, "mine.limits").identity().fingerprint == before  # no question can use it
    people.execute("UPDATE mine.limits SET posit = 6")
    assert open_engine(postgres_url, "mine.limits").identity().fingerprint != before


def test_the_fingerprint_is_of_rows_and_names(postgres_url: str, people: Any) -> None:
    """Not of their order or place, but of everything else."""
    variants = {
        "same": "SELECT * FROM mine.people ORDER BY id DESC",
        "value": "SELECT id, churned, CASE WHEN id = 7 THEN 0 ELSE amount END AS amount, country FROM mine.people",
        "moved": "SELECT id, churned, amount, CASE id WHEN 7 THEN 'CH' WHEN 8 THEN 'x' ELSE country END AS country "
        "FROM mine.people",
        "name": "SELECT id, churned, amount AS price, country FROM mine.people",
        "twice": "SELECT * FROM mine.people UNION ALL SELECT * FROM mine.people",
        "other": "SELECT greatest(id, 2) AS id, churned, amount, country FROM mine.people",
    }
    prints = {}
    for name, sql in variants.items():
        people.execute(f"CREATE TABLE mine.{name} AS {sql}")
        prints[name] = open_engine(postgres_url, f"mine.{name}").identity().fingerprint
    assert open_engine(postgres_url, "mine.people").identity().fingerprint == prints["same"]
    assert len(set(prints.values())) == len(variants)
    people.execute(
        "CREATE TABLE mine.types AS SELECT id::text, churned::int, amount::numeric, country FROM mine.people"
    )
    assert open_engine(postgres_url, "mine.types").identity().fingerprint == prints["same"]


def test_split_works_in_place(postgres_url: str, people: Any) -> None:
    with afresh.open(postgres_url, questions=4, method="rounds", table="mine.people") as guard:
        assert 0 <= guard.ask("churned").value <= 1


def test_missing_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"afresh\[postgres\]"):
        open_engine("postgresql://localhost/x", "t")


def _same_state(postgres_url: str, table: str) -> str | None:
    """The state of a table by two openings, as soon as the server writes nothing of its own in between."""
    for _ in range(100):
        found = {open_engine(postgres_url, table).state() for _ in range(2)}
        if len(found) == 1:
            return found.pop()
    raise AssertionError("the server never rests")


def test_the_state_of_a_table_tells_of_every_write(postgres_url: str, people: psycopg.Connection[Any]) -> None:
    states = [_same_state(postgres_url, "mine.people")]
    for statement in (
        "CREATE TABLE mine.elsewhere (a int)",
        "INSERT INTO mine.elsewhere VALUES (1)",
        "UPDATE mine.people SET id = id WHERE id = 1",
        "TRUNCATE mine.elsewhere",
        "VACUUM FULL mine.people",
    ):
        people.execute(statement)
        states.append(_same_state(postgres_url, "mine.people"))
    assert None not in states
    assert len(set(states)) == len(states)
    with psycopg.connect(postgres_url) as other:  # not yet committed: nobody sees it, but it may be by then
        other.execute("UPDATE mine.people SET id = id + 1000000")
        assert _same_state(postgres_url, "mine.people") != states[-1]
        other.rollback()


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW mine.it AS SELECT * FROM mine.people",
        "CREATE UNLOGGED TABLE mine.it AS SELECT * FROM mine.people",
        "CREATE TABLE mine.it AS SELECT 1 AS a; CREATE TABLE mine.heir () INHERITS (mine.it)",
        "CREATE TABLE mine.it AS SELECT 1 AS a; ALTER TABLE mine.it ENABLE ROW LEVEL SECURITY",
    ],
)
def test_a_table_that_can_change_without_a_transaction_has_no_state(
    postgres_url: str, people: psycopg.Connection[Any], made: str
) -> None:
    for statement in made.split(";"):
        people.execute(statement)
    assert open_engine(postgres_url, "mine.it").state() is None


def test_the_identity_of_very_many_columns(postgres_url: str, people: psycopg.Connection[Any]) -> None:
    """More than one statement holds, and more than are joined at once."""
    names = [f"c{j}" for j in range(130)]
    cells = ", ".join(f"i * {j} + 0.5 AS c{j}" for j in range(130))
    people.execute(f"CREATE TABLE mine.broad AS SELECT {cells} FROM generate_series(1, 50) AS i")
    frame = pl.DataFrame({name: [i * j + 0.5 for i in range(1, 51)] for j, name in enumerate(names)})
    assert open_engine(postgres_url, "mine.broad").identity().fingerprint == open_engine(frame).identity().fingerprint


def test_a_role_that_may_not_read_is_told_so(postgres_url: str, people: psycopg.Connection[Any]) -> None:
    people.execute("DROP ROLE IF EXISTS visitor")
    people.execute("CREATE ROLE visitor LOGIN")
    people.execute("GRANT USAGE ON SCHEMA mine TO visitor")
    try:
        with pytest.raises(DataError, match=r'may not read "mine"."people"; .* GRANT SELECT') as refused:
            open_engine(postgres_url.replace("//postgres:", "//visitor:"), "mine.people")
        assert refused.value.__context__ is None
    finally:
        people.execute("REVOKE ALL ON SCHEMA mine FROM visitor")
        people.execute("DROP ROLE visitor")
