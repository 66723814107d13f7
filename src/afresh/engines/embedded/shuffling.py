"""How an embedded engine shuffles its rows."""

from __future__ import annotations

from collections.abc import Mapping

from afresh.engines.sql.duckdb import clean, quote_text, type_of


def shuffle_rows(source: str, row: str, columns: Mapping[str, str], seed: str) -> str:
    """Return SQL for a table (row, place).

    Rows are ranked by what questions see of them, and the ranks are shuffled by the seed alone. Rows that tie are
    equal, hence interchangeable: the order in the file does not matter.
    """
    cells = [clean(name, columns[name]) for name in sorted(columns) if type_of(columns[name])]
    ranked = f"SELECT d.{row} AS r, row_number() OVER (ORDER BY {', '.join(cells)}, d.{row}) AS k FROM {source} AS d"
    key = f"md5({quote_text(seed + ':')} || k)"
    return f"SELECT r, row_number() OVER (ORDER BY {key}, k) - 1 AS place FROM ({ranked}) ORDER BY place"
