"""Two servers that pose as two hosts, on one PostgreSQL ledger: what one does, the other goes by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from afresh.server.clock import leaving
from ledger.servers import running as postgres
from server.running import Service, running

TICK, SLEEP = 0.05, 0.15
CONFIG = """
state = "state"
ledger = "{ledger}"
tick = {tick}
[datasets.slow]
data = "{ledger}"
table = "slow"
questions = 100
allow_wide = true
[datasets.rounds]
data = "{ledger}"
table = "fast"
questions = 60
rounds = 6
allow_wide = true
new_rows = "another sample of the same thousand numbers"
[datasets.fast]
data = "{ledger}"
table = "other"
questions = 100
allow_wide = true
new_rows = "a third sample of them"
"""


class Hosts(NamedTuple):
    one: Service
    two: Service


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with ExitStack() as stack:
        server = stack.enter_context(postgres())
        rows = "SELECT hashint4(i + {}) % 1000 AS x FROM generate_series(1, 2000) AS s(i)"
        server.run(
            f"CREATE TABLE fast AS {rows.format(0)}",
            f"CREATE TABLE other AS {rows.format(5000)}",
            f"CREATE TABLE rest AS {rows.format(9000)}",
            f"CREATE VIEW slow AS SELECT r.* FROM rest AS r CROSS JOIN (SELECT pg_sleep({SLEEP})) AS s",
        )
        config = CONFIG.format(ledger=server.address, tick=TICK)
        folders = [tmp_path_factory.mktemp(name) for name in ("one", "two")]
        for folder in folders:
            (folder / "customers.parquet").touch()
        yield Hosts(*(stack.enter_context(running(folder, config=config)) for folder in folders))


def test_a_scan_cannot_be_timed_from_another_host(hosts: Hosts) -> None:
    """Neither by looking nor by asking the same there, again and again: all of it leaves on a doubled tick.

    Each scan sleeps at least once, so nothing may leave before the doubled tick that follows a sleep.
    """
    token, question = hosts.one.token(), {"expression": "x < 17"}

    def shown() -> float:
        while True:
            records = hosts.two.get("/v1/datasets/slow/transcript", token).json()["records"]
            if records and records[0]["value"] is not None:
                return time.time()

    def asked(service: Service, later: float) -> float:
        time.sleep(later)
        assert service.post("/v1/datasets/slow/ask", question, token).status_code == 200
        return time.time()

    began = time.time()
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(asked, hosts.one, 0)
        looked = threads.submit(shown)
        again = [threads.submit(asked, hosts.two, 0.05 * n) for n in range(1, 7)]
        times = [each.result() - began for each in (first, looked, *again)]
    assert min(times) >= leaving(SLEEP, TICK)
    assert hosts.one.get("/v1/datasets/slow/budget").json()["spent"] == 1


def test_a_final_look_sees_what_every_host_was_asked(hosts: Hosts) -> None:
    token, steward = hosts.one.token(), hosts.one.token("sam", "steward")
    for service, bound in zip((hosts.one, hosts.two, hosts.one), (100, 300, 500), strict=True):
        answer = service.post("/v1/datasets/rounds/ask", {"expression": f"x < {bound}"}, token)
        assert answer.status_code == 200, answer.text
    statistics = (
        {"kind": "Histogram", "expression": "x", "edges": [0, 500, 1000]},
        {"kind": "Variance", "expression": "x", "bounds": [0, 1000]},
    )
    for statistic in statistics:
        answer = hosts.one.post("/v1/datasets/rounds/measure", {"statistic": statistic}, token)
        assert answer.status_code == 200, answer.text
    told = []
    for service in (hosts.two, hosts.one):
        final = service.post("/v1/datasets/rounds/close_rounds", {}, steward).json()["answers"]
        told.append({each["question"]: each["interval"] for each in final})
        assert len(final) == 3 + 2 + 1
    assert told[0] == told[1]
    assert {"x < 100", "x < 300", "x < 500"} < told[0].keys()


def test_two_who_divide_at_once_divide_one_after_the_other(hosts: Hosts) -> None:
    steward = hosts.one.token("sam", "steward")
    shares = [{"ann": 30 + n, "bob": 40 - n} for n in range(8)]
    with ThreadPoolExecutor(8) as threads:
        done = [
            threads.submit(hosts[n % 2].post, "/v1/datasets/fast/divide", {"shares": each}, steward)
            for n, each in enumerate(shares)
        ]
        assert {each.result().status_code for each in done} == {200}
    left = [
        [service.get("/v1/datasets/fast/budget", hosts.one.token(name)).json()["left"] for name in ("ann", "bob")]
        for service in hosts
    ]
    assert left[0] == left[1]
    assert dict(zip(("ann", "bob"), left[0], strict=True)) in shares


def test_a_freeze_and_a_revocation_act_on_every_host(hosts: Hosts) -> None:
    """A question of a batch that was begun is answered; nothing that comes after the freeze is, not even a repeat."""
    steward, token = hosts.one.token("sam", "steward"), hosts.one.token("fay")
    path = "/v1/datasets/fast"
    assert hosts.one.post(f"{path}/ask", {"expression": "x < 3"}, token).status_code == 200
    with ThreadPoolExecutor(6) as threads:
        asked = [
            threads.submit(hosts[n % 2].post, f"{path}/ask", {"expression": f"x < {600 + n}"}, token) for n in range(6)
        ]
        assert hosts.one.call("PUT", f"{path}/freeze", steward, json={"why": "it has ended."}).status_code == 200
        refused = [service.post(f"{path}/ask", {"expression": "x < 3"}, token) for service in hosts]
        assert [each.json()["code"] for each in refused] == ["frozen", "frozen"]
        statuses = [each.result().status_code for each in asked]
    assert set(statuses) <= {200, refused[0].status_code}
    assert hosts.two.get(f"{path}/budget", token).json()["spent"] == 1 + statuses.count(200)
    assert hosts.two.call("DELETE", f"{path}/freeze", steward).status_code == 200
    assert hosts.one.post(f"{path}/ask", {"expression": "x < 3"}, token).json()["charged"] == 0
    assert hosts.two.call("DELETE", "/v1/tokens/fay", steward).status_code == 200
    assert {service.get("/v1/me", token).status_code for service in hosts} == {401}
