"""Tables of means: of groups that the analyst names, and of the bins of a histogram."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from afresh import checks
from afresh.queries.text import number
from afresh.statistics.base import Asker, Measures


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """The mean of a condition or number within each of the categories, which come from the analyst, not from the data.

    Two answers each, see section 12 of the guarantees.
    """

    expression: str
    by: str
    categories: Sequence[Any]
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Check that they are a list of texts or numbers."""
        categories = checks.listed("categories", self.categories, "a list of at least one text or number")
        for category in categories:
            _literal(category)
        if len(set(map(str, categories))) < len(categories):
            raise checks.wrong("categories", categories, "different from each other")
        object.__setattr__(self, "categories", categories)

    @property
    def price(self) -> int:
        """Two answers a category."""
        return 2 * len(self.categories)

    def measure(self, asker: Asker) -> Measures:
        """All in one scan."""
        found = asker.ask(
            [
                {"expression": self.expression, "bounds": self.bounds, "where": f"({self.by}) = {_literal(category)}"}
                for category in self.categories
            ]
        )
        names = [str(category) for category in self.categories]
        return Measures(f"mean of {self.expression} by {self.by}", dict(zip(names, found, strict=True)))


def _literal(category: Any) -> str:
    if isinstance(category, bool):
        return str(category).upper()
    if isinstance(category, str):
        return "'" + category.replace("'", "''") + "'"
    return number(checks.number("category", category, "a text, a finite number, True or False"))


@dataclass(frozen=True, slots=True)
class Histogram:
    """The share of rows in each bin [edge, next edge), the last one closed, as numpy has it. One answer a bin."""

    expression: str
    edges: Sequence[float]

    def __post_init__(self) -> None:
        """Check that edges rise."""
        edges = checks.rising("edges", self.edges, 2, "at least two finite numbers that rise")
        object.__setattr__(self, "edges", edges)

    @property
    def price(self) -> int:
        """One answer a bin."""
        return len(self.edges) - 1

    def measure(self, asker: Asker) -> Measures:
        """All in one scan; no share can be more than the others leave."""
        edges = self.edges
        x, last = self.expression, len(edges) - 2
        found = asker.ask(
            [
                {"expression": f"({x}) >= {a!r} AND ({x}) {'<=' if i == last else '<'} {b!r}"}
                for i, (a, b) in enumerate(itertools.pairwise(edges))
            ]
        )
        bins = {}
        for i, answer in enumerate(found):
            name = f"[{number(edges[i])}, {number(edges[i + 1])}{']' if i == last else ')'}"
            words = f"share of {self.expression} in {name}"
            told = asker.answer(words, "bin", {"bin": i}, (0.0, 1.0), answer.missing)
            bins[name] = replace(told, charged=answer.charged, charged_information=answer.charged_information)
        return Measures(f"histogram of {self.expression}", bins)
