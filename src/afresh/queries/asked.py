"""What an analyst asked, in terms of `Guard.ask`: one query, or two for a mean over some of the rows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.queries.base import RowQuestion
from afresh.queries.query import Query, make_query, parse_group, present, split_by_group
from afresh.queries.text import number, readable
from afresh.queries.tree import Call, Op, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with the words its answer needs, and the row functions whose means answer it."""

    queries: tuple[RowQuestion, ...]
    question: str
    """What is averaged: the expression, its bounds, and what missing values count as."""
    bounds: tuple[float, float]
    about_value: str
    """What the interval is about."""
    about_missing: str
    """How rows without a value are treated."""
    where: str | None = None
    rule: str | None = None
    """The rule that derives the answer from those to its queries; None if it has only one query."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The rule's parameters."""
    precision: float | None = None
    """A half-width that is enough, on [0, 1]."""
    noise: float | None = None
    """The multiple of the plan's noise, if it follows public facts."""
    guess: tuple[float, float] | None = None
    """The analyst's own guess: a value and a half-width, on [0, 1]."""
    about: float | None = None
    """The analyst's rough idea of the answer, on [0, 1]: only the noise follows it."""
    own: bool = True
    """Whether it is asked in its own right, not as part of something that will be stated."""
    skips: bool = False
    """Whether rows without a value are left out."""

    @property
    def text(self) -> str:
        """The whole question, in readable words."""
        return self.question + (f" where {self.where}" if self.where else "")


def _about_value(query: Query, *, grouped: bool, skips: bool) -> str:
    kind = "the share of rows where this is true" if _is_condition(query) else "the mean of this"
    return kind + (" within the group" if grouped else "") + (", where it has a value" if skips else "")


def _about_missing(query: Query, *, grouped: bool, skips: bool) -> str:
    low, high = query.bounds
    missing = query.missing or 0.0
    if skips:
        said = "Rows where this is NULL, NaN or infinite are left out"
    elif not query.may_be_missing:
        said = "Every row has a value"
    elif _is_condition(query):
        said = f"NULL counts as {'true' if missing else 'false'}"
    else:
        which = " (the lower bound)" if missing == low else ""
        said = f"NULL, NaN and infinite values count as {number(missing)}{which}"
    if not _is_condition(query):
        said += f"; numbers are clipped to [{number(low)}, {number(high)}]"
    return said + ("; rows whose group is NULL are left out." if grouped else ".")


def _is_condition(query: Query) -> bool:
    return query.expression.type is Type.BOOLEAN


def ask(
    expression: Any,
    schema: Mapping[str, Type | None],
    bounds: tuple[float, float] | None = None,
    where: Any = None,
    missing: float | None = None,
    precision: float | None = None,
    guess: tuple[float, float] | None = None,
    about: float | None = None,
) -> Asked:
    """Check one question; every mistake is an error here, before anything is charged.

    Rows without a number are left out, unless `missing` gives a value for them. The mean over the others is a mean
    within a group and takes two queries.
    """
    query = make_query(expression, schema, bounds, missing)
    skips = missing is None and query.expression.type is Type.NUMBER and query.may_be_missing
    group = None if where is None else parse_group(where, schema)
    words = None if group is None else readable(group)
    queries = (query,) if group is None else split_by_group(query, group)
    if skips and queries[0].may_be_missing:
        there = present(query.expression)
        group = there if group is None else Call(Op.AND, (group, there), Type.BOOLEAN)
        queries = split_by_group(query, group)
    low, high = query.bounds
    if precision is not None:
        precision = checks.precision(precision) / (high - low)
    if about is not None and len(queries) > 1:
        rest = "where" if where is not None else f"about, or set missing={number(low)} to count all rows"
        raise InvalidArgument(f"about= is for one answer, but a mean over some of the rows takes two: leave out {rest}")
    if guess is not None:
        guess = _check_guess(guess, low, high)
    if about is not None:
        within = f"within the bounds ({number(low)}, {number(high)}), roughly what the answer will be"
        about = (checks.number("about", about, within, least=low, most=high) - low) / (high - low)
    return Asked(
        queries=queries,
        question=queries[0].words,
        bounds=query.bounds,
        about_value=_about_value(queries[0], grouped=words is not None, skips=skips),
        about_missing=_about_missing(queries[0], grouped=words is not None, skips=skips),
        where=words,
        rule=None if len(queries) == 1 else "within",
        precision=precision,
        guess=guess,
        about=about,
        skips=skips,
    )


def _check_guess(guess: tuple[float, float], low: float, high: float) -> tuple[float, float]:
    found = checks.numbers(guess)
    if len(found) != 2 or not (low <= found[0] <= high and found[1] > 0):
        must_be = "a value within the bounds and a half-width above 0, in the answer's units"
        raise checks.wrong("guess", guess, must_be)
    return (found[0] - low) / (high - low), found[1] / (high - low)


_ARGUMENTS = [name for name in inspect.signature(ask).parameters if name != "schema"]


def make_asked(question: Any, schema: Mapping[str, Type | None]) -> Asked:
    """One item of `Guard.ask_many`: an expression in SQL or Ibis, or a mapping of `Guard.ask`'s arguments."""
    if not isinstance(question, Mapping):
        return ask(question, schema)
    if "expression" not in question or not all(name in _ARGUMENTS for name in question):
        got = ", ".join(map(checks.shown, question))
        raise InvalidArgument(f"a question may have {', '.join(_ARGUMENTS)}; expression is required; got {got}")
    return ask(schema=schema, **question)
