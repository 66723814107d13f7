"""Health, metrics, shutdown, copies and what an older copy is refused by."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import afresh
from server.running import Service, running, stop
from server.test_cli import run
from server.visiting import session

CONFIG = """
state = "state"
tick = 1.5
[datasets.customers]
data = "customers.parquet"
"""


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Service]:
    with running(tmp_path, config=CONFIG) as found:
        yield found


def test_it_says_how_it_is(service: Service) -> None:
    assert httpx.get(f"{service.url}/health").json()["status"] == "ok"
    assert httpx.get(f"{service.url}/ready").json() == {"status": "ready"}
    assert httpx.get(f"{service.url}/metrics").status_code == 401
    service.post("/v1/datasets/customers/ask", {"expression": "tenure < 3 AND churned"})
    text = service.get("/metrics").text
    assert 'afresh_requests_total{route="/v1/datasets/{name}/ask",status="200"} 1' in text
    assert "afresh_answers_charged_total 1" in text
    assert "tenure" not in text
    assert "customers" not in text
    assert "ann" not in text.replace("channel", "")


def test_a_shutdown_finishes_what_was_begun(slow: Service) -> None:
    found: list[httpx.Response] = []
    body = {"expression": "churned"}
    asking = threading.Thread(target=lambda: found.append(slow.post("/v1/datasets/customers/ask", body)))
    with session(slow, slow.token()).stream("GET", "/datasets/customers/events") as events:
        told = events.iter_lines()
        assert next(told) == "retry: 2000"
        asking.start()
        time.sleep(0.7)  # it is answered by now or soon, and leaves later
        stop(slow.process)
        assert set(told) <= {"", "event: changed", "data: 1"}  # an open page is let go, and not cut off in the end
    asking.join()
    assert found[0].status_code == 200
    with afresh.open(slow.folder / "customers.parquet", ledger=slow.folder / "state" / "ledger.sqlite") as guard:
        (record,) = guard.transcript
        assert record.value == found[0].json()["value"]


@pytest.fixture
def prompt(tmp_path: Path) -> Iterator[Service]:
    with running(tmp_path, config=CONFIG.replace("tick = 1.5", "tick = 0.01")) as found:
        yield found


def test_an_older_copy_is_refused_by_whoever_knows_a_later_head(prompt: Service) -> None:
    prompt.post("/v1/datasets/customers/ask", {"expression": "churned"})
    copied = run(prompt, "backup", "monday")
    assert copied.returncode == 0, copied.stderr
    ledger = prompt.folder / "state" / "ledger.sqlite"
    copy = prompt.folder / "monday" / "ledger.sqlite"
    assert copied.stdout.split() == ["monday/ledger.sqlite", "monday/service.sqlite"]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert run(prompt, "backup", "monday").returncode == 2
    with afresh.open(prompt.folder / "customers.parquet", ledger=copy) as guard:
        assert guard.budget.spent == 1
    early = prompt.get("/v1/datasets/customers/receipt").json()
    prompt.post("/v1/datasets/customers/ask", {"expression": "tenure < 3"})
    (prompt.folder / "early.json").write_text(json.dumps(early))
    (prompt.folder / "late.json").write_text(prompt.get("/v1/datasets/customers/receipt").text)
    assert run(prompt, "verify", "early.json", "--ledger", str(copy)).returncode == 0
    assert run(prompt, "verify", "late.json", "--ledger", str(ledger)).returncode == 0
    refused = run(prompt, "verify", "late.json", "--ledger", str(copy))
    assert refused.returncode == 1
    # The service itself refuses a ledger that was replaced under it.
    shutil.move(ledger, prompt.folder / "old.sqlite")
    shutil.copy(copy, ledger)
    problem = prompt.post("/v1/datasets/customers/ask", {"expression": "tenure < 4"})
    assert problem.json()["code"] in ("ledger-error", "broken-chain")
    assert prompt.post("/v1/datasets/customers/ask", {"expression": "tenure < 4"}).status_code == 503
