"""Many clients of a service compared with one, with threads without HTTP and with the disk; repeats with new asks.

There are five rounds, each running all of them one after the other; a ratio is the median over the rounds.

`AFRESH_SERVER=granian` serves the same application with granian, which has to be installed, to compare the two.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import afresh
from benchmarks.measured import Measured

CLIENTS = 64
CONFIG = """
state = "state"
tick = 0
[limits]
requests = 1000000000
[datasets.rows]
data = "rows.parquet"
questions = 100000
method = "calibrated"
"""


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, int]]:
    """A real server process: its port and its id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "afresh.cli", "serve", "afresh.toml", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    if os.environ.get("AFRESH_SERVER") == "granian":
        environment["AFRESH_SERVE"] = str(folder / "afresh.toml")
        options = ["--interface", "asgi", "--factory", "--no-ws", "--port", str(port), "--log-level", "warning"]
        command = [sys.executable, "-m", "granian", *options, "afresh.server.app:from_environment"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL, env=environment)
    try:
        for _ in range(600):
            try:
                urlopen(f"http://127.0.0.1:{port}/ready", timeout=5).read()
                break
            except OSError:
                time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


class _Client(asyncio.Protocol):
    """Asks one question after the other on one connection, by as little code as it takes: the server is measured."""

    def __init__(self, requests: Sequence[bytes], taken: list[float]) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._requests, self._taken = iter(requests), taken

    def itself(self) -> _Client:
        """As a loop wants to have it made."""
        return self

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self.ended.set_result(None)
            self._transport.close()
            return
        self._got, self._length, self._began = b"", 0, time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._length and (end := self._got.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._got, 0, end + 2)
            if found is None or not self._got.startswith(b"HTTP/1.1 200"):
                self.ended.set_exception(RuntimeError(self._got.decode()))
                return
            self._length = end + 4 + int(found[1])
        if self._length and len(self._got) >= self._length:
            self._taken.append(time.perf_counter() - self._began)
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or ConnectionError("the server hung up"))


_LENGTH = re.compile(rb"content-length: (\d+)\r\n", re.IGNORECASE)


def _written(token: str, question: str) -> bytes:
    body = json.dumps({"expression": question}).encode()
    head = f"POST /v1/datasets/rows/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def ask(port: int, token: str, questions: Sequence[str], clients: int) -> tuple[float, list[float]]:
    """Questions a second, and how long each took."""
    taken: list[float] = []
    requests = [_written(token, question) for question in questions]

    async def run() -> None:
        loop = asyncio.get_running_loop()
        made = [_Client(requests[i::clients], taken) for i in range(clients)]
        for client in made:
            await loop.create_connection(client.itself, "127.0.0.1", port)
        await asyncio.gather(*(client.ended for client in made))

    began = time.perf_counter()
    asyncio.run(run())
    return len(questions) / (time.perf_counter() - began), taken


def library(guard: afresh.Guard, questions: Sequence[str], threads: ThreadPoolExecutor) -> float:
    """Questions a second by as many threads on one guard, without HTTP."""
    began = time.perf_counter()
    list(threads.map(guard.ask, questions))
    return len(questions) / (time.perf_counter() - began)


def commits(place: Path, count: int = 100) -> float:
    """How many commits a second the disk takes, one after the other, as the ledger makes them."""
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE t (x)"):
            connection.execute(statement)
        began = time.perf_counter()
        for number in range(count):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
        return count / (time.perf_counter() - began)


@dataclass
class Rates:
    """Questions a second in every round, and how long new ones took."""

    one: list[float] = field(default_factory=list)
    many: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    disk: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)

    def compared(self, words: str, this: str, that: str, limit: float | None, more: str = "") -> Measured:
        """The median of the rounds' ratios: what else the machine does meets both sides of a round alike."""
        a, b = np.array(getattr(self, this)), np.array(getattr(self, that))
        said = f"{np.median(a):.0f} to {np.median(b):.0f} a second{more}"
        return Measured(words, float(np.median(a / b)), limit, said, least=True)


def measure(
    rows: Sequence[int] = (1_000_000, 10_000),
    count: int = 640,
    alone: int = 40,
    rounds: int = 5,
    requests: int = 100_000,
) -> Iterator[Measured]:
    """Rates as ratios, side by side; p50 and p99 are told. Memory is that of the smallest table's service."""
    for size in rows:
        with tempfile.TemporaryDirectory() as place:
            folder, chance = Path(place), np.random.default_rng(1)
            table = {"x": chance.integers(0, 1_000_000, size), "y": chance.normal(size=size)}
            pq.write_table(pa.table(table), folder / "rows.parquet")
            (folder / "afresh.toml").write_text(CONFIG + ("allow_wide = true\n"))
            made = [sys.executable, "-m", "afresh.cli", "token", "new", "ann"]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
            told = subprocess.run(made, cwd=folder, env=environment, capture_output=True, text=True, check=True)
            token, words, found = told.stdout.strip(), f"{size:,} rows", Rates()
            options: dict[str, Any] = {"method": "calibrated", "ledger": folder / "library.sqlite", "allow_wide": True}
            with (
                serving(folder) as (port, process),
                afresh.open(folder / "rows.parquet", 100_000, **options) as guard,
                ThreadPoolExecutor(CLIENTS) as threads,
            ):
                ask(port, token, [f"y > {i}" for i in range(CLIENTS)], CLIENTS)  # every connection and thread once
                library(guard, [f"y > {i}" for i in range(CLIENTS)], threads)
                for turn in range(rounds):
                    questions = [f"x < {turn * count + i}" for i in range(count)]
                    found.one.append(ask(port, token, [f"{each} AND y > 0" for each in questions[:alone]], 1)[0])
                    rate, taken = ask(port, token, questions, CLIENTS)
                    found.many.append(rate)
                    found.taken += taken
                    found.again.append(ask(port, token, questions * 3, CLIENTS)[0])
                    found.bare.append(library(guard, questions, threads))
                    found.disk.append(commits(folder / f"disk-{turn}.sqlite") / 2)
                grown = list(growth(port, process, token, questions, requests)) if size == min(rows) else []
            p50, p99 = 1000 * np.quantile(found.taken, [0.5, 0.99])
            times = f"; p50 {p50:.0f} ms, p99 {p99:.0f} ms"
            yield found.compared(f"{CLIENTS} clients of a service to one, {words}", "many", "one", 5.0, times)
            yield found.compared(f"a service to threads without HTTP, {words}", "many", "bare", 0.5)
            yield found.compared(f"repeats to new questions of a service, {words}", "again", "many", 3.0)
            yield found.compared(f"a service to the disk, two commits an answer, {words}", "many", "disk", None)
            yield from grown


def growth(port: int, process: int, token: str, questions: Sequence[str], requests: int) -> Iterator[Measured]:
    """Memory after a tenth of many requests, most of them repeats, and after all of them."""
    seen = []
    for part in (requests // 10, requests - requests // 10):
        for _ in range(max(part // len(questions), 1)):
            ask(port, token, questions, CLIENTS)
        family = [psutil.Process(process), *psutil.Process(process).children(recursive=True)]
        seen.append(sum(each.memory_info().rss for each in family))
    said = f"{seen[1] / 2**20:.0f} to {seen[0] / 2**20:.0f} MB"
    yield Measured(f"a service's memory after {requests:,} requests to after a tenth", seen[1] / seen[0], 1.1, said)
