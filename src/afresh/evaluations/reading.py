"""Results from many kinds of file: the reader is chosen by a file's content, not only by its name."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from afresh import checks
from afresh.errors import DataError
from afresh.evaluations import tables
from afresh.evaluations.helm import is_helm, read_helm
from afresh.evaluations.inspect_log import read_inspect
from afresh.evaluations.junit import read_junit
from afresh.evaluations.lm_eval import is_samples, read_samples
from afresh.evaluations.promptfoo import is_promptfoo, read_promptfoo
from afresh.evaluations.results import Results, are_scores, from_mapping, is_file, unreadable

_FILES = (
    "an Inspect log (.eval), a sample file of lm-evaluation-harness (.jsonl), HELM's per_instance_stats.json, "
    "promptfoo's output (.json), JUnit XML (.xml), an object of scores by id (.json), or a table with ids and scores "
    "(.jsonl, .json, .csv, .parquet)"
)
_GIVEN = f"a mapping of ids to scores, a frame or a list of dicts with both, or the path of {_FILES}"


def read(
    results: Any,
    *,
    id: str | None = None,
    score: str | None = None,
    candidate: str | None = None,
    trials: bool = False,
) -> Results:
    """Read the results of one candidate, from another tool's file or from memory.

    Every score is a number from 0 to 1; true and false count as 1 and 0. Several scores of one item are averaged if
    they are distinguished: Inspect's epochs, a column "trial" or "epoch", a list in a mapping, or `trials=True`.

    Args:
        results: A mapping of ids to scores, a frame or a list of dicts with both, or the path of a file.
        id: The column, variable or field of ids (default "id", or what the tool numbers its items by).
        score: The name of the score, if there are several: a column, an Inspect scorer, a metric of
            lm-evaluation-harness ("exact_match,strict-match" also names the filter) or HELM, a promptfoo score.
        candidate: The candidate, if a promptfoo file has several.
        trials: Whether rows of a table with the same id are trials of it.

    Returns:
        Ids, scores and trials, for `Evaluation.score` and `Gate.propose`.

    Raises:
        DataError: The file cannot be read or no reader recognizes it, it has several scores and none was named, or a
            score is not a number from 0 to 1.
        InvalidArgument: The results are of none of these kinds.
    """
    found = as_given(results, id=id, score=score, candidate=candidate, trials=trials)
    for each, value in zip(found.ids, found.scores, strict=True):
        if not 0 <= value <= 1:
            said = "not a number" if math.isnan(value) else f"{value:g}"
            raise DataError(
                f"the score of item {checks.shown(each)} is {said}, must be a number from 0 to 1; score failures as 0, "
                "and divide scores on another scale by their maximum."
            )
    return found


def as_given(
    results: Any,
    *,
    id: str | None = None,
    score: str | None = None,
    candidate: str | None = None,
    trials: bool = False,
) -> Results:
    """The same, with any scores: an evaluation checks those of open items only, and its errors depend on no others."""
    for name, value in (("id", id), ("score", score), ("candidate", candidate)):
        if value is not None:
            checks.text(name, value, "a name")
    checks.flag("trials", trials)
    if isinstance(results, Results):
        return results
    if isinstance(results, str | os.PathLike):
        return _read_file(results, id, score, candidate, trials)
    if tables.is_frame(results):
        return tables.from_rows(tables.frame_rows(results), "the frame", id, score, trials=trials)
    if isinstance(results, Mapping):
        return from_mapping(results)
    if isinstance(results, list | tuple) and results and isinstance(results[0], Mapping):
        return tables.from_rows(results, "the list", id, score, trials=trials)
    if type(results).__name__ == "Series" and hasattr(results, "to_dict"):  # of pandas, by its index
        if not results.index.is_unique:
            raise DataError("the index of the series names some items twice; give a frame with a column of trials.")
        return from_mapping(results.to_dict())
    raise checks.wrong("results", results, _GIVEN)


def _read_file(
    path: str | os.PathLike[str], id: str | None, score: str | None, candidate: str | None, trials: bool
) -> Results:
    name = os.fspath(path).lower()
    if not is_file(path):
        raise DataError(f"there is no file {checks.shown(os.fspath(path))}.")
    try:
        if name.endswith(".eval"):
            return read_inspect(path, score)
        if name.endswith(".xml"):
            return read_junit(path)
        if name.endswith(".json"):
            return _read_json(path, id, score, candidate, trials)
        if not name.endswith((".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".pq")):
            raise unreadable(path, "has an unknown file type", f"give {_FILES}")
        rows = tables.rows_of(path)
    except UnicodeDecodeError:
        raise unreadable(path, "is not UTF-8", "write it as UTF-8") from None
    if rows and is_samples(rows[0]):
        return read_samples(rows, path, id, score)
    return tables.from_rows(rows, os.path.basename(os.fspath(path)), id, score, trials=trials)


def _read_json(
    path: str | os.PathLike[str], id: str | None, score: str | None, candidate: str | None, trials: bool
) -> Results:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise
    except ValueError:
        raise unreadable(path, "is not JSON", f"give {_FILES}") from None
    if is_helm(found):
        return read_helm(found, path, score)
    if is_promptfoo(found):
        return read_promptfoo(found, path, id, score, candidate)
    if isinstance(found, dict) and {"eval", "samples"} <= found.keys():
        return read_inspect(path, score)
    if isinstance(found, dict) and are_scores(each for of_item in found.values() for each in _trials(of_item)):
        return from_mapping(found)
    if isinstance(found, list) and found and isinstance(found[0], dict):
        return tables.from_rows(found, os.path.basename(os.fspath(path)), id, score, trials=trials)
    raise unreadable(path, f"has no per-item scores that are recognized: it is {_described(found)}", f"give {_FILES}")


def _trials(score: object) -> list[object]:
    """The trials of an item in a mapping."""
    return score if isinstance(score, list) and score else [score]


def _described(found: object) -> str:
    """What a JSON document is, by its keys and types."""
    if isinstance(found, dict):
        return f"an object with {len(found):,} keys: {checks.shown(list(found))}" if found else "an empty object"
    if isinstance(found, list):
        return f"a list of {len(found):,}, the first of which is {_described(found[0])}" if found else "an empty list"
    kinds = {str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(found), "a number")
