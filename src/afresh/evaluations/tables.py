"""Results in a table: JSONL, CSV, Parquet, a list of dicts or a frame, with a column of ids and one of scores."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from afresh import checks
from afresh.errors import DataError
from afresh.evaluations.results import Results, are_scores, choose, unreadable

TRIALS = ("trial", "epoch")


def is_frame(given: object) -> bool:
    """Whether it is a frame or an Arrow table."""
    return hasattr(type(given), "columns")


def frame_rows(given: Any) -> list[dict[str, Any]]:
    """The rows of any kind of frame."""
    from afresh.engines.embedded.sources import as_arrow

    return list(as_arrow(given).to_pylist())


def json_lines(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The objects of a file with one on every line."""
    with Path(path).open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if not isinstance(found, dict):
                raise unreadable(path, f"has no JSON object on line {number}", "write one object per line")
            yield found


def csv_rows(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a CSV file with a header."""
    with Path(path).open(encoding="utf-8-sig", newline="") as lines:
        try:
            tabs = os.fspath(path).lower().endswith(".tsv")
            rows = list(csv.DictReader(lines, strict=True, delimiter="\t" if tabs else ","))
        except csv.Error:
            raise unreadable(path, "is not a CSV file", "write a header and one row per item") from None
    if any(None in row or None in row.values() for row in rows):
        raise unreadable(path, "has rows of different lengths", "write as many cells in each row as in the header")
    return rows


def rows_of(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a file, by its ending."""
    name = os.fspath(path).lower()
    if name.endswith((".csv", ".tsv")):
        return csv_rows(path)
    if name.endswith((".parquet", ".pq")):
        import pyarrow.parquet as pq

        return list(pq.read_table(path).to_pylist())
    return list(json_lines(path))


def from_rows(
    rows: Sequence[Mapping[str, Any]], path: str, id: str | None, score: str | None, *, trials: bool
) -> Results:
    """Scores from rows with names.

    Args:
        rows: One per item, or per trial of an item.
        path: Their name in messages.
        id: The column of ids; "id" if there is one.
        score: The column of scores; "score" if there is one.
        trials: Whether several rows with one id are its trials; always so with a column "trial" or "epoch".

    Returns:
        The results.
    """
    if not rows:
        raise DataError(f"{path} has no rows.")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise DataError(f"{path}: row {number} is a {type(row).__name__}, must be a dict with an id and a score.")
    names = [name for name in rows[0] if isinstance(name, str)]
    by = "id" if id is None else id
    if by not in names:
        said = f"has no {checks.shown(by)}, an item's id; its fields are {checks.shown(names)}"
        raise unreadable(path, said, "name the one with ids: afresh.evaluations.read(path, id=...)")
    counted = next((name for name in TRIALS if name in names), None)
    rest = [name for name in names if name not in (by, counted)]
    which = choose(path, "score", ["score"] if score is None and "score" in rest else rest, score)
    if not are_scores(row.get(which) for row in rows):
        said = f"has no scores in {checks.shown(which)}; its fields are {checks.shown(names)}"
        raise unreadable(path, said, "a score is a number from 0 to 1, or true or false")
    missing = object()

    def triples() -> Iterator[tuple[object, object, object]]:
        for number, row in enumerate(rows):
            if row.get(by, missing) is missing:
                raise DataError(f"{path}: row {number + 1} has no {by!r}.")
            yield row[by], row.get(which), row.get(counted) if counted else number if trials else 0

    return Results.of(triples())
