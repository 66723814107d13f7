"""Sample ledgers of every layout, which every later version must be able to open.

`samples/layout1.*` was made by the version whose ledgers had no chain, in the same way. For a new layout,

    python -m ledger.samples 2

from the folder tests/ writes `samples/layout2.sqlite` and what is in it as JSON; commit them and never change them.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import afresh
from afresh.ledger import open_ledger

FOLDER = Path(__file__).parent / "samples"
METHODS = ("stabilized", "calibrated", "split", "guess-and-check")


def frame(method: str) -> pd.DataFrame:
    """The data of a method's guard; every guard has others."""
    i = np.arange(1000)
    return pd.DataFrame({"x": i % (7, 11, 13, 17)[METHODS.index(method)], "y": (i * 37 % 101) / 101})


def told(layout: int) -> dict[str, Any]:
    """What the sample of a layout must say, by method."""
    told: dict[str, Any] = json.loads((FOLDER / f"layout{layout}.json").read_text())
    return told


def make(path: Path) -> dict[str, Any]:
    """A ledger with a guard of each method, and with a record of every kind that it admits."""
    told: dict[str, Any] = {}
    with closing(open_ledger(path)) as ledger:
        for method in METHODS:
            mixes = method in ("stabilized", "calibrated")  # answers of unequal noise, and charges from outside
            with afresh.open(
                frame(method),
                12,
                0.9,
                method=method,
                ledger=ledger,
                analyst="Ada",
                answers=20 if mixes else None,
            ) as guard:
                answers = [guard.ask("x < 3"), guard.ask("y", bounds=(0, 2)), guard.ask("x = 1", where="y < 0.5")]
                guard.divide({"Ada": 9})
                if mixes:
                    answers += [guard.ask("x > 1", precision=0.4), guard.ask("x > 1")]
                    guard.charge("a published mean", noise_sd=0.5)
                guard._engine.moments = None  # type: ignore[method-assign, assignment]
                with suppress(TypeError):
                    guard.ask("x > 4")  # paid for, and not answered
                terms = guard._terms
                told[method] = {
                    "fingerprint": terms.fingerprint,
                    "plan": terms.plan,
                    "seed": terms.seed,
                    "answers": [answer.to_dict() for answer in answers],
                    "chain": [list(record) for record in ledger.chain(terms)],
                }
    return told


if __name__ == "__main__":
    name = FOLDER / f"layout{sys.argv[1]}"
    if name.with_suffix(".sqlite").exists():
        sys.exit(f"{name}.sqlite is there already, and must never change")
    name.with_suffix(".json").write_text(json.dumps(make(name.with_suffix(".sqlite")), indent=1))
