"""The items of an evaluation: an id each, and whatever the evaluator needs."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from afresh import checks
from afresh.errors import DataError, InvalidArgument
from afresh.evaluations import tables
from afresh.evaluations.results import id_text, is_file, shown_path

_GIVEN = "a list of dicts or of ids, a frame, or the path of a .jsonl, .json, .csv or .parquet file"


_MOST = 10**7  # a list may have no end


class Items(NamedTuple):
    """Items in the order of their ids, so that any order of the same items is one evaluation."""

    ids: list[str]
    rows: list[dict[str, Any]]

    def table(self, id: str) -> Any:
        """The items as the guard knows them, an Arrow table: ids and contents as text, which identify the evaluation.

        Args:
            id: The column of ids.

        Returns:
            A table with as many rows.
        """
        import pyarrow as pa  # on demand: `import afresh` stays fast

        names = [name for name in dict.fromkeys(name for row in self.rows for name in row) if name != id]
        columns = {id: pa.array(self.ids, pa.string())}
        for name in names:
            columns[name] = pa.array([_cell(row.get(name)) for row in self.rows], pa.string())
        return pa.table(columns)


def read_items(given: Any, id: str) -> Items:
    """Items in the order of their ids, or an error."""
    rows = _rows(given, id)
    if not rows:
        raise DataError("there are no items.")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
            raise InvalidArgument(f"item {number} is not a mapping of names to values; items must be {_GIVEN}.")
        if row.get(id) is None:
            raise InvalidArgument(f"item {number} has no {id!r}; give every item an id, or name its field with id=.")
    ids = [id_text(row[id]) for row in rows]
    if twice := [each for each, count in Counter(ids).items() if count > 1]:
        raise DataError(
            f"{len(twice):,} ids appear twice, such as {checks.shown(twice[0])}; every item needs its own id."
        )
    order = sorted(range(len(ids)), key=ids.__getitem__)
    return Items([ids[i] for i in order], [dict(rows[i]) for i in order])


def _rows(given: Any, id: str) -> Sequence[Any]:
    if isinstance(given, str | os.PathLike):
        return _read(given)
    if tables.is_frame(given):
        return tables.frame_rows(given)
    if isinstance(given, Mapping) or (found := checks.iterated(given)) is None:
        raise checks.wrong("items", given, _GIVEN)
    try:
        listed = list(itertools.islice(found, _MOST + 1))
    except Exception:  # an object whose own code fails
        raise checks.wrong("items", given, _GIVEN) from None
    if len(listed) > _MOST:
        raise InvalidArgument(f"there are more than {_MOST:,} items; an evaluation holds them in memory.")
    plain = all(isinstance(each, str | int) and not isinstance(each, bool) for each in listed)
    return [{id: each} for each in listed] if plain else listed


def _read(path: str | os.PathLike[str]) -> Sequence[Any]:
    if not is_file(path):
        raise DataError(f"there is no file {checks.shown(os.fspath(path))}.")
    name = os.fspath(path).lower()
    try:
        if name.endswith(".json"):
            found = json.loads(Path(path).read_text(encoding="utf-8-sig"))
            if isinstance(found, list):
                return found
            raise DataError(f"{shown_path(path)} is not a list of items.")
        if name.endswith((".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".pq")):
            return tables.rows_of(path)
    except UnicodeDecodeError:
        raise DataError(f"{shown_path(path)} is not UTF-8.") from None
    except ValueError:
        raise DataError(f"{shown_path(path)} is not JSON.") from None
    raise DataError(f"{shown_path(path)} has an unknown file type; items must be {_GIVEN}.")


def _cell(value: Any) -> str | None:
    """A value as text that is the same however it was stored."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value == math.floor(value) and abs(value) < 2**53:
        value = int(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
