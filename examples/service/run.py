"""A service and an analyst in one command: python examples/service/run.py

It makes data, starts `afresh serve` on this machine, asks a few questions as an analyst who holds only a token,
compares two models on hidden labels, and stops the service. Everything is kept in a temporary folder.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import afresh

HERE = Path(__file__).parent


def make_data(folder: Path) -> None:
    chance = np.random.default_rng(1)
    for name, rows in (("customers", 20_000), ("holdout", 10_000)):
        tenure, calls = chance.geometric(0.04, rows) - 1, chance.poisson(1.2, rows)
        churned = chance.random(rows) < 1 / (1 + np.exp(1.8 + 0.04 * tenure - 0.45 * calls))
        table = {"tenure": tenure, "calls": calls, "amount": chance.gamma(2, 50, rows), "churned": churned}
        pq.write_table(pa.table(table), folder / f"{name}.parquet")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_data(folder)
        config = shutil.copy(HERE / "afresh.toml", folder)
        command = [sys.executable, "-m", "afresh.cli"]
        make = [*command, "token", "new", "ann", "--config", config]
        token = subprocess.run(make, capture_output=True, text=True, check=True).stdout.strip()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        serving = subprocess.Popen([*command, "serve", config, "--port", str(port)], stderr=subprocess.DEVNULL)
        try:
            wait(url)
            with afresh.connect(url, token) as service:
                print(service)
                guard, holdout = service.open("customers"), service.holdout("churn")
                print(guard.ask("churned AND tenure < 12"))
                print(guard.ask("amount"))
                print(holdout.compare(lambda X: X["tenure"] < 0, lambda X: X["calls"] > 3, names=("nobody", "callers")))
                print(guard.budget)
        finally:
            serving.terminate()
            serving.wait()


def wait(url: str) -> None:
    for _ in range(300):
        try:
            if httpx.get(f"{url}/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit("the service did not start")


if __name__ == "__main__":
    main()
