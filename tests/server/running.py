"""A service in a process of its own, on the loopback interface."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from afresh.server.config import read_config
from afresh.server.store import store_of
from afresh.server.tokens import Tokens
from cli.forked import shared

ROWS = 4000
AUTHORITIES = ssl.create_default_context()  # reading them takes longer than most requests
CONFIG = """
state = "state"
tick = 0.01
{ledger}

[datasets.customers]
data = "customers.parquet"
questions = 400
description = "Customers of a shop"
[datasets.customers.columns.amount]
description = "What a customer paid"
unit = "CHF"
bounds = [0, 500]
[datasets.customers.columns.country]
categories = ["CH", "DE"]
[datasets.customers.columns.secret]
hidden = true

[holdouts.churn]
data = "churn.parquet"
label = "churned"
questions = 400
id = "id"

{more}
"""


def write_data(folder: Path, rows: int = ROWS) -> None:
    """Two files of made-up rows."""
    chance = np.random.default_rng(7)
    amount = np.minimum(chance.exponential(100, rows), 500)
    table = {
        "churned": chance.random(rows) < 0.3,
        "tenure": chance.integers(0, 120, rows),
        "amount": amount,
        "country": chance.choice(["CH", "DE"], rows),
        "secret": chance.random(rows),
    }
    pq.write_table(pa.table(table), folder / "customers.parquet")
    x = chance.normal(size=(rows, 3))
    label = x[:, 0] + chance.normal(size=rows) > 0
    held = {"id": [f"r{i}" for i in chance.permutation(rows)], **{f"x{i}": x[:, i] for i in range(3)}, "churned": label}
    pq.write_table(pa.table(held), folder / "churn.parquet")


@dataclass
class Service:
    """One that runs."""

    folder: Path
    url: str
    process: subprocess.Popen[str]
    tokens: Tokens
    made: dict[str, str] = field(default_factory=dict)

    def token(self, name: str = "ann", role: str = "analyst", **more: Any) -> str:
        key = f"{name} {role} {sorted(more.items())}"
        if key not in self.made:
            self.made[key] = self.tokens.new(name, role, **more)
        return self.made[key]

    def call(self, method: str, path: str, who: str | None = None, **more: Any) -> httpx.Response:
        """A request in the name of an analyst, or with another token."""
        token = self.token() if who is None else who
        headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})}
        return httpx.request(method, self.url + path, headers=headers, timeout=60, verify=AUTHORITIES, **more)

    def post(self, path: str, body: Any, who: str | None = None, **more: Any) -> httpx.Response:
        return self.call("POST", path, who, json=body, **more)

    def get(self, path: str, who: str | None = None, **more: Any) -> httpx.Response:
        return self.call("GET", path, who, **more)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(folder: Path, config: Path, port: int) -> subprocess.Popen[str]:
    """A server process; it answers once `wait` returns."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with (folder / "log").open("a") as log:
        return subprocess.Popen(
            [str(shared()), "serve", str(config), "--port", str(port)],
            stdout=log,
            stderr=log,
            text=True,
            env=environment,
            cwd=folder,
        )


def wait(process: subprocess.Popen[str], url: str, folder: Path) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            raise AssertionError((folder / "log").read_text())
        try:
            if httpx.get(f"{url}/ready", timeout=5, verify=AUTHORITIES).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise AssertionError((folder / "log").read_text())


def stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(60)


@contextmanager
def running(folder: Path, more: str = "", ledger: str = "", config: str = CONFIG) -> Iterator[Service]:
    """A service over made-up data in a folder; it ends with the block."""
    if not (folder / "customers.parquet").exists():
        write_data(folder)
    place = folder / "afresh.toml"
    place.write_text(config.format(more=more, ledger=ledger))
    read = read_config(place)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    store, process = store_of(read.state, read.ledger), start(folder, place, port)
    try:
        wait(process, url, folder)
        yield Service(folder, url, process, Tokens(store))
    finally:
        store.close()
        if process.poll() is None:
            stop(process)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))
