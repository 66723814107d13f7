"""The bundled flights: a population, and independent draws from it."""

from pathlib import Path

import pytest

import afresh
from afresh.errors import InvalidArgument


def test_flights_are_a_population_and_samples_of_it() -> None:
    everything = afresh.datasets.flights()
    assert everything.shape == (336_776, 13)
    drawn = afresh.datasets.flights(2000)
    assert drawn.equals(afresh.datasets.flights(2000))
    assert not drawn.equals(afresh.datasets.flights(2000, seed=1))
    assert drawn.schema == everything.schema
    # Six standard deviations of a mean of 2,000 draws from the population.
    distances, seen = everything["distance"].to_numpy(), drawn["distance"].to_numpy()
    assert abs(seen.mean() - distances.mean()) < 6 * distances.std() / 2000**0.5
    for bad in (0, -1, 1.5, "many"):
        with pytest.raises(InvalidArgument, match="rows =="):
            afresh.datasets.flights(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="seed =="):
        afresh.datasets.flights(10, seed=-1)


def test_their_licence_is_with_them() -> None:
    folder = Path(afresh.datasets.__file__).parent
    assert "CC0 1.0 Universal" in (folder / "LICENSE-flights.txt").read_text()
    assert (folder / "nyc2013.parquet").stat().st_size < 1_500_000
