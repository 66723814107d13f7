"""Rows that a service hands out, as a file: features of a holdout, and open rows."""

from __future__ import annotations

import io
from typing import Any

FORMATS = {
    "arrow": "application/vnd.apache.arrow.file",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
PLACE = "__row__"
"""The column of an Arrow file with the rows' positions in the data; in a frame it is the index."""


def to_file(table: Any, form: str, places: Any = None) -> bytes:
    """Write a pandas frame or an Arrow table as a file; Arrow, which clients read, also has the rows' positions."""
    import pyarrow as pa

    if hasattr(table, "iloc"):
        table = pa.Table.from_pandas(table, preserve_index=False)
    out = io.BytesIO()
    if form == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(table, out)
    elif form == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, out)
    else:
        if places is not None:
            table = table.append_column(PLACE, pa.array(places, pa.int64()))
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


def from_file(content: bytes) -> tuple[Any, Any]:
    """Read the table in an Arrow file, and the positions of its rows, if the file has them."""
    import pyarrow as pa

    table = pa.ipc.open_file(content).read_all()
    if PLACE not in table.column_names:
        return table, None
    return table.drop_columns([PLACE]), table.column(PLACE).to_numpy()
