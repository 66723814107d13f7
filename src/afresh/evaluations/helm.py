"""HELM's per-instance results: `helm-run` writes per_instance_stats.json for every run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from afresh.evaluations.results import Results, choose, unreadable


def is_helm(found: object) -> bool:
    """Whether a JSON document looks like one."""
    first = found[0] if isinstance(found, list) and found else None
    return isinstance(first, Mapping) and {"instance_id", "stats"} <= first.keys()


def read_helm(found: Sequence[Any], path: str | os.PathLike[str], score: str | None) -> Results:
    """The metric of every unperturbed instance; different training trials count as trials.

    If there are several metrics, `score` names one: "exact_match", or "exact_match:valid" for another split.
    """
    try:
        rows = [
            (each["instance_id"], stat["name"], stat.get("mean"), each.get("train_trial_index", 0))
            for each in found
            for stat in each["stats"]
            if not (each.get("perturbation") or stat["name"].get("perturbation"))
        ]
        named = [(f"{name['name']}:{name.get('split') or 'test'}", *row) for row in rows for name in [row[1]]]
    except (KeyError, TypeError, AttributeError):
        raise unreadable(path, "is not a HELM file", "give the per_instance_stats.json of a run") from None
    if score is not None and ":" not in score:
        splits = {label for label, *_ in named if label.partition(":")[0] == score}
        score = splits.pop() if len(splits) == 1 else score
    wanted = choose(path, "score", (label for label, *_ in named), score)
    return Results.of((id, mean, trial) for label, id, _, mean, trial in named if label == wanted)
