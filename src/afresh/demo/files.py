"""The files of the demo: made once, kept, and never confused with other files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from afresh.errors import DataError

if TYPE_CHECKING:
    import polars as pl

FLIGHTS = 100_000
LEDGER = "ledger.sqlite"


def own(path: Path, frame: pl.DataFrame) -> Path:
    """The demo's file at `path`: written if it does not exist, kept if it is as the demo makes it."""
    import polars as pl

    if not path.exists():
        part = path.with_suffix(".part")  # an interrupted run leaves no half of a file under the real name
        frame.write_parquet(part)
        part.replace(path)
        return path
    try:
        same = pl.read_parquet(path).equals(frame)
    except (pl.exceptions.PolarsError, OSError):
        same = False
    if not same:
        raise DataError(
            f"{path} is not the file this demo makes; move it away, or give the demo a folder of its own: "
            "afresh demo --out FOLDER"
        )
    return path


def flights_file(folder: Path) -> Path:
    """100,000 flights in a Parquet file, which README and docs ask about."""
    from afresh.datasets import flights

    folder.mkdir(parents=True, exist_ok=True)
    return own(folder / "flights.parquet", flights(FLIGHTS))
