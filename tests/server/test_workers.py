"""Two worker processes, and tokens of an identity provider; and a first try without a configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jwt
import numpy as np
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

import afresh
from ledger.servers import running as postgres
from server.running import Service, free_port, running, stop, wait, write_data
from server.visiting import key_of, session

CONFIG = """
state = "state"
tick = 0.01
workers = 2
[datasets.customers]
data = "customers.parquet"
questions = 100
[jwt]
keys = "keys.json"
issuer = "https://id.example"
audience = "afresh"
"""


@pytest.fixture(scope="module")
def key() -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, key: Any) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("two")
    public = {**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": "k1", "use": "sig", "alg": "RS256"}
    (folder / "keys.json").write_text(json.dumps({"keys": [public]}))
    with running(folder, config=CONFIG) as found:
        yield found


def told(**more: Any) -> dict[str, Any]:
    claims = {"sub": "ida", "iss": "https://id.example", "aud": "afresh", "exp": time.time() + 600}
    return {**claims, "afresh_role": "analyst", "afresh_datasets": ["customers"], **more}


def test_a_signed_token_says_who_asks(two: Service, key: Any) -> None:
    good = jwt.encode(told(), key, "RS256", {"kid": "k1"})
    assert two.get("/v1/me", good).json()["name"] == "ida"
    assert two.post("/v1/datasets/customers/ask", {"expression": "churned"}, good).json()["charged"] == 1
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_numbers().n.to_bytes(256, "big")
    bad = [
        jwt.encode(told(), other, "RS256", {"kid": "k1"}),
        jwt.encode(told(), key, "RS256", {"kid": "k2"}),
        jwt.encode(told(), public, "HS256", {"kid": "k1"}),  # the public key taken for a shared secret
        jwt.encode(told(), "", "none", {"kid": "k1"}),
        jwt.encode(told(exp=time.time() - 1), key, "RS256", {"kid": "k1"}),
        jwt.encode(told(aud="another"), key, "RS256", {"kid": "k1"}),
        jwt.encode(told(iss="https://evil.example"), key, "RS256", {"kid": "k1"}),
        jwt.encode(told(afresh_role="king"), key, "RS256", {"kid": "k1"}),
        good[:-3] + "AAA",
    ]
    for token in bad:
        found = two.get("/v1/me", token)
        assert (found.status_code, found.json()["code"]) == (401, "not-allowed")
    narrow = jwt.encode(told(afresh_datasets=[]), key, "RS256", {"kid": "k1"})
    assert two.get("/v1/datasets/customers", narrow).status_code == 404


def test_a_signed_token_opens_pages_on_all_workers_until_it_expires(two: Service, key: Any) -> None:
    client = session(two, jwt.encode(told(), key, "RS256", {"kid": "k1"}))
    assert all("customers" in client.get("/", headers={"Connection": "close"}).text for _ in range(8))
    (cookie,) = client.cookies.jar
    assert 0 < (cookie.expires or 0) - time.time() <= 600  # no longer than the token
    form = {"form_key": key_of(client), "expression": "tenure < 5"}
    assert "guaranteed" in client.post("/datasets/customers/ask", data=form).text
    asked = two.get("/v1/datasets/customers/transcript").json()["records"]
    assert {each["analyst"] for each in asked if each["question"] == "tenure < 5"} == {"ida"}


def test_revoking_acts_on_all_workers_at_once(two: Service) -> None:
    token = two.token("rita")
    assert {two.get("/v1/me", token).status_code for _ in range(20)} == {200}
    two.tokens.revoke("rita")
    assert {two.get("/v1/me", token).status_code for _ in range(20)} == {401}


def test_workers_share_one_budget(two: Service) -> None:
    with afresh.connect(two.url, two.token()) as service:
        answers = [service.open("customers").ask(f"tenure < {i}") for i in range(6)]
    with afresh.connect(two.url, two.token()) as service:
        guard = service.open("customers")
        again = guard.ask_many([f"tenure < {i}" for i in range(6)])
        assert [each.value for each in again] == [each.value for each in answers]
        assert {each.charged for each in again} == {0}
        assert len({record.number for record in guard.transcript}) == guard.budget.spent


BOARDS = """
state = "state"
tick = 0.01
workers = 2
{ledger}
[holdouts.churn]
data = "churn.parquet"
label = "churned"
questions = 60
[boards.cup]
holdout = "churn"
public = true
[holdouts.weekly]
data = "customers.parquet"
label = "churned"
questions = 60
rounds = 3
[boards.league]
holdout = "weekly"
reveal = "rounds"
"""


def test_boards_on_postgresql_with_several_workers(tmp_path: Path) -> None:
    """Entries at once through two workers: each is charged and placed once, and all workers show one table."""
    with postgres() as server, running(tmp_path, ledger=f'ledger = "{server.empty()}"', config=BOARDS) as service:
        held = pq.read_table(tmp_path / "churn.parquet").to_pydict()
        good = np.array(held["x0"]) > 0
        wrong = np.random.default_rng(3).permutation(len(good))  # 200 rows more are wrong for each
        models = {f"model {i}": good ^ (wrong < 200 * i) for i in range(6)}

        def submit(board: str, name: str, made: Any) -> httpx.Response:
            body, who = {"predictions": {name: np.asarray(made).tolist()}}, service.token(name.replace(" ", "-"))
            return service.post(f"/v1/boards/{board}/submit", body, who, headers={"Connection": "close"})

        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda each: submit("cup", *each), models.items()))
            twice = list(pool.map(lambda made: submit("cup", "same name", made), (good, ~good)))
        assert {each.status_code for each in found} == {200}
        assert sorted(each.status_code for each in twice) == [200, 422]
        tables = [service.get("/v1/boards/cup/table", headers={"Connection": "close"}).json() for _ in range(8)]
        assert all(each["entries"] == tables[0]["entries"] for each in tables)
        assert {each["name"] for each in tables[0]["entries"]} == {*models, "same name"}
        spent = service.get("/v1/datasets/churn/budget").json()["spent"]
        assert spent == sum(each.json()["charged"] for each in found) + sum(
            each.json()["charged"] for each in twice if each.status_code == 200
        )
        flights = len(pq.read_table(tmp_path / "customers.parquet"))
        for name, made in {"zeros": np.zeros(flights, bool), "ones": np.ones(flights, bool)}.items():
            assert submit("league", name, made).json()["verdict"] == "sealed until the round is revealed"
        steward = service.token("sue", "steward")

        def reveal(_: int) -> int:
            return service.post("/v1/boards/league/reveal", {}, steward, headers={"Connection": "close"}).status_code

        with ThreadPoolExecutor(2) as pool:
            statuses = sorted(pool.map(reveal, range(2)))
        assert statuses[0] == 200
        table = service.get("/v1/boards/league/table").json()
        assert (table["best"], table["sealed"]) == (["zeros"], 0)
        assert len(table["entries"]) == 2


def test_a_first_try_takes_one_command(tmp_path: Path) -> None:
    write_data(tmp_path)
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment["AFRESH_LEDGER"] = str(tmp_path / "ledger.sqlite")
    command = [
        sys.executable,
        "-m",
        "afresh.cli",
        "serve",
        "customers.parquet",
        "--questions",
        "50",
        "--port",
        str(port),
    ]
    (tmp_path / "log").touch()
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=out, stderr=out, text=True)
    try:
        wait(process, f"http://127.0.0.1:{port}", tmp_path)
        address, token = (tmp_path / "out").read_text().split()[:2]
        assert address == f"http://127.0.0.1:{port}/customers"
        headers = {"Authorization": f"Bearer {token.removeprefix('AFRESH_TOKEN=')}"}
        told = httpx.get(f"http://127.0.0.1:{port}/v1/datasets/customers", headers=headers).json()
        assert told["plan"]["questions"] == 50
    finally:
        stop(process)
