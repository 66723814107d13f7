"""Limits: what runs into one says so, and nothing is charged that was not answered."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import afresh
from afresh.errors import NotAllowed, TimedOut, TooMany
from afresh.server.asking import Asking
from afresh.server.config import Limits, read_config
from afresh.server.house import House
from afresh.server.metrics import Metrics
from afresh.server.repeats import Repeats
from afresh.server.tokens import Caller
from server.running import Service, running, write_data

ASK = "/v1/datasets/customers/ask"
NARROW = """
state = "state"
tick = 0
origins = ["https://ours.example"]
[limits]
headers = 0.5
seconds = 1
batch = 2
body = 2000
predictions = 3000
[datasets.customers]
data = "customers.parquet"
questions = 50
[holdouts.churn]
data = "churn.parquet"
label = "churned"
"""


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("narrow"), config=NARROW) as found:
        yield found


def connected(service: Service, content: str) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", httpx.URL(service.url).port or 80), timeout=30)
    found.sendall(content.encode())
    return found


def rest(connection: socket.socket) -> bytes:
    found = b""
    while data := connection.recv(65536):
        found += data
    return found


def test_headers_that_never_end_are_not_waited_for(narrow: Service) -> None:
    head = f"GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {narrow.token()}\r\n"
    silent, slow, second = (connected(narrow, text) for text in ("", head + "X-Slow: 1\r\n", head + "\r\n"))
    assert rest(silent) == rest(slow) == b""
    assert second.recv(65536).startswith(b"HTTP/1.1 200")
    second.sendall(head.encode())  # a second request on the same connection, without an end
    assert b"HTTP/1.1" not in rest(second)
    for each in (silent, slow, second):
        each.close()


def test_a_body_that_never_ends_is_not_waited_for(narrow: Service) -> None:
    for path in (ASK, "/v1/holdouts/churn/score"):
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {narrow.token()}\r\n"
        slow = connected(narrow, head + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        found = slow.recv(65536)
        assert b" 504 " in found.split(b"\r\n")[0]
        assert b'"timed-out"' in (found if b"}" in found else found + slow.recv(65536))
        slow.close()


def test_sizes(narrow: Service) -> None:
    for path, size in ((ASK, 2001), ("/v1/holdouts/churn/score", 3001)):
        found = narrow.call("POST", path, content=b" " * size, headers={"Content-Type": "application/json"})
        assert (found.status_code, found.json()["code"]) == (413, "too-large")
    many = {"questions": ["tenure < 1", "tenure < 2", "tenure < 3"]}
    assert narrow.post("/v1/datasets/customers/ask_many", many).json()["code"] == "too-large"
    fit = {"kind": "logistic", "features": ["tenure"], "label": "churned", "steps": 2}
    assert narrow.post("/v1/datasets/customers/fit", fit).json()["code"] == "too-large"
    assert narrow.get("/v1/datasets/customers/budget").json()["spent"] == 0


def test_pages_that_the_steward_names_may_call(narrow: Service) -> None:
    wants = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    for origin, allowed in {"https://ours.example": True, "https://evil.example": False}.items():
        asked = narrow.call("OPTIONS", ASK, headers={"Origin": origin, **wants})
        assert (asked.headers.get("access-control-allow-origin") == origin) is allowed
        assert (asked.status_code == 200) is allowed
        found = narrow.get("/v1/me", headers={"Origin": origin})
        assert ("access-control-allow-origin" in found.headers) is allowed
        assert "access-control-allow-credentials" not in found.headers


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    write_data(tmp_path, 500)
    place = tmp_path / "afresh.toml"
    place.write_text(
        'state = "state"\n[datasets.customers]\ndata = "customers.parquet"\nquestions = 40\nallow_wide = true'
    )
    config = replace(read_config(place), tick=0, limits=Limits(scans=2, seconds=0.3))
    found = House(config)
    yield found
    found.close()


def test_more_than_can_be_answered_at_once_waits_and_then_is_refused(house: House) -> None:
    """Two are answered at once, 32 may be on their way; whoever waits too long is told whether it was begun."""
    served, caller, go = house.served["customers"], Caller("ann", "analyst", ("*",)), threading.Event()
    asking = Asking(house, Metrics())

    def ask(number: int) -> Any:
        guard = served.guard.for_analyst("ann")

        def work() -> Any:
            go.wait()
            return guard.ask_many([f"tenure < {number}"])

        return asking.ask(served, caller, ["ask", number], work, lambda: 1, lambda found: 1)

    async def crowd() -> list[Any]:
        waiting = [asyncio.create_task(ask(number)) for number in range(33)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        (refused,) = done
        assert isinstance(refused.exception(), TooMany)
        found = await asyncio.gather(*waiting, return_exceptions=True)
        go.set()
        return found

    found = asyncio.run(crowd())
    told = [str(each) for each in found if isinstance(each, TimedOut)]
    assert len(told) == 32
    assert sum("did not start. Nothing was charged" in each for each in told) == 30
    assert sum("still running" in each for each in told) == 2
    asking.close()  # waits for those two
    assert served.guard.budget.spent == 2


def test_neither_uploads_nor_identity_providers_keep_others_at_the_door(house: House) -> None:
    asking, go, token = Asking(house, Metrics()), threading.Event(), house.tokens.new("ann")

    async def crowd() -> list[Any]:
        slow = [asyncio.create_task(way(go.wait)) for way in (asking.read, asking.look_up) for _ in range(20)]
        await asyncio.sleep(0)
        found = await asyncio.gather(*(asking.caller(each) for each in (token, "wrong", token)), return_exceptions=True)
        house.tokens.revoke("ann")
        found += await asyncio.gather(asking.caller(token), return_exceptions=True)
        go.set()
        await asyncio.gather(*slow)
        return found

    first, wrong, second, revoked = asyncio.run(crowd())
    assert first.name == second.name == "ann"
    assert isinstance(wrong, NotAllowed)
    assert isinstance(revoked, NotAllowed)
    asking.close()


def test_what_is_remembered_is_bounded_by_answers(house: House) -> None:
    answer = house.served["customers"].guard.ask("churned")
    repeats = Repeats(most=10)
    for number in range(100):
        repeats.keep(bytes([number]), [answer] * (number % 5))
    found = [repeats.get(bytes([each])) for each in range(100)]
    assert 0 < sum(1 + len(each.answers) for each in found if each is not None) <= 10
    repeats.keep(b"large", [answer] * 50)
    assert repeats.get(b"large") is None
    repeats.keep(b"new", [answer])
    repeats.keep(b"new", [answer])
    kept = repeats.get(b"new")
    assert kept is not None
    assert kept.again(7, None) is kept.again(7, None)
    assert [(each.left, each.charged, each.fixes) for each in kept.again(6, None)] == [(6, 0, None)]
    assert kept.answers == [answer]


def test_a_freeze_can_be_renewed_by_two_at_once(house: House) -> None:
    threads = [threading.Thread(target=house.freezer.freeze, args=("customers", f"why {i}.")) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (house.freezer.why("customers") or "").startswith("why ")
    house.freezer.thaw("customers")
    assert house.freezer.why("customers") is None
    assert isinstance(house.served["customers"].guard, afresh.Guard)
