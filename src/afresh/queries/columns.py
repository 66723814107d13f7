"""The columns a question may name, and the error for an unknown one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from afresh.errors import QueryError
from afresh.queries.refusals import MAX_NAME, nearest
from afresh.queries.tree import Column, Type
from afresh.queries.typing import short

_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")


class Columns:
    """The columns of a schema, found regardless of case."""

    def __init__(self, schema: Mapping[str, Type | None]) -> None:
        """Take a schema; names that differ only in case were refused when the data was opened."""
        self._schema = schema
        self._names = {name.lower(): name for name in schema}

    def find(self, name: str) -> Column:
        """Return the column with this name."""
        real = self._names.get(name.lower())
        if real is None:
            raise self._unknown(name)
        kind = self._schema[real]
        if kind is None:
            raise QueryError(
                f"the column {real!r} has a type no question can use; usable are booleans, numbers, "
                "text, dates and timestamps. Convert it before opening the data"
            )
        return _column(real, kind)

    def _unknown(self, name: str) -> QueryError:
        names = list(self._schema)
        by_lower = {each.lower(): each for each in names if len(each) <= MAX_NAME}
        close = [by_lower[each] for each in nearest(name.lower(), by_lower, 3, 0.6)]
        hint = f" did you mean {' or '.join(map(written, close))}?" if close else ""
        if name.lower() in ("rowid", "file_row_number", "filename", "ctid", "oid", "tableoid"):
            hint = " rows have no number that a question could read."
        elif not close:
            hint = f" if it is text, put it in single quotes: {short(name)}."
        shown = ", ".join(names[:30]) + (f", ... ({len(names)} in all)" if len(names) > 30 else "")
        return QueryError(f"there is no column {short(name)};{hint} The columns are: {shown}")


@lru_cache(maxsize=4096)
def _column(name: str, kind: Type) -> Column:
    """Return the one node of a column: many questions of many threads name the same few."""
    return Column(name, kind)


def written(name: str) -> str:
    """Return a column's name as it must be written in a question."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def unquoted(text: str, schema: Mapping[str, Type | None]) -> str | None:
    """Return a column that the text seems to name without the double quotes it needs."""
    lower = text.lower()
    for name in schema:
        if not _PLAIN.fullmatch(name) and name.lower() in lower and f'"{name.lower()}"' not in lower:
            return name
    return None
