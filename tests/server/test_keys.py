"""Keys of an identity provider from an address: refreshed, bounded, and only from where nobody else can speak."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from afresh.errors import InvalidArgument, NotAllowed, Unreachable
from afresh.server import keys
from afresh.server.config import Jwt, read_config
from afresh.server.jwt import Provider
from server.running import running

NAMES = ("one", "two")


class Publisher(ThreadingHTTPServer):
    """A provider's key set, on the loopback interface."""

    daemon_threads = True

    def __init__(self) -> None:
        self.fetched, self.status, self.published = 0, 200, b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.fetched += 1
                self.send_response(outer.status)
                if outer.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(outer.published)))
                self.end_headers()
                self.wfile.write(outer.published)

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_address[1]}/keys"


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with Publisher() as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def pairs() -> dict[str, Any]:
    return {name: rsa.generate_private_key(public_exponent=65537, key_size=2048) for name in NAMES}


def document(pairs: dict[str, Any], *names: str) -> bytes:
    public = [{**json.loads(RSAAlgorithm.to_jwk(pairs[name].public_key())), "kid": name} for name in names]
    return json.dumps({"keys": public}).encode()


def token(pairs: dict[str, Any], name: str) -> str:
    claims = {"sub": "ida", "iss": "https://id.example", "aud": "afresh", "exp": time.time() + 600}
    return jwt.encode({**claims, "afresh_role": "analyst"}, pairs[name], "RS256", {"kid": name})


def provider(publisher: Publisher) -> Provider:
    return Provider(Jwt(publisher.address, "https://id.example", "afresh"))


def test_keys_are_fetched_and_renewed(
    publisher: Publisher, pairs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = provider(publisher)
    assert publisher.fetched == 0
    publisher.published = document(pairs, "one")
    for _ in range(3):
        assert found.find(token(pairs, "one")).name == "ida"
    assert publisher.fetched == 1
    publisher.published = document(pairs, "two")  # the provider has a new key
    for _ in range(5):
        with pytest.raises(NotAllowed):  # unknown ids cannot make the service fetch again and again
            found.find(token(pairs, "two"))
    assert publisher.fetched == 1
    monkeypatch.setattr(keys, "AGAIN", 0.0)
    found = provider(publisher)
    publisher.published = document(pairs, "one")
    found.find(token(pairs, "one"))
    publisher.published = document(pairs, "two")
    assert found.find(token(pairs, "two")).name == "ida"
    with pytest.raises(NotAllowed):
        found.find(token(pairs, "one"))  # it was withdrawn


def test_an_outage_leaves_the_keys_as_they_were(
    publisher: Publisher, pairs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "AGAIN", 0.0)
    monkeypatch.setattr(keys, "FRESH", 0.0)
    found = provider(publisher)
    publisher.published = document(pairs, "one")
    found.find(token(pairs, "one"))
    for status, published in ((500, b""), (302, b""), (200, b"{"), (200, b'{"keys": 3}'), (200, b" " * 1_100_000)):
        publisher.status, publisher.published = status, published
        before = publisher.fetched
        assert found.find(token(pairs, "one")).name == "ida"
        assert publisher.fetched == before + 1  # a redirect is not followed
        with pytest.raises(Unreachable):
            provider(publisher).find(token(pairs, "one"))


def test_only_safe_addresses_are_taken(tmp_path: Path, publisher: Publisher) -> None:
    place = tmp_path / "afresh.toml"
    text = '[datasets.a]\ndata = "a.parquet"\n[jwt]\nissuer = "i"\naudience = "a"\nkeys = "{}"\n'
    for address in ("http://id.example/keys", "ftp://id.example/keys", "file:///keys", "https://", "https://u:p@id/x"):
        place.write_text(text.format(address))
        with pytest.raises(InvalidArgument, match=r"afresh\.toml:6: jwt\.keys: "):
            read_config(place)
    for address in ("https://id.example/keys", publisher.address):
        place.write_text(text.format(address))
        found = read_config(place).jwt
        assert found is not None
        assert found.keys == address
    place.write_text("limits = 3\njwt = 3\ndatasets = 3\n")
    with pytest.raises(InvalidArgument) as caught:
        read_config(place)
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == ["limits", "jwt", "jwt", "datasets"]


def test_a_service_takes_them(publisher: Publisher, pairs: dict[str, Any], tmp_path: Path) -> None:
    publisher.published = document(pairs, "one")
    config = f"""
state = "state"
tick = 0
[datasets.customers]
data = "customers.parquet"
[jwt]
keys = "{publisher.address}"
issuer = "https://id.example"
audience = "afresh"
"""
    with running(tmp_path, config=config) as service:
        assert service.get("/v1/me", token(pairs, "one")).json()["name"] == "ida"
        assert service.get("/v1/me", token(pairs, "two")).status_code == 401
        assert service.get("/v1/me").json()["name"] == "ann"  # the service's own tokens are good as ever
        with httpx.Client(base_url=service.url) as visitor:  # who signs in to the pages
            (form,) = re.findall(r'name="form_key" value="([0-9a-f]+)"', visitor.get("/sign-in").text)
            for which, status in (("two", 401), ("one", 303)):
                given = {"form_key": form, "token": token(pairs, which)}
                assert visitor.post("/sign-in", data=given).status_code == status
            assert "ida" in visitor.get("/").text
