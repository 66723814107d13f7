"""What a question means is in its text, and rows without a number are left out of its mean."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from afresh.errors import InvalidArgument, QueryError
from afresh.queries.asked import Asked, ask
from afresh.queries.bounds import never_missing
from afresh.queries.parse import parse
from afresh.queries.query import Query
from afresh.queries.text import readable
from afresh.queries.tree import Node, Type
from engines import oracle
from engines.nasty import ROWS
from queries import expressions

SCHEMA: dict[str, Type | None] = {
    "amount": Type.NUMBER,
    "other": Type.NUMBER,
    "cured": Type.BOOLEAN,
    "country": Type.TEXT,
}
NUMBER: dict[str, Any] = {"expression": "amount", "bounds": (0, 500)}


def asked(**arguments: Any) -> Asked:
    return ask(schema=SCHEMA, **arguments)


def digests(question: Asked) -> list[str]:
    return [query.digest for query in question.queries]


@pytest.mark.parametrize(
    ("arguments", "text", "answers"),
    [
        ({"expression": "cured"}, "cured", 1),
        ({"expression": "cured", "missing": 0}, "cured", 1),
        ({"expression": "cured", "missing": 1}, "cured (NULL counts as true)", 1),
        ({"expression": "cured IS TRUE", "missing": 1}, "cured IS TRUE", 1),
        (
            {"expression": "cured", "missing": 1, "where": "other > 1"},
            "cured (NULL counts as true) where other > 1",
            2,
        ),
        (NUMBER, "amount within [0, 500]", 2),
        ({**NUMBER, "missing": 0}, "amount within [0, 500], missing as 0", 1),
        ({**NUMBER, "missing": 2.5}, "amount within [0, 500], missing as 2.5", 1),
        ({**NUMBER, "where": "cured"}, "amount within [0, 500] where cured", 2),
        ({**NUMBER, "where": "cured", "missing": 7}, "amount within [0, 500], missing as 7 where cured", 2),
        ({**NUMBER, "where": "amount IS NOT NULL"}, "amount within [0, 500] where amount IS NOT NULL", 2),
        ({"expression": "coalesce(amount, 3)", "bounds": (0, 500)}, "coalesce(amount, 3) within [0, 500]", 1),
        ({"expression": "CASE WHEN cured THEN 1 ELSE 0 END"}, "CASE WHEN cured THEN 1 ELSE 0 END", 1),
        ({"expression": "CASE WHEN cured THEN 1 ELSE 0 END", "bounds": (0, 2)}, None, 1),
        ({"expression": "CASE WHEN cured THEN 1 END", "bounds": (0, 1)}, "CASE WHEN cured THEN 1 END within [0, 1]", 2),
        ({"expression": "sign(amount)"}, "sign(amount)", 2),
        ({"expression": "coalesce(sign(amount), 0) + 1"}, "coalesce(sign(amount), 0) + 1", 1),
    ],
)
def test_a_text_says_what_is_asked_and_the_form_says_how_many_answers(
    arguments: Mapping[str, Any], text: str | None, answers: int
) -> None:
    found = asked(**arguments)
    assert text is None or found.text == text
    assert len(found.queries) == answers
    assert (found.rule is None) == (answers == 1)


def test_rows_without_the_number_are_a_group_to_leave_out() -> None:
    inside, outside = asked(**NUMBER).queries
    assert inside.text == "CASE WHEN amount IS NOT NULL THEN amount ELSE 0 END within [0, 500]"
    assert outside.text == "CASE WHEN amount IS NOT NULL THEN 500 - (amount) ELSE 0 END within [0, 500]"
    within, _ = asked(**NUMBER, where="cured OR country = 'CH'").queries
    assert isinstance(within, Query)
    assert within.group is not None
    assert readable(within.group) == "(cured OR country = 'CH') AND amount IS NOT NULL"
    assert "left out" in asked(**NUMBER).about_missing
    assert "count as 7" in asked(**NUMBER, missing=7).about_missing
    assert "NULL counts as false" in asked(expression="cured").about_missing
    assert "Every row has a value" in asked(expression="cured IS TRUE").about_missing


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"expression": "coalesce(amount, 3)", "bounds": (0, 9)}, {"missing": 5}),
        ({"expression": "cured IS TRUE"}, {"missing": 1}),
        (NUMBER, {"where": "amount IS NOT NULL"}),
        (NUMBER, {"where": "amount IS NOT NULL", "missing": 7}),
        ({**NUMBER, "where": "cured"}, {"where": "amount IS NOT NULL AND cured"}),
        ({**NUMBER, "where": "cured"}, {"where": "amount IS NOT NULL AND cured", "missing": 3}),
    ],
)
def test_what_counts_nowhere_does_not_make_another_question(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert digests(asked(**one)) == digests(asked(**{**one, **other}))


def test_a_hint_needs_all_rows_and_a_guess_may_be_about_some() -> None:
    with pytest.raises(InvalidArgument, match="set missing=0 to count all rows"):
        asked(**NUMBER, about=3)
    with pytest.raises(InvalidArgument, match="leave out where"):
        asked(**NUMBER, missing=0, where="cured", about=3)
    for rows in ({}, {"missing": 0}, {"missing": 0, "where": "cured"}):
        assert asked(**NUMBER, **rows, guess=(3, 1)).guess is not None


@pytest.mark.parametrize("where", ["other", "country"])
def test_a_group_is_a_condition(where: str) -> None:
    with pytest.raises(QueryError, match="a group is a condition"):
        asked(**NUMBER, where=where)


# -- classes

BOUNDS = [(0.0, 1.0), (-1.0, 1.0), (0.0, 1e300)]
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def _all_of(sql: str) -> list[Asked]:
    """Everything that can be asked about an expression, in many ways."""
    found = []
    for bounds, missing, where in itertools.product([None, *BOUNDS], [None, 0.0, 1.0], [None, "flag", "x > 1"]):
        try:
            found.append(ask(sql, expressions.SCHEMA, bounds, where, missing))
        except (QueryError, InvalidArgument):
            continue
    return found


@unhurried
@given(st.lists(st.one_of(expressions.numbers(2), expressions.conditions(2)), min_size=1, max_size=4))
def test_different_meanings_have_different_texts(trees: list[Node]) -> None:
    """Of one text there is one question; and of parts that are recorded by themselves, one meaning on every row."""
    questions = [one for tree in trees for one in _all_of(readable(tree))]
    assume(questions)
    named: dict[str, list[str]] = {}
    parts: dict[str, Query] = {}
    for one in questions:
        assert named.setdefault(one.text, digests(one)) == digests(one), one.text
        for query in one.queries:
            assert isinstance(query, Query)
            other = parts.setdefault(query.text, query)
            if other.digest != query.digest:
                assert _psi(other) == _psi(query), query.text


def _psi(query: Query) -> list[float]:
    return oracle.psi(query, query.expression, query.group, ROWS)


@unhurried
@given(st.one_of(expressions.numbers(4), expressions.conditions(4)))
def test_what_is_never_missing_has_a_value_on_every_row(tree: Node) -> None:
    assume(never_missing(tree))
    assert all(value is not None for value in oracle.evaluate_all(tree, ROWS))


@pytest.mark.parametrize("bad", ["amount", "1 / amount", "amount + 0", "length(country)", "exp(coalesce(amount, 0))"])
def test_what_may_be_missing_is_not_taken_for_sure(bad: str) -> None:
    assert not never_missing(parse(bad, SCHEMA))


@unhurried
@given(expressions.numbers(3))
def test_the_two_parts_give_the_mean_over_rows_that_have_a_value(tree: Node) -> None:
    try:
        question = ask(readable(tree), expressions.SCHEMA, (-10, 10))
    except QueryError:
        assume(False)
    queries = [query for query in question.queries if isinstance(query, Query)]
    parsed = queries[0].expression
    values = [min(max(value, -10), 10) for value in oracle.evaluate_all(parsed, ROWS) if value is not None]
    sums = [sum(_psi(query)) for query in queries]
    if len(sums) == 1:
        assert len(values) == len(ROWS)
    elif values:
        assert -10 + 20 * sums[0] / sum(sums) == pytest.approx(sum(values) / len(values))
    else:
        assert sums == [0, 0]
