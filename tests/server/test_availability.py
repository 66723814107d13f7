"""What one caller sends keeps no other waiting, in requests that others complete and bytes that are taken in."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPResponse
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.routing import APIRoute
from pydantic import ValidationError

from afresh.errors import TooMany
from afresh.server import api, boards, evaluations, models, steward
from afresh.server.asking import WEIGHT, Rates
from afresh.server.bodies import Questions
from afresh.server.crew import Crew
from afresh.server.pages.doors import ROUTERS
from afresh.server.patience import HEAD
from server.running import ROWS, Service

BUFFERS = 16_000_000  # the most that two ends of a connection keep in their buffers on this machine, in bytes
ANYONE = {"/sign-in", "/verify"}  # pages that take a body from people without a token


def connect(service: Service, wait: float = 60) -> socket.socket:
    return socket.create_connection(("127.0.0.1", httpx.URL(service.url).port or 80), timeout=wait)


def rest(connection: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionResetError):
        while data := connection.recv(65536):
            found += data
    return found


def answered(connection: socket.socket) -> int:
    """The status of one response, which is read to its end."""
    found = HTTPResponse(connection)
    found.begin()
    found.read()
    return found.status


def doors() -> Iterator[tuple[str, str]]:
    """Every door that may be sent a body."""
    for prefix, routers in (("/v1", PROGRAMS), ("", ROUTERS)):
        for route in (each for router in routers for each in router.routes if isinstance(each, APIRoute)):
            for method in (route.methods or set()) - {"GET", "HEAD"}:
                yield method, prefix + route.path.replace("{name}", "customers").replace("{which}", "ann")


PROGRAMS = (api.router, models.router, boards.router, evaluations.router, steward.router)
DOORS = sorted({*doors(), ("POST", "/mcp"), ("POST", "/v1/nothing"), ("PUT", "/v1/datasets/nothing/ask")})


def test_no_byte_of_a_body_is_read_without_a_token(service: Service) -> None:
    """At no door: whoever sends only headers, and announces a body, is refused before any of it comes."""
    assert len(DOORS) > 40
    for method, path in DOORS:
        if path in ANYONE:
            continue
        for framing in ("Content-Length: 300000", "Content-Length: 100", "Transfer-Encoding: chunked"):
            for who in ("", "Authorization: Bearer wrong\r\n"):
                with connect(service, 20) as connection:
                    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    connection.sendall(f"{head}{who}{framing}\r\n\r\n".encode())
                    said = connection.recv(65536).split(b"\r\n\r\n")[0]
                    assert said.startswith((b"HTTP/1.1 401", b"HTTP/1.1 303", b"HTTP/1.1 413")), (
                        method,
                        path,
                        framing,
                        said,
                    )
                    assert (b"connection: close" in said) is (framing != "Content-Length: 100")


def endless(connection: socket.socket, head: bytes, more: bytes, most: int = 10 * BUFFERS) -> int:
    """Send until the other end has had enough; the number of bytes that were sent."""
    connection.sendall(head)
    sent = len(head)
    with suppress(ConnectionError):
        while sent < most:
            sent += connection.send(more)
    return sent


GET = b"GET /health HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /v1/datasets/customers/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
POST += b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (GET + b"X-Long: ", b"a" * 65536),
        (GET, b"X-Many: 1\r\n" * 6000),
        (GET, b"a:\r\n" * 16000),
        (b"GET /", b"a" * 65536),
        (POST + b"1\r\n \r\n0\r\n", b"X-Trailer: 1\r\n" * 5000),
        (POST + b"1;", b"x" * 65536),
    ],
    ids=["one", "many", "empty", "address", "trailers", "extensions"],
)
def test_headers_are_taken_in_up_to_a_limit(service: Service, head: bytes, more: bytes) -> None:
    with connect(service) as connection:
        head = head % service.token().encode() if b"%s" in head else head
        assert endless(connection, head, more) < BUFFERS
        said = rest(connection)
        assert not said or said.startswith((b"HTTP/1.1 431", b"HTTP/1.1 4"))
    assert httpx.get(f"{service.url}/health").status_code == 200


def test_headers_below_the_limit_are_read_and_those_above_are_refused_in_words(service: Service) -> None:
    for size, status in ((HEAD - 1000, 200), (HEAD + 1, 431), (3 * HEAD, 431), (200_000, 431)):
        with connect(service) as connection:
            connection.sendall(GET + b"X-Long: " + b"a" * size + b"\r\nConnection: close\r\n\r\n")
            said = rest(connection)
        assert said.startswith(b"HTTP/1.1 %d" % status), size
        if status == 431:
            problem = json.loads(said.partition(b"\r\n\r\n")[2])
            assert (problem["status"], problem["code"]) == (431, "too-large")
            assert f"{HEAD:,} bytes" in problem["detail"]


def test_a_second_request_on_a_connection_is_counted_anew(service: Service) -> None:
    """And a body is no header, in one piece or in chunks of a byte."""
    body = json.dumps({"question": {"expression": "churned"}}).encode()
    head = f"POST /v1/datasets/customers/price HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token()}\r\n"
    head += "Content-Type: application/json\r\n"
    priced = json.dumps({"question": {"expression": "churned"}, "mean": [0.5] * 20_000}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % each for each in priced) + b"0\r\n\r\n"
    with connect(service) as connection:
        for _ in range(4):
            connection.sendall(GET + b"X-Long: " + b"a" * (HEAD - 1000) + b"\r\n\r\n")
            assert answered(connection) == 200
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks)
        assert answered(connection) == 422
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert answered(connection) == 200


def completed(attack: list[Callable[[], Any]], innocent: Callable[[], Any], most: int) -> int:
    """How many requests an innocent caller completes while all requests of an attack are on their way."""
    ended, began = threading.Event(), threading.Barrier(len(attack) + 1)

    def run(one: Callable[[], Any]) -> None:
        began.wait()
        one()
        ended.set()

    threads = [threading.Thread(target=run, args=(one,)) for one in attack]
    for each in threads:
        each.start()
    began.wait()
    count = 0
    while count < most and not ended.is_set():
        innocent()
        count += not ended.is_set()
    for each in threads:
        each.join()
    return count


def test_long_questions_keep_nobody_waiting(service: Service) -> None:
    """All but the last of many long questions are read before it is refused; others are served all the while."""
    wide = "tenure IN (" + ",".join(str(i % 10) for i in range(4000)) + ",{})"
    body = {"questions": [*(wide.format(100 + i) for i in range(12)), "no_such_column"]}
    me = service.token("ivy")
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {me}"}, timeout=60) as client:
        attack = [lambda: service.post("/v1/datasets/customers/ask_many", body, service.token("eve"))]
        assert completed(attack, lambda: client.get("/health"), 10) == 10


def test_uploads_keep_nobody_waiting(service: Service) -> None:
    """Five large files are decoded while others read their budgets."""
    cells = ",".join(f"{i % 10}.25" for i in range(150))
    names = ",".join(f"m{i}" for i in range(150))
    body = f"{names}\n{f'{cells}{chr(10)}' * ROWS}".encode()
    media = {"Content-Type": "text/csv"}

    def upload(who: str) -> Callable[[], Any]:
        token = service.token(who)
        return lambda: service.call("POST", "/v1/holdouts/churn/score", token, content=body, headers=media)

    attack = [upload(f"eve{place // 2}") for place in range(5)]
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.token()}"}) as client:
        assert completed(attack, lambda: client.get("/v1/datasets/churn/budget"), 10) == 10


def test_a_crew_works_for_everybody_in_turn() -> None:
    """One piece of each analyst's at a time, few that wait, and nothing is received before there is room for it."""
    go, begun, received = threading.Event(), list[str](), list[str]()

    def work(name: str) -> Callable[[Any], str]:
        def run(_: Any) -> str:
            begun.append(f"{name} in {threading.current_thread().name[:11]}")
            if name.startswith("eve"):
                go.wait(60)
            return name

        return run

    def coming(name: str) -> Callable[[], Any]:
        async def come() -> str:
            received.append(name)
            return name

        return come

    async def crowd() -> tuple[list[Any], Any]:
        crew = Crew("afresh-file", 2, each=2, most=4)
        eves = [asyncio.create_task(crew.take("eve", coming(f"eve{i}"), work(f"eve{i}"))) for i in range(3)]
        await asyncio.wait(eves[2:])
        mine = await crew.take("ivy", coming("ivy"), work("ivy"))
        assert begun == ["eve0 in afresh-file", "ivy in afresh-file"]
        go.set()
        found = await asyncio.gather(*eves, return_exceptions=True)
        crew.close()
        return found, mine

    found, mine = asyncio.run(crowd())
    assert (found[:2], mine) == (["eve0", "eve1"], "ivy")
    assert isinstance(found[2], TooMany)
    assert received == ["eve0", "eve1", "ivy"]


