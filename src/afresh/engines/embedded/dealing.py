"""How an embedded engine deals its rows into blocks."""

from __future__ import annotations

from collections.abc import Mapping

from afresh.engines.sql.duckdb import clean, quote_text, type_of


def deal_rows(source: str, row: str, columns: Mapping[str, str], size: int, blocks: int, seed: str) -> str:
    """SQL of a table (row, block) that gives every block `size` rows.

    Rows are ranked by what questions see of them, and the ranks are shuffled by the seed alone. Rows that tie are
    equal, hence interchangeable: the order in the file does not matter.
    """
    cells = [clean(name, columns[name]) for name in sorted(columns) if type_of(columns[name])]
    ranked = f"SELECT d.{row} AS r, row_number() OVER (ORDER BY {', '.join(cells)}, d.{row}) AS k FROM {source} AS d"
    key = f"md5({quote_text(seed + ':')} || k)"
    shuffled = f"SELECT r, row_number() OVER (ORDER BY {key}, k) - 1 AS p FROM ({ranked})"
    block = f"CAST(p // {size:d} AS INTEGER) AS block"
    return f"SELECT r, {block} FROM ({shuffled}) WHERE p < {size * blocks:d} ORDER BY block, r"
