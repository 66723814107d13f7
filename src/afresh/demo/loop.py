"""A loop of edits, naive and guarded: rules that predict late flights, and an agent that adds whatever scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from afresh.evaluations.evaluation import Evaluation
    from afresh.evaluations.verdicts import Examined

ITEMS, EDITS, MILESTONE = 4000, 600, 120
_COLUMNS = ("month", "weekday", "hour", "origin", "dest", "carrier", "rain", "left")
Bools = NDArray[np.bool_]


@dataclass
class Table:
    """Flights as codes of their columns, and whether they arrived late, or never."""

    codes: NDArray[np.int64]
    late: Bools

    @classmethod
    def of(cls, flights: pl.DataFrame, population: pl.DataFrame) -> Table:
        """The table with the population's codes, so that rules mean the same everywhere."""
        codes, flights, population = [], known_at_departure(flights), known_at_departure(population)
        for column in _COLUMNS:
            known = {value: code for code, value in enumerate(population[column].unique().sort().to_list())}
            codes.append([known[value] for value in flights[column].to_list()])
        late = (flights["arr_delay"] > 0).fill_null(True).to_numpy()
        return cls(np.array(codes, dtype=np.int64).T, late)

    def at(self, rows: Sequence[int] | NDArray[np.int64]) -> Table:
        """Some of them."""
        return Table(self.codes[rows], self.late[rows])


@dataclass
class Rules:
    """What is predicted: no flight is late, except where a rule says otherwise; later rules come last."""

    rules: list[tuple[tuple[int, ...], tuple[int, ...], bool]] = field(default_factory=list)

    def says(self, table: Table) -> Bools:
        """Whether each flight will be late."""
        said = np.zeros(len(table.late), dtype=bool)
        for rule in self.rules:
            said[_meets(table, rule)] = rule[2]
        return said

    def right(self, table: Table) -> Bools:
        """Whether that is right."""
        found: Bools = self.says(table) == table.late
        return found


def _meets(table: Table, rule: tuple[tuple[int, ...], tuple[int, ...], bool]) -> Bools:
    found: Bools = (table.codes[:, rule[0]] == rule[1]).all(axis=1)
    return found


def edited(rules: Rules, table: Table, rng: np.random.Generator) -> Rules:
    """Add a rule about flights like a given one, predicting what most of them do; kept if it scores."""
    columns = tuple(rng.choice(len(_COLUMNS), size=rng.integers(1, 6), replace=False).tolist())
    values = tuple(table.codes[rng.integers(len(table.late)), list(columns)].tolist())
    rule = (columns, values, False)
    alike = _meets(table, rule)
    candidate = Rules([*rules.rules, (columns, values, bool(table.late[alike].mean() > 0.5))])
    return candidate if candidate.right(table).mean() > rules.right(table).mean() else rules


def naive_loop(items: Table, seed: int) -> list[Rules]:
    """Edits, each kept if the score on all items goes up."""
    rng, rules = np.random.default_rng(seed), [Rules()]
    for _ in range(EDITS):
        rules.append(edited(rules[-1], items, rng))
    return rules


def course(history: Sequence[Rules], table: Table) -> list[float]:
    """The accuracy after every edit of a loop, whose rules are added and never taken away."""
    said, known, found = np.zeros(len(table.late), dtype=bool), 0, list[float]()
    for each in history:
        for rule in each.rules[known:]:
            said[_meets(table, rule)] = rule[2]
        known = len(each.rules)
        found.append(float((said == table.late).mean()))
    return found


def guarded_loop(evaluation: Evaluation, items: Table, seed: int) -> tuple[Rules, int, Examined]:
    """The same edits on the open items; at milestones the gate decides, and at the end the exam.

    Returns what was accepted last, how often something was, and the exam.
    """

    def results(rules: Rules, rows: Sequence[int]) -> dict[str, float]:
        return {str(row): float(right) for row, right in zip(rows, rules.right(items.at(rows)), strict=True)}

    every = range(len(items.late))
    seen = items.at([int(item["id"]) for item in evaluation.open_items()])
    rng, rules, kept = np.random.default_rng(seed), Rules(), Rules()
    gate = evaluation.gate(results(kept, every), name="no flight is late")
    for step in range(1, EDITS + 1):
        rules = edited(rules, seen, rng)
        if step % MILESTONE == 0 and gate.propose(results(rules, every), name=f"after {step} edits").accepted:
            kept = rules
    return kept, len(gate.accepted), evaluation.exam(results(kept, every), results(Rules(), every))


def known_at_departure(flights: pl.DataFrame) -> pl.DataFrame:
    """What is known about a flight when it leaves; `left` is how late, in steps of ten minutes up to an hour."""
    import polars as pl

    left = pl.col("dep_delay").clip(-10, 60).floordiv(10).alias("left")
    return flights.with_columns(left)


def items_of(flights: pl.DataFrame) -> list[dict[str, Any]]:
    """Items of an evaluation."""
    rows = known_at_departure(flights).select(_COLUMNS).to_dicts()
    return [{"id": str(i), **row} for i, row in enumerate(rows)]
