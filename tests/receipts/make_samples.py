"""Write the samples that every later version must verify: `cd tests && python -m receipts.make_samples`.

Run once for a version of the format, never again for the same: the committed files are what is tested. What plans and
rules may hold grows within a version; `python -m receipts.make_samples later` (`looks`, `closer`) wrote such samples.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import afresh
from afresh.statistics import Correlation, Covariance, Histogram, Quantile, StandardDeviation, Variance

SAMPLES = Path(__file__).with_name("samples")


def main(only: Sequence[str] = ()) -> None:
    """Of all methods, or of some of them."""
    rng = np.random.default_rng(11)
    for method, answers in (
        *(("stabilized", 80), ("calibrated", 80), ("rounds", None), ("checked", None)),
        *(("symmetrized", 400), ("endless", None), ("settled", None)),
    ):
        if only and method not in only:
            continue
        n = 120_000 if method in ("symmetrized", "endless") else 20_000  # so that numbers follow their deviation
        frame = pd.DataFrame(
            {"churned": rng.random(n) < 0.3, "amount": rng.gamma(2.0, 60.0, n), "tenure": rng.integers(0, 9, n)}
        )
        with tempfile.TemporaryDirectory() as folder:
            book = Path(folder) / "ledger.sqlite"
            rounds: dict[str, Any] = {"rounds": 20} if method == "rounds" else {"answers": answers, "method": method}
            if method == "checked":  # with open rows and an exam, which version 3 has
                rounds |= {"open": 0.5, "exam": 0.1}
            questions = {"endless": None, "symmetrized": 200}.get(method, 40)
            with afresh.open(frame, questions, ledger=book, analyst="ann", **rounds) as guard:
                guard.ask_many(["churned", "tenure < 3", {"expression": "amount", "bounds": (0, 500)}])
                guard.ask("churned", where="tenure = 2")
                guard.measure(Variance("amount", (0, 500)))
                guard.measure(Quantile("amount", 0.5, (0, 500), points=3))
                if method in ("stabilized", "calibrated", "symmetrized"):
                    guard.ask("tenure > 5", precision=0.2)
                    guard.charge("a mean in the 2025 report", noise_sd=0.2)
                if method not in ("rounds", "checked"):  # numbers of several draws, which versions 4 and 5 have
                    guard.ask("amount", bounds=(0, 500), where="tenure < 5", missing=0)
                    guard.ask("amount", bounds=(0, 500), where="tenure = 2 AND churned", missing=0)
                if method == "symmetrized":  # vectors, which version 3 has
                    guard.measure(Histogram("amount", [0, 50, 100, 150, 200, 300, 500]))
                    guard.ask_vector(["amount / 100", "tenure / 4"], radius=2, centre=1)
                if method == "settled":  # a hint, which version 4 has
                    guard.ask("tenure = 8", about=0.1)
                if method == "calibrated":
                    guard.charge("a private histogram", pure_dp=0.002)
                    guard.charge("a private count of a tenth", zcdp=1e-6, rows=2000, count=3)
                if method == "checked":
                    guard.claim("tenure < 4", between=(0.3, 0.6))
                    guard.claim("tenure < 4", between=(0.5, 0.6))
                    guard.exam(["churned", {"expression": "amount", "bounds": (0, 500), "where": "tenure = 2"}])
                if method == "rounds":  # before she has a share: closing is for whoever divides
                    guard.close_rounds()
                guard.divide({"ann": 30, "bob": 4})
                receipt = guard.receipt()
        (SAMPLES / f"version{receipt['version']}-{method}.json").write_text(json.dumps(receipt, indent=1))


def later() -> None:
    """Numbers with hardly any room, correlations by sums, and claims and guesses within groups."""
    rng = np.random.default_rng(12)
    x, y = rng.normal(size=(2, 10_000))
    frame = pd.DataFrame({"x": x, "y": 0.6 * x + 0.8 * y, "group": rng.random(10_000) < 0.4})
    correlation = Correlation("x", "y", (-20, 20), (-20, 20), within=3)
    for name, questions, given in (
        ("tight-symmetrized", 1000, {"method": "symmetrized", "typical": 0.5}),
        ("tight-settled", 1000, {"method": "settled", "typical": 0.5}),
        ("groups-checked", 40, {"method": "checked"}),
    ):
        with afresh.open(frame, questions, ledger=":memory:", analyst="ann", **given) as guard:
            guard.ask_many(["x > 1", {"expression": "x", "bounds": (-20, 20), "missing": 0}])
            guard.ask("x", bounds=(-20, 20), where="group", missing=0)
            guard.measure(correlation)
            guard.measure(Variance("x", (-20, 20), where="group", missing=0, within=2))
            if name == "groups-checked":
                guard.claim("x > 0", between=(0.4, 0.6), where="group")
                guard.claim("x > 0", between=(0.6, None), where="group")
                guard.claim("y", between=(-1, 1), bounds=(-20, 20), where="x > 9")
                guard.ask("y", bounds=(-20, 20), missing=0, where="group", guess=(0.0, 0.5))
            receipt = guard.receipt()
        (SAMPLES / f"version{receipt['version']}-{name}.json").write_text(json.dumps(receipt, indent=1))


def looks() -> None:
    """Final looks at statistics of rows."""
    rng = np.random.default_rng(13)
    x, y = rng.normal(size=(2, 20_000))
    frame = pd.DataFrame({"x": x, "y": 0.6 * x + 0.8 * y, "group": rng.random(20_000) < 0.4})
    bounds: Any = {"bounds_x": (-20, 20), "bounds_y": (-20, 20)}
    with afresh.open(frame, 80, ledger=":memory:", analyst="ann", rounds=20) as guard:
        guard.measure(Histogram("x", [-20, -1, 1, 20], where="group"))
        guard.measure(Quantile("x", 0.5, (-2, 2), points=3))
        guard.measure(Variance("x", (-20, 20)))
        guard.measure(StandardDeviation("x", (-20, 20), where="group"))
        guard.measure(Covariance("x", "y", **bounds))
        guard.measure(Correlation("x", "y", **bounds))
        guard.measure(Correlation("x", "y", **bounds, within=3))
        guard.close_rounds()
        receipt = guard.receipt()
    (SAMPLES / f"version{receipt['version']}-looks-rounds.json").write_text(json.dumps(receipt, indent=1))


def closer() -> None:
    """Numbers clipped to bounds that were found in rounds, or looked for more than once, and final looks at them."""
    rng = np.random.default_rng(14)
    x, y = rng.normal(size=(2, 20_000))
    frame = pd.DataFrame({"x": x, "y": 0.6 * x - 0.8 * y - 5, "group": rng.random(20_000) < 0.4})
    bounds: Any = {"bounds_x": (-2000, 2000), "bounds_y": (-2e6, 2e6)}
    for name, given in (
        ("rounds", {"rounds": 20}),
        ("checked", {"method": "checked"}),
        ("settled", {"method": "settled"}),
    ):
        with afresh.open(frame, 80, ledger=":memory:", analyst="ann", **given) as guard:
            guard.measure(Correlation("x", "y", **bounds, missing_x=0, missing_y=0))
            guard.measure(Covariance("x", "y", **bounds, missing_x=0, missing_y=0, within=4))
            guard.measure(Variance("y", (-2e6, 2e6), where="group", missing=0, within=3))
            guard.ask("x", bounds=(-20, 20), where="group", missing=0)
            if name == "rounds":
                guard.close_rounds()
            receipt = guard.receipt()
        (SAMPLES / f"version{receipt['version']}-closer-{name}.json").write_text(json.dumps(receipt, indent=1))


if __name__ == "__main__":
    if sys.argv[1:] == ["later"]:
        later()
    elif sys.argv[1:] == ["looks"]:
        looks()
    elif sys.argv[1:] == ["closer"]:
        closer()
    else:
        main(sys.argv[1:])
