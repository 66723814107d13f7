"""promptfoo's JSON output: `promptfoo eval --output results.json`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from afresh.evaluations.results import Results, choose, unreadable


def is_promptfoo(found: object) -> bool:
    """Whether a JSON document looks like one."""
    inner = found.get("results") if isinstance(found, Mapping) else None
    return isinstance(inner, Mapping) and isinstance(inner.get("results"), list)


def read_promptfoo(
    found: Mapping[str, Any], path: str | os.PathLike[str], id: str | None, score: str | None, candidate: str | None
) -> Results:
    """The scores of one prompt with one provider.

    An item is identified by the variable `id` of its test, by `id` in the test's metadata, or by the test's number.
    `score` names one of its named scores instead of the whole one.
    """
    rows = found["results"]["results"]
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise unreadable(path, "has no results", "write it with promptfoo eval --output results.json")
    labels = [_label(row) for row in rows]
    wanted = choose(path, "candidate", labels, candidate)
    chosen = [row for row, label in zip(rows, labels, strict=True) if label == wanted]
    return Results.of((_id(row, id or "id"), _score(row, score), row.get("testIdx")) for row in chosen)


def _label(row: Mapping[str, Any]) -> str:
    provider = row.get("provider")
    name = (provider.get("label") or provider.get("id")) if isinstance(provider, Mapping) else provider
    return f"{name}, prompt {row.get('promptIdx', 0)}"


def _id(row: Mapping[str, Any], name: str) -> object:
    test = row.get("testCase") or {}
    for holder in (row.get("vars"), test.get("vars"), test.get("metadata"), row.get("metadata")):
        if isinstance(holder, Mapping) and holder.get(name) is not None:
            return holder[name]
    return row.get("testIdx")


def _score(row: Mapping[str, Any], name: str | None) -> object:
    if name is not None:
        return (row.get("namedScores") or {}).get(name)
    return row.get("score", row.get("success"))
