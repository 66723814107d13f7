"""Ibis expressions are a second way in: the same questions, the same refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import ibis
import pandas as pd
import pytest

import afresh
from afresh.errors import QueryError
from afresh.queries.parse import parse
from afresh.queries.query import Query, make_query
from afresh.queries.tree import Type

SCHEMA = {
    "a": Type.NUMBER,
    "i": Type.NUMBER,
    "p": Type.BOOLEAN,
    "q": Type.BOOLEAN,
    "s": Type.TEXT,
    "d": Type.DATE,
    "e": Type.DATE,
    "t": Type.TIMESTAMP,
    "u": Type.TIMESTAMP,
    "tags": None,
}
TYPES = {"a": "float64", "i": "int64", "p": "boolean", "q": "boolean", "s": "string", "d": "date", "e": "date"}
TYPES |= {"t": "timestamp", "u": "timestamp('UTC')", "tags": "array<string>"}
T: Any = ibis.table(TYPES, name="t")

SAME: list[tuple[Callable[[Any], Any], str]] = [
    (lambda t: t.a < 3, "a < 3"),
    (lambda t: t.a >= t.i, "a >= i"),
    (lambda t: t.a != 3, "a <> 3"),
    (lambda t: t.p, "p"),
    (lambda t: ~t.p & (t.q | (t.a == 1)), "NOT p AND (q OR a = 1)"),
    (lambda t: t.p == True, "p"),  # noqa: E712  # Ibis's own comparison
    (lambda t: t.a.isin([1, 2]), "a IN (1, 2)"),
    (lambda t: t.s.notin(["x"]), "s <> 'x'"),
    (lambda t: t.a.between(1, 2), "a BETWEEN 1 AND 2"),
    (lambda t: t.a.isnull(), "a IS NULL"),
    (lambda t: t.a.notnull(), "a IS NOT NULL"),
    (lambda t: t.s.like("x_%"), "s LIKE 'x_%'"),
    (lambda t: t.s.like(["x%", "%y"]), "s LIKE 'x%' OR s LIKE '%y'"),
    (lambda t: t.s.ilike("X_%"), "s ILIKE 'x_%'"),
    (lambda t: t.s.startswith("x"), "starts_with(s, 'x')"),
    (lambda t: t.s.endswith("x"), "ends_with(s, 'x')"),
    (lambda t: t.s.contains("x"), "contains(s, 'x')"),
    (lambda t: t.p.ifelse(1, 0), "CASE WHEN p THEN 1 ELSE 0 END"),
    (lambda t: ibis.ifelse(t.p, t.a, None), "CASE WHEN p THEN a END"),
    (lambda t: ibis.cases((t.p, 1), (t.q, 2), else_=3), "CASE WHEN p THEN 1 WHEN q THEN 2 ELSE 3 END"),
    (lambda t: t.a.cases((1, 2), else_=3), "CASE a WHEN 1 THEN 2 ELSE 3 END"),
    (lambda t: t.a.fill_null(0), "coalesce(a, 0)"),
    (lambda t: ibis.coalesce(t.a, t.i, 0), "coalesce(a, i, 0)"),
    (lambda t: t.a.nullif(0), "nullif(a, 0)"),
    (lambda t: ibis.least(t.a, 1), "least(a, 1)"),
    (lambda t: ibis.greatest(t.a, t.i), "greatest(i, a)"),
    (lambda t: -t.a + t.i - 1, "-a + i - 1"),
    (lambda t: t.a * t.i / 2 % 3, "a * i / 2 % 3"),
    (lambda t: t.a**2, "power(a, 2)"),
    (lambda t: t.a.abs() + t.a.sign() + t.a.floor() + t.a.ceil(), "abs(a) + sign(a) + floor(a) + ceil(a)"),
    (lambda t: t.a.round(), "round(a)"),
    (lambda t: t.a.round(2), "round(a, 2)"),
    (lambda t: t.a.exp() + t.a.ln() + t.a.log10() + t.a.sqrt(), "exp(a) + ln(a) + log10(a) + sqrt(a)"),
    (lambda t: t.s.lower() == "x", "lower(s) = 'x'"),
    (lambda t: t.s.upper() == "X", "upper(s) = 'X'"),
    (lambda t: t.s.length(), "length(s)"),
    (lambda t: t.s.left(2) == "ab", "left(s, 2) = 'ab'"),
    (lambda t: t.s.substr(1, 2) == "ab", "substring(s, 2, 2) = 'ab'"),
    (lambda t: t.d.year() * 100 + t.d.month(), "year(d) * 100 + month(d)"),
    (lambda t: t.d.quarter() + t.d.day() + t.d.day_of_year(), "quarter(d) + day(d) + extract(doy FROM d)"),
    (lambda t: t.d.day_of_week.index(), "extract(isodow FROM d) - 1"),
    (lambda t: t.t.hour() + t.t.minute() + t.t.second(), "hour(t) + minute(t) + second(t)"),
    (lambda t: t.t.epoch_seconds(), "epoch(t)"),
    (lambda t: t.d.delta(t.e, unit="day"), "date_diff('day', e, d)"),
    (lambda t: t.t.delta(t.u, unit="hour"), "date_diff('hour', u, t)"),
    (lambda t: t.s.cast("float64"), "TRY_CAST(s AS DOUBLE)"),
    (lambda t: t.s.try_cast("float64"), "CAST(s AS DOUBLE)"),
    (lambda t: t.i.cast("string") == "3", "CAST(i AS VARCHAR) = '3'"),
    (lambda t: t.p.cast("int8"), "p::int"),
    (lambda t: t.i.cast("float64"), "i"),
    (lambda t: t.d < "2025-01-31", "d < '2025-01-31'"),
    (lambda t: t.d < ibis.date("2025-01-31"), "d < DATE '2025-01-31'"),
    (lambda t: t.t < ibis.timestamp("2025-01-31 10:00:00"), "t < TIMESTAMP '2025-01-31 10:00:00'"),
    (lambda t: t.t < datetime(2025, 1, 31, 0, 0, 0, 7), "t < TIMESTAMP '2025-01-31 00:00:00.000007'"),
    (lambda t: t.u < "2025-01-31", "u < '2025-01-31'"),
    (lambda t: (t.a < 3).name("small"), "a < 3"),
    (lambda t: t.A < 3, "a < 3"),
]


def _asked(expression: Any) -> Query:
    tree = parse(expression, SCHEMA)
    return Query(tree, (0, 1) if tree.type is Type.BOOLEAN else (-10, 10))


@pytest.mark.parametrize(("expression", "text"), SAME, ids=[text for _, text in SAME])
def test_both_ways_give_one_digest(expression: Callable[[Any], Any], text: str) -> None:
    table = ibis.table({"A": "float64"}, name="t") if text == "a < 3" and "A" in expression.__code__.co_names else T
    assert _asked(expression(table)).digest == _asked(text).digest


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda t: t.a.mean(), "mean() is an aggregate, but every answer is already a mean"),
    (lambda t: t.a.sum() < 3, "sum() is an aggregate"),
    (lambda t: t.count(), "is an aggregate"),
    (lambda t: t.p.any(), "is an aggregate"),
    (lambda t: t.a.nunique(), "is an aggregate"),
    (lambda t: t.a - t.a.mean(), "is an aggregate"),
    (lambda t: t.a.lag() < 3, "window function"),
    (lambda t: t.a.mean().over() < 3, "window function"),
    (lambda t: ibis.row_number() < 3, "window function"),
    (lambda t: t.a.rank() < 3, "window function"),
    (lambda t: ibis.random() < 0.5, "must mean the same later"),
    (lambda t: t.t < ibis.now(), "must mean the same later"),
    (lambda t: t.d < ibis.today(), "must mean the same later"),
    (lambda t: ibis.uuid().cast("string") == "x", "must mean the same later"),
    (lambda t: t.a.isin(t.i), "list of constants"),
    (lambda t: t.a.isin([]), "IN list is empty"),
    (lambda t: t.a.isin([t.i]), "only constants"),
    (lambda t: t.a // 2, "floor(a / b)"),
    (lambda t: t.s + "x" == "yx", "||"),
    (lambda t: t.a.identical_to(3), "IS NOT DISTINCT FROM"),
    (lambda t: t.a.log2(), "ln(x) or log10(x)"),
    (lambda t: t.a.log(2), "ln(x) or log10(x)"),
    (lambda t: t.a.cos(), "cos() is not allowed"),
    (lambda t: t.s.re_search("x"), "regular expressions"),
    (lambda t: t.s.strip() == "x", "drops spaces"),
    (lambda t: t.s.reverse() == "x", "not allowed"),
    (lambda t: t.s.hash() == 3, "hash"),
    (lambda t: t.s.find("x") > 0, "write contains"),
    (lambda t: t.s.right(2) == "x", "ends_with"),
    (lambda t: t.s.like("10$%", escape="$") if False else t.s.substr(-1, 2) == "x", "whole number between 1"),
    (lambda t: t.a.clip(0, 1), "bounds clip"),
    (lambda t: t.a.isnan(), "NULL to every question"),
    (lambda t: t.p ^ t.q, "a != b"),
    (lambda t: t.i & 1, "bits"),
    (lambda t: t.a.cast("int64"), "write round(x), floor(x)"),
    (lambda t: t.a.cast("float32"), "write DOUBLE"),
    (lambda t: t.d.cast("string") == "x", "date part"),
    (lambda t: t.t.truncate("M") < "2025-01-01", "not truncated"),
    (lambda t: t.t - t.t, "interval"),
    (lambda t: t.t.date() < "2025-01-01", "dates are not made"),
    (lambda t: t.tags.length() > 3, "lists, structs"),
    (lambda t: t.tags[0] == "x", "lists, structs"),
    (lambda t: t.p.ifelse(1, 0) == ibis.param("int64"), "parameters are not filled in"),
    (lambda t: t.filter(t.p).a < 3, "as where="),
    (lambda t: t.mutate(b=t.a + 1).b < 3, "one plain table"),
    (lambda t: t.a < ibis.table({"a": "float64"}, name="z").a, "columns of two"),
    (lambda t: ibis.table({"ages": "float64"}, name="t").ages < 3, "there is no column 'ages'"),
    (lambda t: ibis.table({"a": "string"}, name="t").a == "x", "a number in the data, but string in the Ibis table"),
    (lambda t: t, "a whole table"),
    (lambda t: ibis._.a < 3, "this is a"),
    (lambda t: t.a < float("inf"), "finite"),
    (lambda t: t.a < 10**400 if False else t.a < float("nan"), "finite"),
    (lambda t: t.s == "a\0b", "constant of type"),
    (lambda t: t.a < ibis.null(), "IS NULL"),
    (lambda t: t.s, "a question is a condition or a number"),
    (lambda t: t.a, "has no bounds"),
    (lambda t: ibis.literal(3), "has no value but 3"),
]


@pytest.mark.parametrize(("expression", "words"), REFUSED, ids=range(len(REFUSED)))
def test_refused(expression: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(QueryError) as caught:
        make_query(expression(T), SCHEMA)
    assert words in str(caught.value)


def test_deep_and_large_expressions_are_refused() -> None:
    deep, wide = T.a, T.p
    for _ in range(150):
        deep, wide = deep + 1, wide | T.q
    with pytest.raises(QueryError, match="in a chain"):
        parse(deep < 3, SCHEMA)
    with pytest.raises(QueryError, match="in a chain"):
        parse(wide, SCHEMA)
    doubled = T.a
    for _ in range(40):  # a graph of 40 nodes, as a tree one of 2^40
        doubled = doubled + doubled
    with pytest.raises(QueryError, match="too long"):
        parse(doubled < 3, SCHEMA)


def test_a_guard_takes_both() -> None:
    frame = pd.DataFrame({"age": range(1000), "country": ["CH", "DE"] * 500})
    table = ibis.memtable(frame)
    with afresh.open(frame, questions=10, method="stabilized", simulation_seed=1, made_up=True) as guard:
        first = guard.ask("age < 300", where="country = 'CH'")
        again = guard.ask(table.age < 300, where=table.country == "CH")
        assert (first.charged, again.charged) == (2, 0)
        assert again.value == first.value
        listed = guard.ask_many([table.age < 300, {"expression": table.age, "bounds": (0, 1000)}])
        assert [answer.question for answer in listed] == ["age < 300", "age within [0, 1000]"]
        with pytest.raises(QueryError, match="aggregate"):
            guard.ask(table.age.mean())


def test_without_ibis_nothing_imports_it() -> None:
    code = (
        "import sys; from afresh.queries.parse import parse; from afresh.queries.tree import Type\n"
        "parse('a < 3', {'a': Type.NUMBER})\n"
        "try: parse(3, {})\n"
        "except Exception as error: assert 'or an Ibis expression' in str(error)\n"
        "sys.exit('ibis' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
