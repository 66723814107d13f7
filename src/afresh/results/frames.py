"""Rows of results as data frames: pandas, Polars, Arrow or CSV, each imported on demand."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from afresh.errors import MissingExtra


class Tabular(ABC):
    """A mixin: define `rows`, and the result converts to every kind of data frame."""

    __slots__ = ()

    @abstractmethod
    def rows(self) -> Sequence[dict[str, Any]]:
        """One mapping per row, all with the same keys and plain values."""

    def to_arrow(self) -> Any:
        """Convert to an Arrow table.

        Returns:
            A `pyarrow.Table` with one row per item.
        """
        import pyarrow as pa

        return pa.Table.from_pylist(list(self.rows()))

    def to_pandas(self) -> Any:
        """Convert to a pandas data frame.

        Returns:
            A `pandas.DataFrame` with one row per item.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", "frames") from None
        return pd.DataFrame(list(self.rows()))

    def to_polars(self) -> Any:
        """Convert to a Polars data frame.

        Returns:
            A `polars.DataFrame` with one row per item.
        """
        import polars as pl

        return pl.DataFrame(list(self.rows()), infer_schema_length=None)

    def to_csv(self) -> str:
        """Convert to CSV text; anything a spreadsheet would take for a formula is quoted.

        Returns:
            A header and one line per row.
        """
        rows, out = list(self.rows()), io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(rows[0] if rows else ())
        for row in rows:
            writer.writerow([_safe(value) for value in row.values()])
        return out.getvalue()


def _safe(value: Any) -> Any:
    """Quote a cell that a spreadsheet would run as a formula: names come from users."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
