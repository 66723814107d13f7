"""Mistaken and hostile expressions: each is refused before anything runs, with words that help."""

from __future__ import annotations

import subprocess
import sys

import pytest

from afresh.errors import InvalidArgument, QueryError
from afresh.queries.parse import parse
from afresh.queries.query import make_query
from afresh.queries.tree import Type

SCHEMA = {
    "age": Type.NUMBER,
    "tenure": Type.NUMBER,
    "churned": Type.BOOLEAN,
    "country": Type.TEXT,
    "day": Type.DATE,
    "at": Type.TIMESTAMP,
    "tags": None,
}

REFUSED = [
    ("", "empty"),
    ("   ", "empty"),
    ("-- nothing", "empty"),
    ("age <", "not an expression"),
    ("age = = 3", "not an expression"),
    ("age tenure", "not an expression"),
    ("'abc", "quotes"),
    ("(age < 3", "not an expression"),
    ("age < 3)", "not an expression"),
    ("churned) OR (churned", "not an expression"),
    ("case when churned then 1", "not an expression"),
    ("abs()", "not an expression"),
    ("abs(age, 2)", "not an expression"),
    ("power(age)", "not an expression"),
    ("drop table data", "DROP is not part of a question"),
    ("0x1F < age", "not an expression"),
    ("age AS a", "not an expression"),
    ("churned -- really", "comments"),
    ("/* c */ churned", "comments"),
    ("churned; churned", "one question"),
    ("churned;", "one question"),
    ("SELECT 1", "without SELECT"),
    ("from data", "without SELECT"),
    ("agee < 3", "did you mean age"),
    ("TENUR < 3", "The columns are: age, tenure"),
    ('country = "CH"', "single quotes: 'CH'"),
    ("rowid < 3", "rows have no number"),
    ("data.age < 3", "without a table"),
    ("a.b.age < 3", "without a table"),
    ("data.* = 3", "* stands for all columns"),
    ("tags = 'x'", "type no question can use"),
    ("count(*)", "aggregate"),
    ("avg(age)", "aggregate"),
    ("median(age)", 'measure(afresh.statistics.Quantile("age", 0.5, bounds='),
    ("stddev(age + 1)", 'afresh.statistics.StandardDeviation("x", bounds='),
    ("corr(age, tenure)", "afresh.statistics.Correlation"),
    ("percentile_cont(0.5) within group (order by age)", 'afresh.statistics.Quantile("x", level'),
    ("churned && age < 3", "write a AND b"),
    ("churned || age < 3", "write a OR b"),
    ("age WHERE country = 'CH'", "where="),
    ("SELECT avg(age) FROM data WHERE churned", "where="),
    ("age GROUP BY country", "afresh.statistics.GroupMeans"),
    ("country = CH", "single quotes: 'CH'"),
    ("quantile(age, 0.5)", "aggregate"),
    ("sum(age) filter (where churned)", "already a mean"),
    ("avg(age) over ()", "window"),
    ("row_number() over (order by age)", "window"),
    ("lag(age) over (order by age)", "window"),
    ("age = (select max(age) from data)", "another query"),
    ("exists(select 1)", "another query"),
    ("age in (select 1)", "list of constants"),
    ("age in tenure", "list of constants"),
    ("age = all (select 1)", "another query"),
    ("age = any(tenure)", "ANY"),
    ("*", "all columns"),
    ("COLUMNS(*) < 1", "name one column"),
    ("random() < 0.5", "must mean the same later"),
    ("now() > at", "must mean the same later"),
    ("day < current_date", "must mean the same later"),
    ("at < current_timestamp", "must mean the same later"),
    ("day < today()", "must mean the same later"),
    ("uuid() = 'a'", "must mean the same later"),
    ("nextval('s') = 1", "must mean the same later"),
    ("current_setting('x') = 'y'", "no file, table, setting"),
    ("current_user = 'x'", "not allowed"),
    ("cast(age as int) = 3", "write round(x), floor(x)"),
    ("age::int = 3", "write round(x), floor(x)"),
    ("country::date = day", "convert the column before"),
    ("try_cast(country as int) = 3", "of TRY_CAST(x AS DOUBLE)"),
    ("age::float = 3", "write DOUBLE"),
    ("age::decimal(3, 1) = 3", "write round(x, digits)"),
    ("age::boolean", "x <> 0"),
    ("day::varchar = 'x'", "date part"),
    ("day::double = 3", "date part"),
    ("day::timestamp < at", "DATE '2025-01-31'"),
    ("at::date = day", "DATE '2025-01-31'"),
    ("country::json = 'x'", "a cast to JSON is not allowed"),
    ("age::blob = 'x'", "values can be cast to DOUBLE and VARCHAR"),
    ("age::int[] = 1", "lists and slices"),
    ("age < ?", "write the value itself"),
    ("age < $1", "write the value itself"),
    ("age < :limit", "write the value itself"),
    ("age // 2 = 1", "floor(a / b)"),
    ("country || 'x' = 'y'", "||"),
    ("age is distinct from 3", "IS DISTINCT FROM"),
    ("age is not distinct from 3", "IS NOT DISTINCT FROM"),
    ("country like 'a$%' escape '$'", "ESCAPE"),
    ("country like country", "must be a constant"),
    ("country like any ('a', 'b')", "LIKE ANY"),
    ("country ~ 'a.*'", "LIKE 'abc%'"),
    ("country similar to 'a'", "regular expressions"),
    ("country glob 'a*'", "LIKE"),
    ("starts_with(age, 'a')", "starts_with needs a text, but age is a number; write TRY_CAST(x AS VARCHAR)"),
    ("contains(country, 3)", "contains needs a text"),
    ("strpos(country, 'a') > 0", "write contains(x, 'abc')"),
    ("right(country, 2) = 'CH'", "write ends_with"),
    ("substr(country, 0, 2) = 'CH'", "whole number between 1 and"),
    ("substr(country, -2) = 'CH'", "whole number between 1 and"),
    ("substr(country, 1.5) = 'CH'", "whole number between 1 and"),
    ("left(country, -1) = 'CH'", "whole number between 0 and"),
    ("left(country, age) = 'CH'", "constant whole number"),
    ("dayofweek(day) = 1", "write extract(isodow FROM x)"),
    ("extract(week from day) = 1", "write one of year, quarter, month"),
    ("extract(hour from day) = 1", "a date has no hour"),
    ("year(age) = 1", "year needs a date, but age is a number"),
    ("date_part(country, day) = 1", "with the part as a constant"),
    ("date_part('century', day) = 1", "'century' is not a part"),
    ("date_diff('day', day) = 1", "not an expression"),
    ("date_diff('eon', day, day) = 1", "'eon' is not a unit"),
    ("date_diff('day', age, age) = 1", "date_diff needs a date"),
    ("date_diff('day', day, 'soon') = 1", "'soon' is not a date"),
    ("date_trunc('month', day) = day", "dates are not truncated"),
    ("at - at < 3", "date_diff('second', b, a)"),
    ("day - 3 < day", "a number cannot be subtracted from a date"),
    ("day - at < 3", "date_diff('day', a, b), which takes both"),
    ("date_add(day, 3) = day", "not allowed"),
    ("isnan(age)", "NULL to every question"),
    ("NULL AND churned", "IS NULL"),
    ("-NULL = 3", "IS NULL"),
    ("NULL IS NULL", "IS NULL"),
    ("if(churned, 1, 0)", "CASE WHEN"),
    ("log(age) < 1", "ln(x) or log10(x)"),
    ("log2(age) < 1", "ln(x) or log10(x)"),
    ("log(2, age) < 1", "ln(x) or log10(x)"),
    ("day < day + interval '1 day'", "intervals are not supported"),
    ("interval '1 day' = 3", "intervals"),
    ("(1, 2) = 3", "only allowed after IN"),
    ("age in ((1, 2))", "only allowed after IN"),
    ("country collate nocase = 'a'", "collations"),
    ("md5(country) = 'x'", "md5() is not allowed: hashes"),
    ("sqr(age) < 2", "did you mean sqrt"),
    ("regexp_matches(country, 'x')", "regular expressions"),
    ("hash(country) = 1", "not allowed"),
    ("read_csv('/etc/passwd') = 1", "read_csv() is not allowed: a question reads the columns"),
    ("tags[1] = 2", "not allowed"),
    ("[1, 2] = 1", "not allowed"),
    ("{'a': 1} = 1", "not allowed"),
    ("age & 1 = 1", "not allowed"),
    ("age between symmetric 3 and 1", "symmetric"),
    ("trim(both 'x' from country) = 'a'", "plain form"),
    ("ltrim(country) = 'a'", "plain form"),
    ("abs(distinct age) < 1", "already a mean"),
    ("age = NULL", "IS NULL"),
    ("age in (1, NULL)", "IS NULL"),
    ("NULL", "IS NULL"),
    ("coalesce(NULL, NULL) = 1", "besides NULL"),
    ("age in ()", "empty"),
    ("age in (1, tenure)", "only constants"),
    ("age is 3", "IS must be followed"),
    ("age = 'old'", "age is a number and 'old' a text"),
    ("country = 3", "single quotes"),
    ("country + 1 < 2", "+ needs a number, but country is a text"),
    ("churned + 1 < 2", "CASE WHEN"),
    ("churned = 1", "CASE WHEN"),
    ("churned < TRUE", "no order"),
    ("least(churned, churned)", "no order"),
    ("age AND churned", "AND needs a boolean, but age is a number; compare it"),
    ("NOT age", "needs a boolean"),
    ("age < tenure < 3", "one type"),
    ("lower(age) = 'a'", "lower needs a text"),
    ("age like '1%'", "LIKE needs a text"),
    ("case when age then 1 end < 2", "WHEN needs a boolean"),
    ("case when churned then 1 else 'a' end = 1", "CASE needs operands of one type"),
    ("coalesce(age, country) = 1", "coalesce needs operands of one type"),
    ("day = 'yesterday'", "is not a date"),
    ("day = '2025-13-01'", "is not a date"),
    ("day = '2025-01-01 12:00'", "is not a date"),
    ("at < TIMESTAMP '2025-01-01 00:00:00+02:00'", "without a zone"),
    ("day < at", "one type"),
    ("round(age, tenure) = 1", "whole number between -15 and 15"),
    ("round(age, 0.5) = 1", "whole number between -15 and 15"),
    ("round(age, 99) = 1", "whole number between -15 and 15"),
    ("1e999 < age", "too large"),
    ("country = 'a\0b'", "NUL"),
    ("country", "a question is a condition or a number, but country is a text"),
    ("day", "a question is a condition or a number"),
    ("(" * 60 + "age" + ")" * 60 + " < 3", "nested too deeply"),
    ("abs(" * 25 + "age" + ")" * 25 + " < 3", "nested too deeply"),
    ("NOT " * 2000 + "churned", "nested too deeply|in a chain"),
    ("- " * 4000 + "age < 1", "nested too deeply|in a chain"),
    ("+".join(["age"] * 2000) + " < 3", "in a chain"),
    ("age < 3 OR " * 2000 + "churned", "10,000"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_refused_with_words_that_help(text: str, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        make_query(text, SCHEMA)
    assert any(word in str(caught.value) for word in words.split("|")), str(caught.value)


def test_written_out_expressions_stay_small() -> None:
    text = "age"
    for _ in range(20):  # every level repeats its subject
        text = f"case {text} when 1 then 1 when 2 then 2 when 3 then 3 end"
    with pytest.raises(QueryError, match="too long"):
        parse(text, SCHEMA)


def test_no_recursion_error_from_a_deep_stack() -> None:
    def dive(depth: int) -> None:
        if depth:
            dive(depth - 1)
        else:
            with pytest.raises(QueryError, match="nested too deeply"):
                parse("abs(" * 20 + "age" + ")" * 20, SCHEMA)

    dive(sys.getrecursionlimit() - 400)


def test_long_conditions_are_fine() -> None:
    query = make_query(" OR ".join(f"age = {i}" for i in range(700)), SCHEMA)
    assert query.levels == 2


def test_not_text() -> None:
    with pytest.raises(QueryError, match="got int"):
        parse(3, SCHEMA)


@pytest.mark.parametrize(
    ("text", "bounds", "missing", "words"),
    [
        ("age", (1, 0), None, "low < high"),
        ("age", (0, 0), None, "low < high"),
        ("age", (0, float("inf")), None, "finite"),
        ("age", (float("nan"), 1), None, "finite"),
        ("age", (-1e308, 1e308), None, "finite"),
        ("age", (0, 1, 2), None, "low, high"),
        ("age", 5, None, "low, high"),
        ("age", ("a", "b"), None, "low, high"),
        ("age", (0, 10), 11, "missing == 11"),
        ("age", (0, 10), float("nan"), "missing == nan"),
        ("churned", (0, 2), None, "leave the bounds out"),
        ("churned", None, 0.5, "0 or 1"),
    ],
)
def test_bad_bounds(text: str, bounds: tuple[float, float], missing: float | None, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        make_query(text, SCHEMA, bounds, missing)


def test_importing_queries_does_not_import_sqlglot() -> None:
    code = "import sys, afresh.engines.base; sys.exit(len({'sqlglot', 'duckdb'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


DATES = ["2020-01-01", "01/31/2020", "31.12.2020", "2020-01", "12:30", "Jan 5, 2020", "3 May", "2020-01-01T12:00:00Z"]
COUNTED = ["9", "-3.5", "1e5", " 7 ", "8000", "20200101", "1,000", "1'000.50", "$5", "10%", "(12)", "5 €"]
WORDS = ["", "Z", "a1", "A-12", "March-April", "May", "12 angry men", "2020Q1", "nan", "é"]


@pytest.mark.parametrize(
    "form",
    [
        "country < {}",
        "{} >= country",
        "country BETWEEN 'A' AND {}",
        "least(country, {}) = 'A'",
        "greatest('A', {}, country) = 'A'",
        "lower(country) <= coalesce(country, {})",
        "CASE WHEN churned THEN {} ELSE 'A' END > country",
        "CASE WHEN country < {} THEN 1 ELSE 0 END",
    ],
)
def test_text_is_not_ordered_beside_dates_and_numbers(form: str) -> None:
    """Letter by letter, '12/31/2019' comes after '01/31/2020': an answer would be about something else."""
    for texts, kind, remedy in ((DATES, "date", "afresh.CSV"), (COUNTED, "number", "TRY_CAST")):
        for text in texts:
            with pytest.raises(QueryError, match=f"looks like a {kind}.*{remedy}"):
                make_query(form.format("'" + text.replace("'", "''") + "'"), SCHEMA)
    for text in WORDS:
        make_query(form.format("'" + text + "'"), SCHEMA)


@pytest.mark.parametrize(
    "form", ["country = {}", "country IN ({}, 'A')", "country LIKE {}", "starts_with(country, {})"]
)
def test_text_equals_any_text(form: str) -> None:
    for text in (*DATES, *COUNTED):
        make_query(form.format("'" + text.replace("'", "''") + "'"), SCHEMA)
