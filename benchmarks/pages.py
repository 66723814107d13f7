"""The first page of a long history, and of a long board, compared with that of a short one; the server's CPU time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import afresh
from afresh.ledger import Question, Statement, outcome
from afresh.mechanisms.base import ReadsMany
from benchmarks.measured import Measured, compared
from benchmarks.service import serving

CONFIG = """
state = "state"
tick = 0
[limits]
requests = 1000000000
[holdouts.rows]
data = "rows.parquet"
label = "y"
questions = {answers}
method = "stabilized"
allow_wide = true
[boards.cup]
holdout = "rows"
"""
LIMIT = 2.0
_STEP = 0.01  # seconds in which the system counts processor time
ROWS = 1_000_000  # with fewer, so many answers would have no interval


def fill(folder: Path, answers: int, entries: int, rows: int) -> None:
    """A holdout with so many answers, as its guard would have written them; the last are entries of a board."""
    chance = np.random.default_rng(answers)
    table = {"x": chance.integers(0, 1000, rows, dtype=np.int16), "y": chance.random(rows) < 0.5}
    pq.write_table(pa.table(table), folder / "rows.parquet")
    (folder / "afresh.toml").write_text(CONFIG.format(answers=answers))
    (folder / "state").mkdir()
    place, data = folder / "state" / "ledger.sqlite", folder / "rows.parquet"
    with afresh.open(data, answers, ledger=place, method="stabilized", allow_wide=True) as guard:
        ledger, terms, mechanism = guard.desk.ledger, guard.desk.terms, guard.plan.mechanism
        assert isinstance(mechanism, ReadsMany)
        assert mechanism.grid is not None
        for start in range(0, answers, 1000):
            numbers = range(start, min(start + 1000, answers))
            asked = [Question(f"digest {n}", f"x < {n}", mechanism.charge, mechanism.row_charge) for n in numbers]
            paid = ledger.reserve(terms, asked, f"analyst {start % 7}")
            released = np.full(len(numbers), np.floor(0.5 / mechanism.grid) * mechanism.grid)
            read = zip(released.tolist(), *(each.tolist() for each in mechanism.read_each(released)), strict=True)
            told = [(entry, outcome(*each, ends=guard.plan.ends)) for entry, each in zip(paid, read, strict=True)]
            ledger.record_many(terms, told)
        ledger.state(terms, [_entry(answers - place, place / entries) for place in range(entries)], "ann")


def _entry(number: int, value: float) -> Statement:
    """An entry of the board."""
    name = f"entry {number}"
    about = {"board": "cup", "entry": name, "entrant": "ann", "loss": "zero-one loss", "features": "public"}
    low, high = max(value - 0.02, 0.0), min(value + 0.02, 1.0)
    return Statement(f"zero-one loss of {name}", "entry", about, (number,), (0.0, 1.0), value, low, high)


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


PATHS = {"history": "/datasets/rows/history", "dataset": "/datasets/rows", "board": "/boards/cup"}


def pages(answers: int, entries: int, rows: int, times: int) -> dict[str, float]:
    """Seconds of the server's processor for a page; it was looked at once before."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fill(folder, answers, entries, rows)
        with serving(folder) as (port, id):
            client, process = _signed_in(folder, port), psutil.Process(id)
            for name, path in PATHS.items():
                client.get(path).raise_for_status()
                taken = []
                for _ in range(5):
                    before = _spent(process)
                    for _ in range(times):
                        client.get(path)
                    taken.append((_spent(process) - before) / times)
                found[name] = max(median(taken), _STEP / times)
    return found


def measure(
    answers: tuple[int, int] = (100_000, 100),
    entries: tuple[int, int] = (10_000, 100),
    rows: int = ROWS,
    times: int = 20,
) -> Iterator[Measured]:
    """Long to short."""
    long, short = (pages(*sizes, rows, times) for sizes in zip(answers, entries, strict=True))
    counts = {"history": ("answers", answers), "dataset": ("answers", answers), "board": ("entries", entries)}
    for name, (what, (many, few)) in counts.items():
        said = f"the first page of a {name} with {many:,} {what} to {few:,}"
        yield compared(said, long[name], short[name], LIMIT, "CPU of the server")
