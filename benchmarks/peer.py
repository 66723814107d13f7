"""One peer, in its own environment, which has numpy but not afresh: `python -m benchmarks.peer NAME`."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import side_by_side

Numbers = NDArray[np.float64]
# What each is called where it is installed from, and what it needs besides.
PEERS = {
    "diffprivlib": ("diffprivlib", "scikit-learn<1.6"),  # 0.6.6 does not import with later ones
    "OpenDP": ("opendp",),
    "tea-tasting": ("tea-tasting",),
    "SmartNoise": ("smartnoise-sql",),
}


def _diffprivlib(values: Numbers) -> Callable[[], object]:
    from diffprivlib.tools import mean  # type: ignore[import-not-found]

    return lambda: mean(values, epsilon=1.0, bounds=(0.0, 500.0))


def _opendp(values: Numbers) -> Callable[[], object]:
    import opendp.prelude as dp  # type: ignore[import-not-found]

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(bounds=(0.0, 500.0), nan=False), size=len(values)), dp.symmetric_distance()
    measurement = space >> dp.t.then_mean() >> dp.m.then_laplace(scale=1.0)
    return lambda: measurement(values)


def _tea_tasting(values: Numbers) -> Callable[[], object]:
    import pyarrow as pa
    import tea_tasting as tt  # type: ignore[import-not-found]

    data = pa.table({"variant": np.arange(len(values)) % 2, "amount": values})
    experiment = tt.Experiment(amount=tt.Mean("amount"))
    return lambda: experiment.analyze(data)


def _smartnoise(values: Numbers) -> Callable[[], object]:
    import pandas as pd
    import snsql  # type: ignore[import-not-found]

    rows = {"row_privacy": True, "amount": {"type": "float", "lower": 0.0, "upper": 500.0}}
    privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)
    metadata = {"": {"public": {"data": {"rows": len(values), **rows}}}}
    reader = snsql.from_df(pd.DataFrame({"amount": values}), privacy=privacy, metadata=metadata)
    return lambda: reader.execute("SELECT AVG(amount) FROM public.data")


WORKS = {"diffprivlib": _diffprivlib, "OpenDP": _opendp, "tea-tasting": _tea_tasting, "SmartNoise": _smartnoise}


def work(peer: str, rows: int, rounds: int) -> None:
    """In the peer's environment: seconds of the peer and of numpy, in turns."""
    values = np.random.default_rng(0).exponential(100.0, rows)
    works = {"peer": WORKS[peer](values), "numpy": lambda: (values.clip(0, 500).mean(), values.clip(0, 500).var())}
    taken = side_by_side(works, rounds)
    print(json.dumps([taken["peer"], taken["numpy"], importlib.metadata.version(PEERS[peer][0])]))


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
