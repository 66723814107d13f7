"""Logs of Inspect (inspect-ai): `.eval` files, or its JSON logs, read by inspect-ai itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from afresh.errors import MissingExtra
from afresh.evaluations.results import Results, choose, unreadable


def read_inspect(path: str | os.PathLike[str], score: str | None) -> Results:
    """A sample is an item, an epoch one of its trials. `score` names the scorer, or "scorer.key" where it has several.

    Grades become numbers by Inspect's own rule: C is 1, P is one half, I and N are 0.
    """
    try:
        from inspect_ai.log import read_eval_log
        from inspect_ai.scorer import value_to_float
    except ImportError:
        raise MissingExtra("inspect-ai", "inspect") from None
    try:
        log = read_eval_log(os.fspath(path))
    except FileNotFoundError:
        raise
    except Exception:  # whatever is wrong with the file
        raise unreadable(path, "cannot be read by inspect-ai", "give a log that inspect eval has written") from None
    samples = log.samples or []
    if not samples:
        raise unreadable(path, f"has no samples (its status is {log.status!r})", "run the evaluation to its end")
    as_number = value_to_float()
    rows = [(sample.id, sample.epoch, name, value) for sample in samples for name, value in _values(sample)]
    wanted = choose(path, "score", (name for *_, name, _ in rows), score)
    return Results.of((id, as_number(value), epoch) for id, epoch, name, value in rows if name == wanted)


def _values(sample: Any) -> Iterator[tuple[str, Any]]:
    """Each score of a sample with its name."""
    for scorer, found in (sample.scores or {}).items():
        if isinstance(found.value, Mapping):
            yield from ((f"{scorer}.{key}", value) for key, value in found.value.items())
        else:
            yield scorer, found.value
