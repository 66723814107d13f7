"""Names in paths: whatever is encoded in one is part of the name, and reaches no other door."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from afresh.server import api, boards, evaluations, models, steward
from afresh.server.app import _path
from afresh.server.pages.doors import ROUTERS
from server.running import Service, running
from server.visiting import key_of, session

BOARD = """
[boards.spring]
holdout = "churn"
public = true
"""
TRICKS = (
    *("{}%2F", "%2F{}", "{}%2fbudget", "{}%2Fask", "{}%2F..%2F{}", "..%2F{}", "..%2f..%2fme", "{}%2Ffreeze"),
    *("%2e%2e", "%2e%2e%2f{}", "{}%00", "%00", "{};x=1", "{}%3Bx", "{}%252Fbudget", "{}%252f", "%25%32%66{}"),
    *("{}%20", "{}%0a", "{}%5C..%5Cchurn", "{}%E2%88%95x", "{}%ff", "{}%3F", "{}%23", "{}%"),
)
KNOWN = {
    "datasets": "customers",
    "holdouts": "churn",
    "boards": "spring",
    "evaluations": "qa",
    "tokens": "ann",
    "static": "pages.css",
}
PROGRAMS = (api.router, models.router, boards.router, evaluations.router, steward.router)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service"), f"[limits]\nrequests = 1000000\n{BOARD}") as found:
        yield found


def doors(routers: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every door with a name in its path."""
    for route in (each for router in routers for each in router.routes if isinstance(each, APIRoute)):
        if "{name}" in route.path or "{which}" in route.path:
            path = route.path.replace("{which}", "{name}").replace("{number}", "1").replace("{form}", "json")
            yield from ((method, prefix + path) for method in route.methods or ())


def told(found: httpx.Response) -> tuple[int, str, str]:
    """What a response says, whatever the name in it."""
    if found.headers.get("content-type") != "application/problem+json":
        return found.status_code, found.headers.get("location", "").partition("?")[0], ""
    problem = found.json()
    return found.status_code, problem["code"], re.sub(r"'(?:\\.|[^'\\])*'|\"[^\"]*\"", "NAME", problem["detail"])


def walk(client: httpx.Client, found: list[tuple[str, str]], **body: Any) -> list[Any]:
    """Where a trick is answered otherwise than an unknown name."""
    wrong = []
    for method, path in found:
        kind = path.removeprefix("/v1").split("/")[1]
        unknown = told(client.request(method, path.replace("{name}", "nothing"), **body))
        for trick in TRICKS:
            name = trick.replace("{}", KNOWN[kind])
            answer = told(client.request(method, path.replace("{name}", name), **body))
            if answer != unknown:
                wrong.append((method, path, name, answer, unknown))
    return wrong


def test_an_encoded_name_is_an_unknown_name_to_programs(service: Service) -> None:
    headers = {"Authorization": f"Bearer {service.token('sam', 'steward')}"}
    with httpx.Client(base_url=service.url, headers=headers) as client:
        found = [*doors(PROGRAMS, "/v1")]
        assert len(found) > 40
        assert not walk(client, found, json={})


def test_an_encoded_name_is_an_unknown_name_on_pages(service: Service) -> None:
    with closing(session(service, service.token("sam", "steward"))) as client:
        form = {"form_key": key_of(client)}
        found = [*doors(ROUTERS)]
        assert len(found) > 15
        assert not walk(client, found, data=form)


@pytest.mark.parametrize(
    "path",
    ["/v1%2Fme", "/v1/datasets%2Fcustomers", "/v1/datasets%2Fcustomers/ask", "/v1%2fdatasets%2Fcustomers%2Fask"],
)
def test_an_encoded_slash_separates_nothing(service: Service, path: str) -> None:
    for method in ("GET", "POST"):
        found = service.call(method, path, json={"expression": "churned"})
        assert (found.status_code, found.json()["code"]) == (404, "not-found")


def test_all_other_characters_are_decoded_once() -> None:
    for raw, path in {
        b"/a%2Fb": "/a%2Fb",
        b"/a%2fb%20c": "/a%2fb c",
        b"/a%252Fb": "/a%2Fb",
        b"/%C3%A9%2F": "/é%2F",
    }.items():
        assert _path({"raw_path": raw, "path": path}) == path
