"""`/health` of a service while one client attacks it, compared with 100 ms: the slowest hundredth of the requests.

Each attack runs on several connections, one request after the other, as fast as the service lets it.
"""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from afresh.server.config import read_config
from afresh.server.store import store_of
from afresh.server.tokens import Tokens
from benchmarks.measured import Measured, ms
from benchmarks.service import serving

LIMIT = 0.1
"""Seconds."""
TURN = b"999999"
"""Stands for the number of a request in what is sent: no two ask the same."""
CONFIG = """
state = "state"
tick = 0
[datasets.rows]
data = "rows.parquet"
questions = 100000
method = "calibrated"
allow_wide = true
[datasets.rows.columns.y]
bounds = [-5, 5]
[holdouts.held]
data = "held.parquet"
label = "z"
"""


def _post(path: str, body: bytes, token: str | None, media: str = "application/json") -> bytes:
    who = "" if token is None else f"Authorization: Bearer {token}\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{who}Content-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _long(last: str, size: int) -> bytes:
    """Questions as long as they may be, with bounds to be found."""
    wide = "x IN (" + ",".join(str(i % 10) for i in range(4000)) + f",1{TURN.decode()}{{:04d}})"
    return json.dumps({"questions": [*map(wide.format, range(size // 8100)), last]}).encode()


def attacks(token: Callable[[], str], rows: int, size: float) -> Mapping[str, bytes]:
    """What is sent, again and again, each with a token of its own; a `size` of 1 is as large as the service takes."""
    body, cells = int(390_000 * size), ",".join(["0.25"] * int(18_000_000 * size / 5 / rows))
    names = ",".join(f"m{i}" for i in range(cells.count(",") + 1))
    csv = f"{names}\n{f'{cells}{chr(10)}' * rows}".encode()
    many, wrong = "/v1/datasets/rows/ask_many", json.dumps({"questions": [1] * (body // 3)}).encode()
    keys = json.dumps({f"k{i}": 1 for i in range(body // 13)}).encode()
    return {
        "long questions, answered": _post(many, _long("x < 3", body), token()),
        "long questions, the last one wrong": _post(many, _long("no_such_column", body), token()),
        "a body with very many mistakes": _post(many, wrong, token()),
        "a body with very many unknown keys": _post(many, keys, token()),
        "0.9 MB, more than is taken": _post(many, b" " * int(900_000 * size), token()),
        "one header of 117 MB": b"GET /health HTTP/1.1\r\nX: " + b"a" * int(117_000_000 * size),
        "117 MB of headers": b"GET /health HTTP/1.1\r\n" + b"X: 1\r\n" * int(117_000_000 * size / 6),
        "a large CSV file": _post("/v1/holdouts/held/score", csv, token(), "text/csv"),
        "a large body without a token": _post("/v1/holdouts/held/score", csv, None, "text/csv"),
    }


def _attack(port: int, sent: bytes, begun: Any, answered: Any) -> None:
    """Send it on one connection after the other; a process of its own, so that only the service slows others down."""
    varies = TURN in sent
    while True:
        with begun.get_lock():
            begun.value += 1
            turn = b"%06d" % begun.value
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
            with suppress(OSError):  # the service may refuse it before its end
                connection.sendall(sent.replace(TURN, turn) if varies else sent)
            if connection.recv(65536):
                with answered.get_lock():
                    answered.value += 1


def _innocent(port: int, count: int) -> list[float]:
    """How long each of so many requests took, on one connection."""
    taken, client = [], HTTPConnection("127.0.0.1", port)
    for _ in range(count):
        began = time.perf_counter()
        client.request("GET", "/health")
        client.getresponse().read()
        taken.append(time.perf_counter() - began)
        time.sleep(0.005)
    client.close()
    return taken


def _under(port: int, sent: bytes | None, count: int, connections: int) -> tuple[list[float], int]:
    """The times of an innocent caller, and how many requests of the attack were answered meanwhile."""
    spawn = get_context("spawn")
    begun, answered = spawn.Value("q", 0), spawn.Value("q", 0)
    given = (port, sent, begun, answered)
    attackers = [spawn.Process(target=_attack, args=given) for _ in range(connections if sent else 0)]
    for each in attackers:
        each.start()
    while begun.value < len(attackers):
        time.sleep(0.01)
    taken = _innocent(port, count)
    for each in attackers:
        each.terminate()
        each.join()
    return taken, answered.value


def measure(rows: int = 4000, count: int = 1000, connections: int = 2, size: float = 1.0) -> Iterator[Measured]:
    """The slowest hundredth of the requests, compared with 100 ms, alone and under each attack."""
    with tempfile.TemporaryDirectory() as place:
        folder, chance = Path(place), np.random.default_rng(1)
        table = {"x": chance.integers(0, 1000, rows), "y": chance.normal(size=rows), "z": chance.random(rows) < 0.5}
        pq.write_table(pa.table(table), folder / "rows.parquet")
        held = {"w": chance.normal(size=rows), "z": chance.random(rows) < 0.3}
        pq.write_table(pa.table(held), folder / "held.parquet")
        (folder / "afresh.toml").write_text(CONFIG)
        config = read_config(folder / "afresh.toml")
        with closing(store_of(config.state, config.ledger)) as store:
            made = attacks(lambda: Tokens(store).new("eve"), rows, size)
        tried: Mapping[str, bytes | None] = {"no attack": None, **made}
        with serving(folder) as (port, _):
            for name, sent in tried.items():
                taken, answered = _under(port, sent, count, connections)
                p50, p99 = np.quantile(taken, [0.5, 0.99])
                said = f"p50 {ms(p50)}, p99 {ms(p99)}, longest {ms(max(taken))}; {answered} of the attack answered"
                yield Measured(f"/health, p99 to {ms(LIMIT)}: {name}", p99 / LIMIT, 1.0, said)