@pytest.mark.parametrize("nested", [False, True])
def test_only_the_first_mistakes_of_a_body_are_looked_for(service: Service, nested: bool) -> None:
    """However many there are: a report of all of them would take far longer than reading them."""
    many: dict[str, Any] = {f"k{place}": 1 for place in range(20_000)}
    found = service.post("/v1/datasets/customers/ask_many", {"questions": [many]} if nested else many)
    assert (found.status_code, found.json()["code"]) == (422, "invalid-argument")
    assert "an object has 20,000 keys" in found.json()["detail"]
    with pytest.raises(ValidationError) as wrong:
        Questions.model_validate({"questions": [1] * 100_000})
    assert wrong.value.error_count() <= 2
    assert service.post("/v1/datasets/customers/divide", {"shares": dict.fromkeys(many, 0)}).status_code == 403


def test_long_bodies_count_as_many_requests() -> None:
    rates = Rates(100)
    for _ in range(2):
        rates.count("ann", 45 * WEIGHT)
    with pytest.raises(TooMany, match="each 2,000 bytes") as refused:
        rates.count("ann", 10 * WEIGHT)
    assert 0 < refused.value.after <= 60
    rates.count("bob", 10**9)  # whatever the limit, one request is always possible


def test_whoever_sends_too_much_is_told_when_to_come_back(service: Service) -> None:
    many = [service.token("max")] * 40
    path = f"{service.url}/v1/holdouts/churn/score"
    head = {"Authorization": f"Bearer {many[0]}", "Content-Type": "application/x-npy"}
    opened = []
    try:
        for _ in range(8):  # their bodies never come
            opened.append(connect(service))
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
            opened[-1].sendall(
                f"POST {httpx.URL(path).path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: 9\r\n\r\n".encode()
            )
        found = httpx.post(path, content=b"", headers=head)
        while found.status_code != 429:  # until the service has seen all of them
            found = httpx.post(path, content=b"", headers=head)
        assert int(found.headers["retry-after"]) >= 1
        assert service.get("/v1/datasets/churn/budget").status_code == 200
        other = service.call(
            "POST", "/v1/holdouts/churn/score", content=np.zeros(3).tobytes(), headers=dict([*head.items()][1:])
        )
        assert other.status_code == 422
    finally:
        for each in opened:
            each.close()
