"""The first page of a long history, and of a long board, to that of a short one; CPU of the server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import httpx
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import afresh
from afresh.ledger import Question, outcome
from afresh.mechanisms.base import ReadsMany
from benchmarks.measured import Measured, compared
from benchmarks.service import serving

CONFIG = """
state = "state"
tick = 0
[limits]
requests = 1000000000
[datasets.rows]
data = "rows.parquet"
questions = {answers}
method = "stabilized"
allow_wide = true
"""
LIMIT = 2.0
_STEP = 0.01  # seconds in which the system counts processor time
ROWS = 1_000_000  # with fewer, so many answers would have no interval


def fill(folder: Path, answers: int) -> None:
    """A dataset with so many answers in its ledger, as its guard would have written them."""
    rows = np.random.default_rng(answers).integers(0, 1000, ROWS, dtype=np.int16)
    pq.write_table(pa.table({"x": rows}), folder / "rows.parquet")
    (folder / "afresh.toml").write_text(CONFIG.format(answers=answers))
    (folder / "state").mkdir()
    place = folder / "state" / "ledger.sqlite"
    rows_at = folder / "rows.parquet"
    with afresh.open(rows_at, answers, ledger=place, method="stabilized", allow_wide=True) as guard:
        ledger, terms, mechanism = guard.desk.ledger, guard.desk.terms, guard.plan.mechanism
        assert isinstance(mechanism, ReadsMany)
        assert mechanism.grid is not None
        for start in range(0, answers, 1000):
            numbers = range(start, min(start + 1000, answers))
            asked = [Question(f"digest {n}", f"x < {n}", mechanism.charge, mechanism.row_charge) for n in numbers]
            entries = ledger.reserve(terms, asked, f"analyst {start % 7}")
            released = np.full(len(numbers), np.floor(0.5 / mechanism.grid) * mechanism.grid)
            read = zip(released.tolist(), *(each.tolist() for each in mechanism.read_each(released)), strict=True)
            told = [(entry, outcome(*each, ends=guard.plan.ends)) for entry, each in zip(entries, read, strict=True)]
            ledger.record_many(terms, told)


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _signed_in(folder: Path, port: int) -> httpx.Client:
    made = [sys.executable, "-m", "afresh.cli", "token", "new", "ann"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    token = subprocess.run(made, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600)
    (key,) = re.findall(r'name="form_key" value="(\w+)"', client.get("/sign-in").text)
    client.post("/sign-in", data={"token": token, "form_key": key})
    return client


def pages(sizes: tuple[int, int], path: str, fill: Callable[[Path, int], None], times: int) -> list[float]:
    """Seconds of the server's processor for a page, of each size; it was looked at once before."""
    found = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            fill(folder, size)
            with serving(folder) as (port, id):
                client, process, taken = _signed_in(folder, port), psutil.Process(id), list[float]()
                client.get(path).raise_for_status()
                for _ in range(5):
                    before = _spent(process)
                    for _ in range(times):
                        client.get(path)
                    taken.append((_spent(process) - before) / times)
                found.append(max(median(taken), _STEP / times))
    return found


def measure(answers: tuple[int, int] = (100_000, 100), times: int = 20) -> Iterator[Measured]:
    """Long to short."""
    for name, path in {"history": "/datasets/rows/history", "dataset": "/datasets/rows"}.items():
        long, short = pages(answers, path, fill, times)
        what = f"the page of a {name} with {answers[0]:,} answers to {answers[1]:,}"
        yield compared(what, long, short, LIMIT, "CPU of the server")
