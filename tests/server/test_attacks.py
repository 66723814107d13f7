"""Attacks that were tried, kept as tests. None is charged for, none tells anything about rows."""

from __future__ import annotations

import asyncio
import io
import json
import pickle
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from afresh.errors import NotAllowed
from afresh.server.app import Gate, make_app
from afresh.server.config import Config
from afresh.server.metrics import Metrics
from afresh.server.store import Store
from afresh.server.tokens import Tokens
from server.running import ROWS, Service

ASK = "/v1/datasets/customers/ask"
QUESTION = {"expression": "churned AND tenure < 7"}


def code(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json", response.text
    return response.status_code, response.json()["code"]


def test_tokens_that_are_none(service: Service) -> None:
    spent = service.get("/v1/datasets/customers/budget").json()["spent"]
    expired = service.tokens.new("old", days=1e-9)
    revoked = service.tokens.new("gone")
    service.tokens.revoke("gone")
    bad = ["wrong", "afresh_" + "A" * 43, expired, revoked, "é", service.token()[:-1], service.token() + "A"]
    said = set()
    for token in bad:
        headers = [(b"Authorization", f"Bearer {token}".encode())]
        found = httpx.post(service.url + ASK, json=QUESTION, headers=headers)
        assert code(found) == (401, "not-allowed")
        assert found.headers["www-authenticate"] == "Bearer"
        said.add(found.json()["detail"])
    assert len(said) == 1  # whatever is wrong with it
    for other in ({}, {"Authorization": f"Basic {service.token()}"}, {"X-Token": service.token()}):
        assert code(httpx.post(service.url + ASK, json=QUESTION, headers=other)) == (401, "not-allowed")
    twice = [("Authorization", f"Bearer {service.token()}"), ("Authorization", f"Bearer {service.token('bob')}")]
    assert code(httpx.post(service.url + ASK, json=QUESTION, headers=twice)) == (401, "not-allowed")
    assert code(httpx.post(f"{service.url}{ASK}?token={service.token()}", json=QUESTION)) == (401, "not-allowed")
    assert service.get("/v1/datasets/customers/budget").json()["spent"] == spent


def test_a_token_is_for_its_datasets_and_its_role(service: Service) -> None:
    narrow = service.token("nina", datasets=("churn",))
    assert code(service.post(ASK, QUESTION, narrow)) == (404, "not-found")
    there = service.post(ASK, QUESTION, narrow).json()["detail"].replace("customers", "nothing")
    assert there == service.post("/v1/datasets/nothing/ask", QUESTION, narrow).json()["detail"]
    viewer = service.token("vera", "viewer")
    assert code(service.post(ASK, QUESTION, viewer)) == (403, "forbidden")
    assert service.get("/v1/datasets/customers/transcript", viewer).status_code == 200
    doors = [
        ("POST", "/v1/datasets/customers/divide", {"shares": {"ann": 399}}),
        ("POST", "/v1/datasets/customers/charge", {"revealed": "all", "kl": 1e-9}),
        ("PUT", "/v1/datasets/customers/freeze", {}),
        ("DELETE", "/v1/datasets/customers/freeze", None),
        ("GET", "/v1/tokens", None),
        ("POST", "/v1/tokens", {"name": "eve", "role": "steward"}),
        ("DELETE", "/v1/tokens/ann", None),
    ]
    for who in (service.token(), viewer, narrow):
        for method, path, body in doors:
            found = service.call(method, path, who, json=body)
            assert found.status_code in (403, 404), path
            assert code(found)[1] in ("forbidden", "not-found")


def test_a_name_in_a_request_names_nobody(service: Service) -> None:
    assert code(service.post(ASK, {**QUESTION, "analyst": "bob"})) == (422, "invalid-argument")
    more = {"X-Analyst": "bob", "X-Forwarded-User": "bob", "X-Remote-User": "bob", "Forwarded": "for=1;user=bob"}
    service.post(f"{ASK}?analyst=bob", QUESTION, headers=more)
    asked = service.get("/v1/datasets/customers/transcript").json()["records"]
    assert {each["analyst"] for each in asked} == {"ann"}


@pytest.mark.parametrize(
    "path",
    [
        "/v1/datasets/customers%2F..%2F..%2Ftokens",
        "/v1//datasets/customers",
        "/v1/datasets/customers/",
        "/v1/datasets/customers%00",
        "/v1/datasets/..%5c..%5cafresh.toml",
        "/afresh.toml",
        "/v1/datasets/customers/ask/../receipt;x=1",
        "/v1/datasets/%s" % ("a" * 5000),
    ],
)
def test_tricks_with_paths(service: Service, path: str) -> None:
    found = service.get(path)
    assert found.status_code in (404, 405)
    assert code(found)[1] == "not-found"


BODIES: list[tuple[bytes, str]] = [
    (b"", "application/json"),
    (b"{", "application/json"),
    (b"\xff\xfe", "application/json"),
    (b"[" * 100_000, "application/json"),
    (b'{"expression": "' + b"(" * 50_000 + b'"}', "application/json"),
    (b'{"expression": 3}', "application/json"),
    (b'{"expression": "churned", "bounds": [1e999, 2]}', "application/json"),
    (b'{"expression": "churned", "missing": NaN}', "application/json"),
    (b'{"expression": "\\ud800"}', "application/json"),
    (b'{"expression": "churned\\u0000"}', "application/json"),
    (b"expression=churned", "application/x-www-form-urlencoded"),
    (b'{"expression": "(SELECT max(amount) FROM data)"}', "application/json"),
    (b'{"expression": "read_text(\'/etc/passwd\') IS NULL"}', "application/json"),
    (b'{"expression": "churned; DROP TABLE data"}', "application/json"),
]


@pytest.mark.parametrize(("body", "media"), BODIES, ids=range(len(BODIES)))
def test_malformed_bodies(service: Service, body: bytes, media: str) -> None:
    before = service.get("/v1/datasets/customers/budget").json()["spent"]
    found = service.call("POST", ASK, content=body, headers={"Content-Type": media})
    assert found.status_code in (400, 422)
    assert code(found)[1] in ("invalid-argument", "query-error")
    assert service.get("/v1/datasets/customers/budget").json()["spent"] == before


@pytest.mark.parametrize(
    ("body", "media", "words"),
    [
        (b'{"expression": "churned"}', "application/x-www-form-urlencoded", "Content-Type: application/json"),
        (b"{oops", "application/json", "cannot be read as JSON: .* at character 1"),
        (b'{"expression": "churned", "analyst": "bob"}', "application/json", "analyst is not known here; leave it out"),
        (b"[]", "application/json", "the body: "),
        (b"{}", "application/json", "expression: "),
    ],
)
def test_what_is_wrong_with_a_body_is_told_with_the_remedy(
    service: Service, body: bytes, media: str, words: str
) -> None:
    found = service.call("POST", ASK, content=body, headers={"Content-Type": media})
    assert found.status_code == 422
    assert re.search(words, found.json()["detail"])


WORDS = ('"\\ud800"', '"\\u0000"', '"\\u202e x"', "null", "true", "[]", "{}", "[[[[]]]]", '{"\\ud800": 1}')
NUMBERS = ("1" + "0" * 400, "9" * 5000, "1e999", "NaN", "Infinity", "9007199254740993", "-0.0", "[NaN, 1]")
GOOD: dict[str, dict[str, str | None]] = {
    "datasets/customers/ask_many": {"questions": '["tenure < 4"]', "rows": None},
    "datasets/customers/price": {"question": None, "mean": None, "share": None, "deviation": None},
    "datasets/customers/claim": {"expression": '"tenure < 4"', "between": "[0.1, null]", "bounds": None},
    "datasets/customers/fit": {"kind": '"linear"', "features": '["tenure"]', "label": '"churned"', "steps": None},
    "datasets/customers/divide": {"shares": None},
    "datasets/customers/charge": {"revealed": '"a mean"', "kl": None, "count": None, "study": None},
    "tokens": {"name": None, "datasets": None, "days": None, "cap": None},
    "holdouts/churn/score": {"predictions": None, "precision": None},
}


@pytest.mark.parametrize("door", GOOD)
def test_odd_values_at_every_door(service: Service, door: str) -> None:
    """Huge numbers, no numbers, lone surrogates, other types: each is taken or refused, and nothing fails."""
    steward, failed = service.token("sam", "steward"), []
    with httpx.Client(headers={"Authorization": f"Bearer {steward}", "Content-Type": "application/json"}) as client:
        for key, usual in GOOD[door].items():
            for value in (*WORDS, *NUMBERS):
                given = {**{each: text for each, text in GOOD[door].items() if text is not None}, key: value}
                body = ", ".join(f'"{each}": {text}' for each, text in given.items())
                found = client.post(f"{service.url}/v1/{door}", content=f"{{{body}}}", timeout=60)
                if found.status_code >= 500:
                    failed.append((key, usual, value[:20], found.text))
    assert not failed


def test_rows_are_asked_for_in_rounds_only(service: Service) -> None:
    """Elsewhere a question would be paid for, and evaluated on rows that no method expects."""
    before = service.get("/v1/datasets/customers/budget").json()["spent"]
    found = service.post("/v1/datasets/customers/ask_many", {"questions": ["tenure < 41"], "rows": 1})
    assert code(found) == (422, "invalid-argument")
    assert service.get("/v1/datasets/customers/budget").json()["spent"] == before


def test_bodies_that_are_too_large(service: Service) -> None:
    assert code(service.post(ASK, {"expression": "x" * 1_100_000})) == (413, "too-large")

    def endless() -> object:
        for _ in range(40):
            yield b" " * 65536

    found = service.call("POST", ASK, content=endless(), headers={"Content-Type": "application/json"})
    assert code(found) == (413, "too-large")
    many = {"questions": [f"tenure < {i}" for i in range(1001)]}
    assert code(service.post("/v1/datasets/customers/ask_many", many)) == (413, "too-large")
    zipped = service.call("POST", ASK, content=b"x", headers={"Content-Encoding": "gzip"})
    assert code(zipped) == (415, "invalid-argument")


class Shell:
    def __reduce__(self) -> tuple[object, ...]:
        return eval, ("__import__('os').system('touch owned')",)


def send(service: Service, content: bytes, media: str) -> httpx.Response:
    return service.call("POST", "/v1/holdouts/churn/score", content=content, headers={"Content-Type": media})


def test_nothing_is_unpickled(service: Service) -> None:
    out = io.BytesIO()
    np.save(out, np.array([Shell()] * ROWS, dtype=object), allow_pickle=True)
    for content in (out.getvalue(), pickle.dumps(Shell()), b"", b"\x93NUMPY\x01\x00\xff\xff"):
        assert code(send(service, content, "application/x-npy")) == (422, "invalid-argument")
    assert code(send(service, pickle.dumps(Shell()), "application/python-pickle")) == (422, "invalid-argument")
    assert not (service.folder / "owned").exists()


def test_bombs_harm_nobody(service: Service) -> None:
    large, parquet = pa.array([b"\x00" * (1 << 24)], pa.binary()), io.BytesIO()
    table = pa.table(dict.fromkeys(("ours", *(f"c{i}" for i in range(63))), large))  # a gigabyte in all
    pq.write_table(table, parquet, compression="zstd", use_dictionary=False, write_statistics=False)
    assert len(parquet.getvalue()) < 1 << 20
    shape = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    npy = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + shape.ljust(117) + b"\n"
    assert send(service, parquet.getvalue(), "application/vnd.apache.parquet").status_code in (413, 422)
    assert send(service, npy, "application/x-npy").status_code == 422
    assert send(service, b"PAR1" + b"\x00" * 100 + b"PAR1", "application/vnd.apache.parquet").status_code == 422
    assert send(service, b"ARROW1", "application/vnd.apache.arrow.file").status_code == 422
    assert send(service, b"a,b\n1\n", "text/csv").status_code == 422
    assert service.get("/v1/datasets").status_code == 200


def raw(service: Service, content: bytes, wait: float = 30.0, *, half: bool = True) -> bytes:
    """What comes back; unless it waits for a whole response, it has hung up halfway before."""
    parts = urlsplit(service.url)
    with socket.create_connection(("127.0.0.1", parts.port or 80), timeout=wait) as connection:
        connection.sendall(content)
        if half:
            connection.shutdown(socket.SHUT_WR)
        found = b""
        while data := connection.recv(65536):
            found += data
        return found


def test_requests_are_not_smuggled(service: Service) -> None:
    """Two lengths, or a length and chunks: one of the two readers would take the rest for another request."""
    inner = f"GET /v1/tokens HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token('sam', 'steward')}\r\n\r\n"
    head = f"POST {ASK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token()}\r\n"
    both = head + f"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"
    twice = head + f"Content-Length: 0\r\nContent-Length: 200\r\n\r\n{inner}"
    spaced = head + f"Transfer-Encoding : chunked\r\nContent-Length: 200\r\n\r\n{inner}"
    for content in (twice, spaced):
        found = raw(service, content.encode())
        assert found.startswith(b"HTTP/1.1 400")
        assert b'"tokens"' not in found
    found = raw(service, both.encode())  # whoever stands before may go by the other length
    assert found.startswith(b"HTTP/1.1 400")
    assert found.count(b"HTTP/1.1") == 1  # what follows is read by nobody
    assert b'"tokens"' not in found


def test_headers_through_a_proxy_name_nobody(service: Service) -> None:
    """What a proxy adds, passes on or folds does not change who asks: the one Authorization header does."""
    bob, ann = service.token("bob"), service.token()
    for extra in (
        f"X-Forwarded-Authorization: Bearer {bob}",
        f"Proxy-Authorization: Bearer {bob}",
        f"X-Original-Authorization: Bearer {bob}",
        f"Authorization_: Bearer {bob}",
        f"Cookie: authorization=Bearer {bob}",
        "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Prefix: /v1/tokens\r\nX-Rewrite-URL: /v1/tokens",
        "X-HTTP-Method-Override: DELETE",
    ):
        head = f"GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ann}\r\n{extra}\r\n"
        head += "Connection: close\r\n\r\n"
        found = raw(service, head.encode(), half=False)
        assert found.startswith(b"HTTP/1.1 200")
        assert b'"name":"ann"' in found
    for bad in (
        f"Authorization: Bearer {ann}\r\nAuthorization: Bearer {bob}",
        f"Authorization: Bearer {ann}\r\n\tBearer {bob}",
        f"Authorization: Bearer {ann}, Bearer {bob}",
        f"Authorization : Bearer {ann}",
        f"Authorization: Bearer {ann}\x00",
    ):
        head = f"GET /v1/me HTTP/1.1\r\nHost: x\r\n{bad}\r\nConnection: close\r\n\r\n"
        found = raw(service, head.encode(), half=False)
        assert found.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401")), bad


def test_slow_clients_keep_nobody_waiting(service: Service) -> None:
    parts = urlsplit(service.url)
    slow = [socket.create_connection(("127.0.0.1", parts.port or 80)) for _ in range(50)]
    try:
        for each in slow:
            each.sendall(f"POST {ASK} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert service.get("/v1/datasets").status_code == 200
        assert service.post(ASK, QUESTION).status_code == 200
    finally:
        for each in slow:
            each.close()


def test_browsers_of_other_pages_are_told_nothing(service: Service) -> None:
    found = service.get("/v1/datasets", headers={"Origin": "https://evil.example"})
    assert not [name for name in found.headers if name.startswith("access-control")]
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert service.call("OPTIONS", ASK, headers=asked).status_code == 405
    assert found.headers["cache-control"] == "no-store"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "server" not in found.headers


def test_no_address_in_a_request_is_opened(service: Service) -> None:
    """Only stewards name data, in the configuration: nobody calls on an address that stands in a request."""
    steward, before = service.token("sam", "steward"), service.get("/v1/datasets/customers/budget").json()["spent"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = f"127.0.0.1:{listener.getsockname()[1]}"
        for address in (f"http://{there}/x.parquet", f"postgresql://postgres@{there}/x", "file:///etc/passwd"):
            body = {"revealed": "x", "study": {"path": address}}
            assert service.post("/v1/datasets/customers/charge", body, steward).status_code == 422
            assert code(service.get(f"/v1/datasets/{address}"))[0] == 404
            for name in ("expression", "where"):
                text = f"(SELECT count(*) FROM '{address}') > 0"
                assert service.post(ASK, {"expression": "churned", name: text}).status_code == 422
            function = f"read_parquet('{address}') IS NULL"
            assert service.post(ASK, {"expression": function}).status_code == 422
            scored = service.post("/v1/holdouts/churn/score", {"predictions": {"a": address}})
            assert code(scored) == (422, "invalid-argument")
            query = httpx.QueryParams({"loss": address})
            assert service.post(f"/v1/holdouts/churn/score?{query}", {"predictions": {"a": [0]}}).status_code == 422
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert service.get("/v1/datasets/customers/budget").json()["spent"] == before


class Watched(Store):
    """Remembers what was looked for."""

    looked: list[Any]

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.looked.extend(values)
        return super().run(statement, values)


def test_tokens_are_compared_by_their_hashes(service: Service) -> None:
    """A guess shares with the true token what it may; what is looked for shares nothing, so time tells nothing."""
    store = Watched(str(service.folder / "state" / "service.sqlite"))
    store.looked = []
    token, tokens = service.token(), Tokens(store)
    for guess in (token[:-1] + "-", token[:-1], token + "x"):
        with pytest.raises(NotAllowed):
            tokens.find(guess)
    assert tokens.find(token).name == "ann"
    store.close()
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in store.looked)
    assert len({each[:8] for each in store.looked}) == 4


def test_the_log_has_no_secrets(service: Service) -> None:
    """It runs last: no token, question or number of what was asked above is in the log, and every line is JSON."""
    service.post(ASK, {"expression": "tenure < 17 AND country = 'DE'"})
    service.post(ASK, {"expression": "nothing_like_this < 17"})
    log = service.log
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert {"request"} <= {line["event"] for line in lines}
    for token in service.made.values():
        assert token not in log
    for secret in ("tenure", "country", "nothing_like_this", "'DE'", "churned"):
        assert secret not in log
    allowed = {"at", "event", "method", "route", "status", "token", "code", "seconds", "kind"}
    assert {key for line in lines for key in line} <= allowed
    released = service.get("/v1/datasets/customers/transcript").json()["records"]
    digits = [repr(record["value"])[:8] for record in released]
    assert digits
    told = [each for each in digits if len(each) == 8]  # nearly all are; a noisy 0.5 is a time as well
    assert not [each for each in told if re.search(rf"\b{re.escape(each)}", log)]


def test_a_failure_tells_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever goes wrong inside, neither the client nor the log is told in its words."""
    sent: list[dict[str, Any]] = []

    async def failing(*_: object) -> None:
        raise RuntimeError("row 17 is 4711")

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    scope = {"type": "http", "path": "/v1/me", "headers": [], "method": "GET"}
    asyncio.run(Gate(failing, Config({}))(scope, receive, send))
    assert sent[0]["status"] == 500
    assert json.loads(sent[1]["body"])["code"] == "service-error"
    assert "4711" not in repr(sent) + capsys.readouterr().err


def test_a_failure_behind_a_door_tells_nothing_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is FastAPI's telemetry asked for, which takes an error's own words wherever a host has set it up."""
    with suppress(ImportError):  # an older FastAPI has none
        from fastapi.telemetry import _asgi

        monkeypatch.setattr(_asgi.NativeTelemetry, "enabled", lambda self: pytest.fail("it was asked for"))
    app, sent = make_app(Config({})), list[Any]()
    app.state.desk = SimpleNamespace(metrics=Metrics())

    async def failing() -> None:
        raise RuntimeError("row 17 is 4711")

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    app.add_api_route("/v1/broken", failing)
    scope = {"type": "http", "path": "/v1/broken", "headers": [], "method": "GET", "query_string": b""}
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 500
    assert json.loads(sent[1]["body"])["code"] == "service-error"
    told = capsys.readouterr().err
    assert '"kind": "RuntimeError"' in told
    assert "4711" not in repr(sent) + told
