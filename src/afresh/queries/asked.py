"""What an analyst asked, in the terms of `Guard.ask`: one query, or two for a mean within a group."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.queries.query import Query, make_query, split_by_group
from afresh.queries.text import number, readable
from afresh.queries.tree import Type


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its queries, and the words its answer needs."""

    queries: tuple[Query, ...]
    question: str
    where: str | None
    bounds: tuple[float, float]
    precision: float | None
    """A half-width that is enough, on [0, 1]."""
    guess: tuple[float, float] | None = None
    """A guess of the analyst's own: a value and a half-width, on [0, 1]."""

    @property
    def rule(self) -> str | None:
        """How the answer follows from those of its queries; None if it is the answer of one."""
        return None if len(self.queries) == 1 else "within"

    @property
    def text(self) -> str:
        """The whole question, readable."""
        return self.question + (f" where {self.where}" if self.where else "")

    @property
    def _condition(self) -> bool:
        return self.queries[0].expression.type is Type.BOOLEAN

    @property
    def about_value(self) -> str:
        """What the interval is about."""
        kind = "the share of rows that satisfy this" if self._condition else "the mean of this"
        return kind + (" within the group" if self.where else "")

    @property
    def about_missing(self) -> str:
        """What was done with rows that have no value."""
        missing = self.queries[0].missing or 0.0
        if self._condition:
            said = f"NULL counts as {'true' if missing else 'false'}"
        else:
            which = " (the lower bound)" if missing == self.bounds[0] else ""
            said = f"NULL, NaN and infinite values count as {number(missing)}{which}"
            said += f", others are clipped to [{number(self.bounds[0])}, {number(self.bounds[1])}]"
        return said + ("; rows whose group is NULL are left out." if self.where else ".")


def ask(
    expression: Any,
    schema: Mapping[str, Type | None],
    bounds: tuple[float, float] | None = None,
    where: Any = None,
    missing: float | None = None,
    precision: float | None = None,
    guess: tuple[float, float] | None = None,
) -> Asked:
    """Check one question; every mistake is an error here, before anything is charged."""
    query = make_query(expression, schema, bounds, missing)
    queries = (query,) if where is None else split_by_group(query, where, schema)
    group = queries[0].group
    low, high = query.bounds
    if precision is not None:
        precision = checks.precision(precision) / (high - low)
    if guess is not None:
        if where is not None:
            raise InvalidArgument(
                "a guess is about one answer, and a mean within a group is made of two; leave one out"
            )
        guess = _check_guess(guess, low, high)
    words = None if group is None else readable(group)
    return Asked(queries, readable(query.expression), words, query.bounds, precision, guess)


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
        raise InvalidArgument(f"a question has {', '.join(_ARGUMENTS)}, of which expression is needed; got {got}")
    return ask(schema=schema, **question)
