"""What the texts of a remote table's columns spell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from afresh.engines.identity.records import counts
from afresh.engines.identity.texts import GRAMMARS, LONGEST, SAMPLE
from afresh.engines.sql.rendering import Dialect
from afresh.queries.tree import Type

AT_ONCE = 100  # columns in a statement: each takes several places in its projections

Run = Callable[..., tuple[Any, ...]]


def counted(dialect: Dialect, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that count, with their types, in order of names."""
    names = sorted(columns, key=str.lower)
    return {name: columns[name] for name in names if counts(name) and dialect.kind(columns[name]) is not None}


def kinds(dialect: Dialect, columns: Mapping[str, str], matches: Callable[[str, str], str], run: Run) -> dict[str, str]:
    """Return how each column is hashed: text, number, boolean or time, by its type or by what all its texts spell."""
    found = {}
    for name, physical in columns.items():
        kind = dialect.kind(physical)
        assert kind is not None
        found[name] = {Type.TEXT: "text", Type.NUMBER: "number", Type.BOOLEAN: "boolean"}.get(kind, "time")
    return found | _spelt(dialect, columns, matches, run)


def _spelt(
    dialect: Dialect, columns: Mapping[str, str], matches: Callable[[str, str], str], run: Run
) -> dict[str, str]:
    left = {name: list(GRAMMARS) for name, physical in columns.items() if dialect.kind(physical) is Type.TEXT}
    for limit, keep in ((SAMPLE, (1, None)), (None, (1,))):
        tests = [(name, spelt) for name, spellings in left.items() for spelt in spellings]
        left = {}
        for start in range(0, len(tests), AT_ONCE):
            part = tests[start : start + AT_ONCE]
            names = sorted({name for name, _ in part})
            values = [f"{dialect.leaf(name, columns[name])} AS t{i}" for i, name in enumerate(names)]
            asked = []
            for name, spelt in part:
                this = f"t{names.index(name)}"
                test = f"char_length({this}) <= {LONGEST} AND {matches(this, GRAMMARS[spelt])}"
                asked.append(f"min(CASE WHEN {this} IS NULL THEN NULL WHEN {test} THEN 1 ELSE 0 END)")
            for (name, spelt), answer in zip(part, run([values, asked], limit), strict=True):
                if answer in keep:
                    left.setdefault(name, []).append(spelt)
    return {name: spellings[0] for name, spellings in left.items()}
