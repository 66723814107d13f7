"""A column that the service hides does not exist for anyone but stewards: nothing they can reach names it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import afresh
from afresh.server.pages import doors
from server.running import Service, running
from server.visiting import key_of, session

HIDDEN, NEVER = "wealth_index", "planet_zzzzz"
NEAR = (HIDDEN[:-1], HIDDEN.upper()[1:], f"{HIDDEN}s")
CONFIG = f"""
state = "state"
tick = 0.01
[datasets.customers]
data = "customers.parquet"
questions = 200
open = 0.3
exam = 0.1
columns.{HIDDEN}.hidden = true
columns.{HIDDEN}.description = "{HIDDEN} in CHF"
columns.{HIDDEN}.bounds = [0, 1]
columns.amount.bounds = [0, 500]
[holdouts.churn]
data = "churn.parquet"
label = "churned"
questions = 200
open = 0.3
columns.{HIDDEN.upper()}.hidden = true
[boards.spring]
holdout = "churn"
"""
FILLED = {
    "name": ("customers", "churn", "spring"),
    "number": ("1",),
    "form": ("json", "html", "md", "csv", "parquet", "arrow"),
    "format": ("json", "html", "md", "csv", "parquet", "arrow"),
}
STEWARDS = ("/steward", "/audit", "/tokens", "/reveal", "/final")
NOT_WALKED = ("evaluations", "/static/", "/events", "/sign-in")  # nothing about these columns, or without an end


def write(folder: Path) -> None:
    """Files by pandas, which says in each which columns it has."""
    chance, n = np.random.default_rng(3), 3000
    for name in ("customers", "churn"):
        columns = {"churned": chance.random(n) < 0.3, "tenure": chance.integers(0, 9, n), "amount": chance.random(n)}
        pd.DataFrame({**columns, HIDDEN: chance.random(n)}).to_parquet(folder / f"{name}.parquet")
        assert HIDDEN in str(pq.read_schema(folder / f"{name}.parquet").metadata)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("hidden")
    write(folder)
    with running(folder, config=CONFIG.replace("{", "{{").replace("}", "}}")) as found:
        for expression in ("churned", "tenure < 3"):
            assert found.post("/v1/datasets/customers/ask", {"expression": expression}).status_code == 200
        body = {"predictions": {"ones": [1] * 3000}}
        assert found.post("/v1/holdouts/churn/score", body).status_code == 200
        assert found.post("/v1/boards/spring/submit", body).status_code == 200
        yield found


def paths(template: str, queries: list[str]) -> Iterator[str]:
    parts = [name for name in FILLED if f"{{{name}}}" in template]
    for values in itertools.product(*(FILLED[name] for name in parts)):
        filled = template.format(**dict(zip(parts, values, strict=True)))
        yield filled
        for query in queries:
            yield from (f"{filled}?{query}={value}" for value in FILLED.get(query, ()))


def told(response: httpx.Response) -> str:
    return (str(response.headers) + response.content.decode(errors="replace")).lower()


def test_nothing_that_can_be_read_names_it(service: Service) -> None:
    document = service.get("/v1/openapi.json").json()
    readable = {
        path: [each["name"] for each in doors_["get"].get("parameters", []) if each["in"] == "query"]
        for path, doors_ in document["paths"].items()
        if "get" in doors_
    }
    pages: dict[str, list[str]] = {
        route.path: [] for each in doors.ROUTERS for route in each.routes if "GET" in route.methods
    }
    own: dict[str, list[str]] = {"/v1/openapi.json": [], "/metrics": [], "/health": [], "/ready": []}
    for role in ("analyst", "viewer"):
        token, reached = service.token(f"a {role}", role), set()
        with closing(session(service, token)) as visitor:
            for template, queries in {**readable, **pages, **own}.items():
                if any(each in template for each in NOT_WALKED):
                    continue
                for path in paths(template, queries):
                    found = visitor.get(path) if template in pages else service.get(path, token)
                    assert found.status_code in (200, 400, 403, 404, 422), (path, found.text)
                    assert HIDDEN not in told(found), path
                    if found.status_code == 200:
                        reached.add(template)
        walked = {each for each in (*readable, *pages, *own) if not any(part in each for part in NOT_WALKED)}
        unreached = {each for each in walked - reached if not any(part in each for part in STEWARDS)}
        assert unreached <= ({each for each in walked if "open_rows" in each} if role == "viewer" else set())


QUESTION = {"expression": "{} > 0.5"}
GROUP = {"expression": "churned", "where": "{} > 0.5"}
STATISTICS = (
    {"kind": "Histogram", "expression": "{}", "edges": [0, 0.5, 1]},
    {"kind": "Quantile", "expression": "{}", "level": 0.5},
    {"kind": "Variance", "expression": "{}"},
    {"kind": "StandardDeviation", "expression": "{}", "bounds": [0, 1]},
    {"kind": "GroupMeans", "expression": "amount", "by": "{}"},
    {"kind": "GroupMeans", "expression": "{}", "by": "tenure", "categories": [1, 2]},
    {"kind": "Covariance", "x": "amount", "y": "{}"},
    {"kind": "Correlation", "x": "{}", "y": "amount"},
    {"kind": "{}"},
)
MODELS: tuple[Any, ...] = ({"predictions": {"{}": [1]}}, {"predictions": {"a": {"{}": 1}}}, {"{}": 1})
ASKED: dict[str, tuple[Any, ...]] = {
    "/v1/datasets/{name}/price": ({"question": QUESTION}, *({"statistic": each} for each in STATISTICS)),
    "/v1/datasets/{name}/ask": (QUESTION, GROUP, {"expression": "{}"}, {"expression": "{}.x"}, {"expression": "f({})"}),
    "/v1/datasets/{name}/ask_many": ({"questions": ["churned", QUESTION]},),
    "/v1/datasets/{name}/exam": ({"questions": [QUESTION]},),
    "/v1/datasets/{name}/measure": tuple({"statistic": each} for each in STATISTICS),
    "/v1/datasets/{name}/fit": (
        {"kind": "linear", "features": ["{}"], "label": "amount", "bounds": [0, 1]},
        {"kind": "linear", "features": ["tenure"], "label": "{}", "bounds": [0, 1]},
    ),
    "/v1/datasets/{name}/claim": ({**QUESTION, "between": [0.2, None]}, {**GROUP, "between": [0.2, None]}),
    "/v1/datasets/{name}/detects": ({**QUESTION, "between": [0.2, None]},),
    **{
        f"/v1/holdouts/{{name}}/{verb}": MODELS
        for verb in ("score", "unscored", "compare", "best_of", "exam", "measure", "claim", "contest", "detects")
    },
    "/v1/boards/{name}/submit": MODELS,
}


def put(body: Any, name: str) -> Any:
    return json.loads(json.dumps(body).replace("{}", name))


def test_no_refusal_hints_at_it(service: Service) -> None:
    """Asked for by name, it is as unknown as a name that no column has; nearly so, it is no suggestion."""
    document = service.get("/v1/openapi.json").json()
    doors_ = {path for path, door in document["paths"].items() if "post" in door and "evaluations" not in path}
    own = {path for path in doors_ if path.endswith(("/divide", "/charge", "/close_rounds", "/tokens", *STEWARDS))}
    assert ASKED.keys() == doors_ - own
    for template, bodies in ASKED.items():
        kind = template.split("/")[2]
        path = template.format(name={"datasets": "customers", "holdouts": "churn", "boards": "spring"}[kind])
        for body in bodies:
            named, never = (service.post(path, put(body, name)) for name in (HIDDEN, NEVER))
            assert 400 <= named.status_code < 500, (path, body, named.text)
            assert named.text.replace(HIDDEN, NEVER) == never.text, (path, body)
            for near in NEAR:
                found = service.post(path, put(body, near)).text.lower().replace(near.lower(), "")
                assert HIDDEN not in found, (path, body, near)


def test_no_page_hints_at_it(service: Service) -> None:
    with closing(session(service, service.token())) as visitor:
        key = key_of(visitor)
        for path in ("/datasets/customers/ask", "/datasets/customers/price"):
            for near in NEAR:
                found = visitor.post(path, data={"expression": f"{near} > 0.5", "form_key": key})
                assert found.status_code != 403
                assert HIDDEN not in found.text.lower().replace(near.lower(), ""), path


def test_no_tool_of_an_agent_names_it(service: Service) -> None:
    async def run() -> None:
        headers = {"Authorization": f"Bearer {service.token()}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{service.url}/mcp", http_client=http)) as client,
        ):
            tools = await client.list_tools()
            assert HIDDEN not in str(tools)
            for tool in tools.tools:
                takes = tool.input_schema["properties"]
                given: dict[str, Any] = {"name": "customers", "expression": NEAR[0], "questions": [NEAR[0]]}
                found = await client.call_tool(tool.name, {key: value for key, value in given.items() if key in takes})
                assert HIDDEN not in str(found), tool.name

    anyio.run(run)


def test_what_was_published_verifies_without_the_names(service: Service) -> None:
    for name in ("customers", "churn"):
        receipt = service.get(f"/v1/datasets/{name}/receipt").json()
        assert afresh.receipts.verify(receipt).passed
        assert "tenure" not in receipt["chain"]["records"][0]  # nor any other name
