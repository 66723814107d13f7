"""Reading and writing a question takes work in proportion to its length, for every construct of the language.

Work is counted, not timed: calls of Python and C functions, from the text to the tree, its bounds, its words and its
digest. Constructs that are written out, as BETWEEN is, make more parts of a text than it shows, at most 5,000; so the
length of a question is that of its text and of its tree together.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from afresh.errors import QueryError
from afresh.queries.operations import FUNCTIONS
from afresh.queries.query import Query, make_query
from afresh.queries.tree import Op, Type
from queries.hostile import HOSTILE
from queries.hostile import SCHEMA as HOSTILE_SCHEMA
from work import MOST, work

SCHEMA: dict[str, Type | None] = {
    **dict.fromkeys("abc", Type.NUMBER),
    **dict.fromkeys("pqr", Type.BOOLEAN),
    "s": Type.TEXT,
    "d": Type.DATE,
    "t": Type.TIMESTAMP,
}
Made = Callable[[int], str]


def _chain(sign: str, part: str) -> Made:
    return lambda n: f" {sign} ".join([part] * n)


def _nest(before: str, part: str, after: str, around: str = "{}") -> Made:
    return lambda n: around.format(before * n + part + after * n)


def _listed(before: str, sign: str, item: str, after: str) -> Made:
    return lambda n: before + sign.join(item.format(i) for i in range(n)) + after


_NUMBER_CALLS = [f"{name}(" for name in ("abs", "sign", "floor", "ceil", "round", "sqrt", "exp", "ln", "log10")]
CASES: dict[str, tuple[int, Made]] = {
    **{f"p {sign} p": (40, _chain(sign, "p")) for sign in ("=", "<>", "AND", "OR")},
    **{f"a {sign} a": (40, _chain(sign, "a")) for sign in "+-*/%^"},
    **{f"{word}a)": (11, _nest(word, "a", ")")) for word in _NUMBER_CALLS},
    **{
        f"{before}{part}{after}": (11, _nest(before, part, after))
        for before, part, after in [
            *[("(", "p", ")"), ("NOT (", "p", ")"), ("NOT (q AND ", "p", ")"), ("q <> (r AND ", "p", ")")],
            *[("(", "p", ") IS TRUE"), ("(", "p", " AND q) IS NOT TRUE"), ("(", "p", " OR q) = (q AND r)")],
            *[("(", "p", " AND q) IS NULL"), ("(", "p", " AND q) IS NOT NULL"), ("- (a - ", "a", ")")],
            *[("a * -(", "a", ")"), ("power(a, ", "a", ")"), ("power(", "a", ", a)"), ("1 / (", "a", " + b)")],
            *[("round(", "a", ", 2)"), ("CASE WHEN p THEN 1 ELSE ", "a", " END"), ("coalesce(a, ", "b", ")")],
            *[("CASE WHEN p THEN ", "a", " ELSE 2 END"), ("CASE WHEN ", "p", " THEN q ELSE r END")],
            *[("coalesce(", "p", ", q)"), ("coalesce(", "p", ", FALSE)"), ("least(a, ", "b", ")")],
            *[("greatest(", "b", ", 3)"), ("nullif(0, ", "a", ")"), ("CASE WHEN ", "a", " IN (1, 2) THEN 1 END")],
            *[("CASE WHEN ", "a", " NOT IN (1, 2) THEN 1 END"), ("CASE WHEN ", "a", " < 1 THEN 1 END")],
            *[("CASE WHEN ", "a", " <> 1 THEN 1 END"), ("CASE WHEN 1 < ", "a", " THEN 1 END")],
        ]
    },
    **{
        f"{before}{part}{after}": (4, _nest(before, part, after))  # which double the tree at every level
        for before, part, after in [
            *[("CASE WHEN ", "a", " BETWEEN 1 AND 2 THEN 1 END"), ("CASE ", "a", " WHEN 1 THEN b WHEN 2 THEN c END")],
            *[("nullif(", "a", ", 0)"), ("CAST(", "p", " AS DOUBLE) > 0")],
        ]
    },
    **{
        f"{before}s{after}": (11, _nest(before, "s", after, "{} = 'x'"))
        for before, after in [
            *[("lower(", ")"), ("upper(", ")"), ("trim(", ")"), ("substring(", ", 2)"), ("left(", ", 2)")],
            *[("coalesce('x', ", ")"), ("least(", ", 'x')"), ("CASE WHEN p THEN ", " END")],
        ]
    },
    "CAST(CAST(": (5, _nest("CAST(CAST(", "s", " AS DOUBLE) AS VARCHAR)", "{} = 'x'")),
    "starts_with(": (3, _nest("CAST(starts_with(s, CAST(length(", "s", ") AS VARCHAR)) AS VARCHAR)", "{} = 'x'")),
    "NOT NOT": (11, lambda n: "NOT " * n + "p"),
    "- -": (11, lambda n: "- " * n + "a"),
    "::double": (40, lambda n: "a" + "::double" * n),
    "IS NULL": (40, lambda n: "a" + " IS NULL" * n),
    "IS NOT FALSE": (12, lambda n: "p" + " IS NOT FALSE" * n),
    "= FALSE": (40, lambda n: "(p AND q OR r)" + " = FALSE" * n),
    "IN list": (500, _listed("a IN (", ", ", "{}", ")")),
    "NOT IN list": (500, _listed("s NOT IN (", ", ", "'{}'", ")")),
    "a = 1 OR ...": (300, _listed("", " OR ", "a = {}", "")),
    "a <> 1 AND ...": (300, _listed("", " AND ", "a <> {}", "")),
    "(p AND a = 1) OR ...": (200, _listed("", " OR ", "(p AND a = {})", "")),
    "WHEN of one result": (200, _listed("CASE ", " ", "WHEN a < {} THEN 1", " ELSE 0 END")),
    "WHEN of other results": (200, _listed("CASE ", " ", "WHEN a < {0} THEN {0}", " ELSE 0 END")),
    "CASE a WHEN": (200, _listed("CASE a ", " ", "WHEN {0} THEN {0} % 2", " ELSE 0 END")),
    "BETWEEN": (150, _listed("", " OR ", "a BETWEEN {0} AND b", "")),
    "coalesce list": (400, _listed("coalesce(", ", ", "a + {}", ")")),
    "least list": (400, _listed("least(", ", ", "a + {}", ")")),
    "LIKE": (100, _listed("", " OR ", "s LIKE '%x_{}'", "")),
    "ILIKE": (100, _listed("", " OR ", "s ILIKE 'X{}%'", "")),
    "wildcards": (25, lambda n: "s LIKE '" + "%x_" * n + "'"),
    "contains": (100, _listed("", " OR ", "contains(s, '{}') OR ends_with(s, 'x')", "")),
    "a long text": (4000, lambda n: f"s = '{'x' * n}'"),
    "many digits": (3000, lambda n: "a < 0." + "1" * n),
    "dates": (40, _listed("", " + ", "(d - DATE '2020-01-01')", "")),
    "date_diff": (40, _listed("", " AND ", "date_diff('week', d, t) > {}", "")),
    "extract": (40, _listed("", " AND ", "extract(doy FROM d) > {} AND hour(t) < 3 AND date_part('month', d) = 2", "")),
}


def _read(text: str) -> Query:
    try:
        query = make_query(text, SCHEMA)
    except QueryError as error:
        if not any(words in str(error) for words in ("has no bounds", "no value but", "NULL on every row")):
            raise
        query = make_query(text, SCHEMA, (0.0, 1.0))
    assert query.text
    assert query.digest
    assert query.levels in (None, 2)
    return query


def _work_for_its_length(text: str) -> float:
    size = _read(text).expression.size  # also loads what is loaded once
    return work(lambda: _read(text)) / (len(text) + size)


@pytest.mark.parametrize("name", CASES)
def test_twice_as_long_is_twice_the_work(name: str) -> None:
    """Quadratic work would be twice as much for its length; 1.6 leaves room for what nesting, at most 24, adds."""
    count, made = CASES[name]
    once, twice = (_work_for_its_length(made(n)) for n in (count, 2 * count))
    assert twice < 1.6 * once


def test_every_construct_is_there() -> None:
    texts = [made(3) for _, made in CASES.values()]
    words = " ".join(texts).lower()
    assert [name for name in FUNCTIONS if f"{name}(" not in words] == _ELSEWHERE
    used = {str(op) for text in texts for op in Op if f'"{op.value}"' in _serialized(text)}
    assert {str(op) for op in Op} == used


_ELSEWHERE = ["day", "minute", "month", "quarter", "second", "try_cast", "year"]  # as hour, or another spelling


def _serialized(text: str) -> str:
    from afresh.queries.serialize import serialize

    return serialize(_read(text).expression)


@pytest.mark.parametrize(
    "text",
    [
        *(" = ".join(["p"] * n) for n in (32, 99)),
        *(f"{'CASE WHEN ' * 24}a{' NOT IN (1) THEN 1 END' * 24}", " <> ".join(["p"] * 50)),
        *[text for cases in HOSTILE.values() for text, _ in cases],
    ],
)
def test_no_question_takes_long(text: str) -> None:
    """At most a few thousand calls a character, for what is read and for what is refused."""

    def read() -> None:
        try:
            query = make_query(text, {**HOSTILE_SCHEMA, **SCHEMA})
            assert query.text
            assert query.digest
        except QueryError:
            pass

    read()
    assert work(read) < MOST
