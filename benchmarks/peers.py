"""Peers in their own environments: each one's mean of a million numbers, and a whole ask here, compared with numpy's.

Each peer is installed by name, once, into an environment below `.venv-peers`, since their requirements may conflict. A
peer that cannot be installed is reported and left out. They guarantee other things (privacy, a fixed experiment), so
this compares what they cost, not how good they are.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

import afresh
from benchmarks.measured import Measured, compared
from benchmarks.peer import PEERS
from benchmarks.small import ALIKE
from benchmarks.timing import side_by_side

HOME = Path(__file__).parents[1] / ".venv-peers"


def _run(*command: str, limit: float) -> str | None:
    """What a command prints; None if it fails or takes too long."""
    here = Path(__file__).parents[1]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=here, timeout=limit)
    except (subprocess.SubprocessError, OSError):
        return None
    return done.stdout


def measure(rows: int = 1_000_000, rounds: int = 5, peers: tuple[str, ...] = tuple(PEERS)) -> Iterator[Measured]:
    """Every peer that installs, and an ask here of as many new questions."""
    values, fresh = np.random.default_rng(0).exponential(100.0, rows), itertools.count(1)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.sqlite"
        with afresh.open(pl.DataFrame({"amount": values}), 10_000, ledger=ledger, **ALIKE) as guard:
            works: dict[str, Callable[[], object]] = {
                "ask": lambda: guard.ask("amount", bounds=(0, 500), missing=1e-9 * next(fresh)),
                "numpy": lambda: (values.clip(0, 500).mean(), values.clip(0, 500).var()),
            }
            taken = side_by_side(works, rounds)
    yield compared(f"afresh: a mean of {rows:,} numbers, to numpy", taken["ask"], taken["numpy"])
    for peer in peers:
        package, *others = PEERS[peer]
        home = HOME / package
        python = str(home / "bin" / "python")
        if not Path(python).exists():
            _run(sys.executable, "-m", "venv", str(home), limit=300)
        there = _run(python, "-c", f"import importlib.metadata as m; m.version({package!r})", limit=60)
        install = (python, "-m", "pip", "install", "--quiet", package, *others, "numpy")
        if there is None and _run(*install, limit=900) is None:
            yield Measured(f"{peer}: not measured", float("nan"), told=f"{package} does not install here")
            continue
        found = _run(python, "-m", "benchmarks.peer", peer, f"{rows}", f"{rounds}", limit=600)
        if found is None:
            yield Measured(f"{peer}: not measured", float("nan"), told=f"{package} is installed, but fails")
            continue
        ours, base, version = json.loads(found.splitlines()[-1])
        yield compared(f"{peer} {version}: a mean of {rows:,} numbers, to numpy", ours, base)
