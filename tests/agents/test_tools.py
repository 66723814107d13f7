"""The tools for agents, by the SDK's own client: over stdin and stdout, and over HTTP against a real server process."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from judging.made import PERFECT, POOR, candidate, make
from server.running import CONFIG, Service, running, write_data

TOOLS = {"list", "describe", "price", "ask", "ask_many", "score", "compare", "propose", "budget", "transcript"}
OPEN = {"open_items", "try_open"}


def write_evaluation(folder: Path) -> str:
    top, _, evaluator = make(folder).read_text().partition("[evaluator]")
    return f"[evaluations.qa]{top}[evaluations.qa.evaluator]{evaluator}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    write_data(folder)
    top = 'hosts = ["Afresh.example.com"]\norigins = ["https://ours.example"]'
    with running(folder, more=write_evaluation(folder), ledger=top) as found:
        yield found


@asynccontextmanager
async def over_http(service: Service, who: str, mode: Any = "auto", **more: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {who}", **more}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{service.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def beside(what: str, *arguments: str, **environment: str) -> StdioServerParameters:
    path = os.pathsep.join(p for p in sys.path if p)
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "afresh.cli", "mcp", what, *arguments],
        env={"PYTHONPATH": path, **environment},
    )


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool returns, which keeps to the schema that it publishes."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found
    told: dict[str, Any] = found.structured_content
    schemas = {each.name: each.output_schema for each in (await client.list_tools()).tools}
    jsonschema.validate(told, schemas[tool])
    text = [each.text for each in found.content if each.type == "text"]
    assert json.loads(text[-1]) == told["result"]
    assert text[0] == told["conclusion"] or not told["conclusion"]
    return told


async def all_tools(client: Client) -> None:
    """Every tool once, and every refusal is a result."""
    tools = (await client.list_tools()).tools
    assert {each.name for each in tools} == TOOLS | OPEN
    for each in tools:
        jsonschema.Draft202012Validator.check_schema(each.input_schema)
        assert each.description
        assert "analyst" not in each.input_schema["properties"]  # nobody is named
    listed = (await call(client, "list"))["result"]
    assert [each["name"] for each in listed["datasets"]] == ["customers", "churn"]
    assert [each["name"] for each in listed["evaluations"]] == ["qa"]
    assert "secret" not in (await call(client, "describe", name="customers"))["result"]["columns"]
    assert (await call(client, "describe", name="qa"))["result"]["open"] == 200
    price = await call(client, "price", name="customers", expression="churned")
    assert price["result"]["answers"] == 1
    answer = await call(client, "ask", name="customers", expression="churned")
    assert answer["result"]["low"] <= 0.3 <= answer["result"]["high"]
    assert "report the range" in answer["conclusion"]
    assert (await call(client, "ask", name="customers", expression="churned"))["result"]["charged"] == 0
    many = await call(client, "ask_many", name="customers", questions=["tenure < 3", "tenure < 60"])
    assert len(many["result"]["answers"]) == 2
    wrong = await call(client, "ask", name="customers", expression="chrned")
    assert (wrong["refused"], wrong["result"]["code"]) == (True, "query-error")
    assert "churned" in wrong["conclusion"]  # the remedy
    assert (await call(client, "ask", name="nothing", expression="churned"))["result"]["code"] == "not-found"
    assert (await call(client, "propose", name="customers", files={"a": "b"}))["refused"]
    zeros, ones = [0] * 4000, [1] * 4000
    compared = await call(client, "compare", name="churn", predictions={"zeros": zeros, "ones": ones})
    assert "do not report this as an improvement" in compared["conclusion"] or "better" in compared["conclusion"]
    scored = await call(client, "score", name="churn", predictions={"zeros": zeros})
    assert 0.3 < scored["result"]["answers"][0]["value"] < 0.7
    items = await call(client, "open_items", name="qa", limit=3)
    assert (len(items["result"]["items"]), items["result"]["total"]) == (3, 200)
    tried = await call(client, "try_open", name="qa", files={"c.py": PERFECT})
    assert "chance that the gate accepts it" in tried["conclusion"]
    rejected = await call(client, "propose", name="qa", label="poor", files={"c.py": POOR})
    assert rejected["result"]["accepted"] is False
    assert "do not report this as an improvement" in rejected["conclusion"]
    compared = await call(client, "compare", name="qa", a={"c.py": POOR}, b={"c.py": PERFECT})
    assert compared["result"]["better"] == "B"
    broken = await call(client, "propose", name="qa", files={"c.py": "raise ValueError('why')"})
    assert broken["result"]["code"] == "evaluator-failed"
    assert "ValueError" in broken["result"]["output"]
    assert "left" in (await call(client, "budget", name="qa"))["conclusion"]
    assert len((await call(client, "transcript", name="customers", last=2))["result"]["records"]) == 2


def test_every_tool_over_http(service: Service) -> None:
    async def run() -> None:
        async with over_http(service, service.token()) as client:
            await all_tools(client)
            told = await call(client, "propose", name="qa", path="/etc/passwd")
            assert "cannot read your files" in told["conclusion"]

    anyio.run(run)


def test_http_takes_a_token(service: Service) -> None:
    for who in ("", "Bearer nobody"):
        found = service.call("POST", "/mcp", json={}, headers={"Authorization": who})
        assert found.status_code == 401
        assert found.json()["code"] == "not-allowed"
    viewer = service.token("eve", "viewer")

    async def run() -> None:
        async with over_http(service, viewer) as client:
            told = await call(client, "ask", name="customers", expression="tenure < 5")
            assert told["result"]["code"] == "forbidden"
        async with over_http(service, service.token("cap", cap=1)) as client:
            assert not (await call(client, "ask", name="customers", expression="tenure < 41"))["refused"]
            told = await call(client, "ask", name="customers", expression="tenure < 42")
            assert told["result"]["code"] == "budget-exhausted"

    anyio.run(run)


HERE = ("127.0.0.1", "localhost:1234", "[::1]:8765")
OURS = ("afresh.example.com", "afresh.example.com:443", "AFRESH.example.com")
THEIRS = (
    "evil.example",
    "afresh.example.com.evil.example",
    "evil.example:8765",
    "example.com",
    "afresh.example.com@evil.example",
)


@pytest.mark.parametrize("host", [*HERE, *OURS])
def test_at_the_names_that_the_configuration_gives(host: str, service: Service) -> None:
    async def run() -> None:
        for origin in (None, f"https://{host}", "https://ours.example"):
            more = {"Host": host} | ({} if origin is None else {"Origin": origin})
            async with over_http(service, service.token(), **more) as client:
                assert not (await call(client, "budget", name="customers"))["refused"]

    anyio.run(run)


def test_at_no_other_name_and_from_no_other_page(service: Service) -> None:
    """A page that gave its own name the address of this machine could send requests here otherwise."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    for host in THEIRS:
        found = service.post("/mcp", body, headers={"Host": host, **accept})
        assert (found.status_code, host in found.json()["detail"], "hosts" in found.json()["detail"]) == (
            421,
            True,
            True,
        )
    for origin in (*(f"https://{host}" for host in THEIRS), "null", "http://ours.example"):
        found = service.post("/mcp", body, headers={"Origin": origin, **accept})
        assert (found.status_code, origin in found.json()["detail"]) == (403, True)

    async def run() -> None:
        async with over_http(service, service.token(), Host="evil.example") as client:
            await client.list_tools()

    with pytest.raises(ExceptionGroup) as caught:
        anyio.run(run)
    assert "error response" in repr(caught.value)


