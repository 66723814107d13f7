"""Sample files of lm-evaluation-harness: `lm_eval --log_samples --output_path FOLDER` writes samples_TASK_*.jsonl."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from afresh.evaluations.results import Results, choose


def is_samples(row: Mapping[str, Any]) -> bool:
    """Whether a line is a sample."""
    return "doc_id" in row and "filtered_resps" in row


def read_samples(
    rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str], id: str | None, score: str | None
) -> Results:
    """The metric of every document.

    An item is a `doc_id`, or the field `id` of the document itself. Where there are several metrics or filters,
    `score` says which: "exact_match", or "exact_match,strict-match".
    """
    named = [(row, name, _label(row, name)) for row in rows for name in row.get("metrics") or _metrics(row)]
    several_filters = len({row.get("filter", "none") for row in rows}) > 1
    if not several_filters and score is not None and "," not in score:
        named = [(row, name, name) for row, name, _ in named]
    elif not several_filters:
        named = [(row, name, name if score is None else label) for row, name, label in named]
    wanted = choose(path, "score", (label for *_, label in named), score)
    return Results.of((_id(row, id), row.get(name), 0) for row, name, label in named if label == wanted)


def _label(row: Mapping[str, Any], metric: str) -> str:
    return f"{metric},{row.get('filter', 'none')}"


def _metrics(row: Mapping[str, Any]) -> list[str]:
    """Of older versions, which list none."""
    return [name for name, value in row.items() if name != "doc_id" and isinstance(value, bool | int | float)]


def _id(row: Mapping[str, Any], name: str | None) -> object:
    doc = row.get("doc")
    return doc[name] if name is not None and isinstance(doc, Mapping) and name in doc else row["doc_id"]
