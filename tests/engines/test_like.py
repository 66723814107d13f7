"""LIKE means the same on every engine, and none goes back over a text.

Postgres and Spark take the texts of this file in tests of their own.
"""

from __future__ import annotations

import random
import re

import polars as pl
import pyarrow as pa
import pytest

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.embedded.polars_expr import NotTranslated, Translator
from afresh.engines.sql import spark
from afresh.engines.sql.rendering import Statement
from afresh.errors import QueryError
from afresh.queries import build
from afresh.queries.query import Query, make_query
from afresh.queries.tree import Column, Literal, Type
from engines import oracle, patterns

S = Column("s", Type.TEXT)


def _like(like: str) -> Query:
    return Query(build.like(S, Literal(like, Type.TEXT)))


def _matches(query: Query, texts: list[str]) -> int:
    return sum(oracle.evaluate(query.expression, {"s": text}) for text in texts)


def test_the_reference_itself() -> None:
    for like, text, expected in [
        ("", "", True),
        ("", "a", False),
        ("%", "", True),
        ("_", "😀", True),
        ("_", "", False),
        ("a%b", "a\nb", True),
        ("a%b", "ab_", False),
        ("%a%b%", "xba", False),
        ("%a_%", "xab", True),
        ("a%a", "a", False),
        ("\\%", "\\x", True),
    ]:
        assert oracle.evaluate(_like(like).expression, {"s": text}) is expected, (like, text)


def test_embedded_patterns_mean_the_same() -> None:
    """In DuckDB, and in Polars where it takes them."""
    dice = random.Random(4)
    likes = [patterns.pattern(dice) for _ in range(400)]
    texts = [patterns.text(dice, like) for like in likes for _ in range(3)]
    rows = pa.table({"s": pa.array([*texts, None])})
    with_polars, without = EmbeddedEngine(rows), EmbeddedEngine(rows)
    without.__dict__["_polars"] = None
    queries = [_like(like) for like in likes]
    expected = [_matches(query, texts) for query in queries]
    assert sum(0 < count < len(texts) for count in expected) > 300
    for engine in (with_polars, without):
        assert [found.total for found in engine.moments(queries)] == expected
        engine.close()


def _spark_regex(like: str) -> str:
    """The expression Spark is given, as Python's `re` writes it: its atomic groups mean the same."""
    (hexadecimal,) = re.findall("RLIKE CAST\\(X'([0-9a-f]*)' AS STRING\\)", spark._like(("t", like)))
    return bytes.fromhex(hexadecimal).decode().replace("\\z", "\\Z")


def test_spark_patterns_mean_the_same() -> None:
    dice, matched = random.Random(5), 0
    for _ in range(5000):
        like = patterns.pattern(dice)
        text = patterns.text(dice, like)
        expected = oracle.evaluate(_like(like).expression, {"s": text})
        assert (re.search(_spark_regex(like), text) is not None) is expected, (like, text)
        matched += expected
    assert 500 < matched < 4500


@pytest.mark.parametrize("like", patterns.SLOW)
def test_spark_never_goes_back(like: str) -> None:
    """Every piece but the last stands in an atomic group; the last has a fixed length, after the only other *."""
    regex = _spark_regex(like)
    outside = re.sub(r"\(\?>\.\*\?[^()]*\)", "", regex)
    assert outside.count("*") == (not like.endswith("%"))
    assert not set("+?|") & set(outside.removeprefix("(?s)"))
    for text in patterns.LONG:  # would not end
        assert (re.search(regex, text) is not None) is oracle.evaluate(_like(like).expression, {"s": text})


def test_embedded_never_goes_back() -> None:
    """The engine's limit of time would end it, with an error."""
    engine = EmbeddedEngine(pa.table({"s": patterns.LONG}), time_limit=60)
    queries = [_like(like) for like in patterns.SLOW]
    assert [found.total for found in engine.moments(queries)] == [_matches(query, patterns.LONG) for query in queries]
    engine.close()


def test_polars_is_given_no_expression_to_match() -> None:
    """Its literal searches are linear; whatever else a pattern needs is DuckDB's."""
    translator = Translator({"s": pl.String()}, clean=True)
    assert "contains" in str(translator.values(_like("%a.b%")))
    for like in ("a_", "%a%b%", "_%"):
        with pytest.raises(NotTranslated):
            translator.values(_like(like))


def test_long_patterns_are_refused() -> None:
    schema = {"s": Type.TEXT}
    for like in ("x" * 1001, "a_" * 101, "%a_" * 51):
        with pytest.raises(QueryError, match="at most 1,000 characters and 100 wildcards"):
            make_query(f"s LIKE '{like}'", schema)
    longest = EmbeddedEngine(pa.table({"s": ["a" * 5000, "_" * 1000, "b"]}))
    for like in ("_" * 1000, "%" + "_" * 998 + "%", "%" + "😀" * 900 + "_%", "%a_" * 50):
        query = make_query(f"s LIKE '{like}'", schema)
        assert longest.moments([query])[0].total == _matches(query, ["a" * 5000, "_" * 1000, "b"]), like
    longest.close()


def test_no_statement_has_a_pattern_with_two_ways() -> None:
    """DuckDB 2.0 does not go back over a text in its LIKE either, but promises nothing."""
    from afresh.engines.sql.duckdb import DuckDBDialect

    for like in patterns.SLOW:
        statement = Statement(DuckDBDialect(), {"s": "VARCHAR"})
        statement.add(_like(like))
        if "_" in like:
            assert " LIKE " not in str(statement.steps())