def test_beside_an_agent_with_a_cap(service: Service, tmp_path: Path) -> None:
    """Over stdin and stdout, for the same service; a session spends no more than its cap, whatever its token may."""
    perfect = candidate(tmp_path, PERFECT + "# from a file")
    rows = pq.read_table(service.folder / "churn.parquet")
    np.save(tmp_path / "p.npy", rows["x0"].to_numpy()[None] > 0)

    async def run() -> None:
        async with Client(beside(service.url, "--cap", "3", AFRESH_TOKEN=service.token("mia"))) as client:
            assert (await call(client, "propose", name="qa", path=str(perfect)))["result"]["charged"] == 1
            told = await call(client, "score", name="churn", path=str(tmp_path / "p.npy"))
            assert told["result"]["answers"][0]["charged"] == 1
            over = await call(client, "ask_many", name="customers", questions=["tenure < 91", "tenure < 92"])
            assert (over["refused"], over["result"]["code"]) == (True, "budget-exhausted")
            assert "this session" in over["conclusion"]
            assert not (await call(client, "ask", name="customers", expression="tenure < 91"))["refused"]
            assert (await call(client, "ask", name="customers", expression="tenure < 92"))["refused"]
            again = await call(client, "ask", name="customers", expression="tenure < 91")
            assert (again["refused"], again["result"]["charged"]) == (False, 0)

    anyio.run(run)


def test_beside_an_agent_without_a_service(tmp_path: Path) -> None:
    """The same tools for a configuration, opened in the process of the tools."""
    write_data(tmp_path)
    (tmp_path / "afresh.toml").write_text(CONFIG.format(more=write_evaluation(tmp_path), ledger=""))

    async def run() -> None:
        async with Client(beside(str(tmp_path / "afresh.toml"), "--analyst", "robo")) as client:
            await all_tools(client)

    anyio.run(run)


def test_only_a_terminal_is_told_to_wait(tmp_path: Path) -> None:
    """Whoever types the command sees why nothing happens; a client's log has neither that nor a line per request."""
    write_data(tmp_path)
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "afresh.cli", "mcp", "customers.parquet", "--questions", "5"]
    more: dict[str, Any] = {
        "cwd": tmp_path,
        "env": {**os.environ, "AFRESH_LEDGER": "ledger.sqlite"},
        "stderr": subprocess.PIPE,
    }
    with subprocess.Popen(command, stdin=child, stdout=subprocess.DEVNULL, **more) as typed:
        os.close(child)
        os.write(parent, b"\x04")  # the end of what is typed
        assert b"Waiting for an MCP client" in typed.communicate()[1]
    os.close(parent)
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": _HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "ask", "arguments": _ASKED}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in asked)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdin.write(lines.encode())
        started.stdin.flush()
        answers = [json.loads(started.stdout.readline()) for _ in range(2)]
        assert "result" in answers[1]
        assert started.communicate()[1] == b""


_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
_ASKED = {"name": "customers", "expression": "churned"}


def test_a_client_of_the_handshake_is_told_what_the_tools_are_for(service: Service) -> None:
    async def run() -> None:
        async with over_http(service, service.token(), "legacy") as client:
            assert "Report the range" in str(client.instructions)
            assert not (await call(client, "ask", name="customers", expression="tenure < 77"))["refused"]

    anyio.run(run)
