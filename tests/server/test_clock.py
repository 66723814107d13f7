"""Ticks, and limits of time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.server.api import answers
from afresh.server.app import Desk
from afresh.server.clock import leaving, next_tick
from afresh.server.config import read_config
from afresh.server.tokens import Caller
from server.running import Service, running, write_data


@given(st.floats(0, 1e4), st.floats(1e-3, 10))
def test_an_answer_leaves_when_it_is_ready_on_a_power_of_two(elapsed: float, tick: float) -> None:
    leaves = leaving(elapsed, tick)
    assert leaves >= elapsed
    assert np.log2(leaves / tick) == pytest.approx(round(np.log2(leaves / tick)))
    assert leaves == tick or leaves / 2 < elapsed


@given(st.integers(0, 10**6), st.floats(0.01, 0.99), st.floats(1e-3, 10))
def test_what_is_refused_leaves_on_ticks_of_all(ticks: int, part: float, tick: float) -> None:
    """Whenever it came: many refusals behind one scan, a moment apart, tell its end no better than to a tick."""
    assert next_tick((ticks + part) * tick, tick) == pytest.approx((ticks + 1) * tick, rel=1e-12)
    assert next_tick(part, 0) == part


def test_scans_that_differ_by_half_a_tick_leave_alike() -> None:
    """400 answers of each of two datasets: all leave at one moment, so nothing tells the datasets apart."""
    chance = np.random.default_rng(5)
    fast, slow = 0.010 + 0.002 * chance.random(400), 0.035 + 0.002 * chance.random(400)
    assert {leaving(each, 0.05) for each in fast} == {leaving(each, 0.05) for each in slow} == {0.05}


@pytest.fixture(scope="module")
def ticking(tmp_path_factory: pytest.TempPathFactory) -> object:
    config = """
state = "state"
tick = 0.6
[limits]
requests = 20
[datasets.customers]
data = "customers.parquet"
"""
    with running(tmp_path_factory.mktemp("ticking"), config=config) as found:
        yield found


def timed(service: Service, expression: str) -> float:
    began = time.monotonic()
    assert service.post("/v1/datasets/customers/ask", {"expression": expression}).status_code in (200, 422)
    return time.monotonic() - began


def test_answers_leave_on_ticks_and_repeats_at_once(ticking: Service) -> None:
    """As lower bounds: an answer never leaves before its tick, whatever the machine does."""
    assert timed(ticking, "churned") >= 0.6
    assert timed(ticking, "tenure < 3") >= 0.6
    assert min(timed(ticking, "churned") for _ in range(5)) < 0.6


def test_a_token_has_a_rate(ticking: Service) -> None:
    found = [ticking.get("/v1/me") for _ in range(45)]  # two minutes' worth, should one end meanwhile
    late = [each for each in found if each.status_code != 200]
    assert late
    assert {each.json()["code"] for each in late} == {"too-many-requests"}
    assert ticking.get("/v1/me", ticking.token("bob")).status_code == 200


def test_a_question_that_takes_too_long_is_paid_for_once(tmp_path: Path) -> None:
    config = """
state = "state"
tick = 0
[limits]
seconds = 0.0005
[datasets.customers]
data = "customers.parquet"
"""
    with running(tmp_path, config=config) as service:
        found = service.post("/v1/datasets/customers/ask", {"expression": "churned"})
        assert (found.status_code, found.json()["code"]) == (504, "timed-out")
        for _ in range(100):
            records = service.get("/v1/datasets/customers/transcript").json()["records"]
            if records and records[0]["value"] is not None:
                break
            service.post("/v1/datasets/customers/ask", {"expression": "churned"})
            time.sleep(0.05)
        assert len(records) == 1  # it went on, or was begun again; never paid for twice
        assert service.get("/v1/datasets/customers/budget").json()["spent"] == 1


def test_whoever_asks_the_same_meanwhile_is_answered_with_the_first(tmp_path: Path) -> None:
    """Otherwise whoever asks the same again and again would see when the scan ended: each a tick after its question."""
    write_data(tmp_path)
    (tmp_path / "afresh.toml").write_text('state = "state"\ntick = 1\n[datasets.c]\ndata = "customers.parquet"\n')
    desk, caller, question = Desk(read_config(tmp_path / "afresh.toml")), Caller("ann", "analyst", ("*",)), "churned"
    served = desk.house.find("c", caller)

    async def twice() -> None:
        async def ask() -> tuple[int, float]:
            (answer,) = await answers(desk, served, caller, [{"expression": question}])
            return answer.charged, time.time()

        asked = [asyncio.create_task(ask())]
        while not any(record.value is not None for record in served.guard.transcript):
            await asyncio.sleep(0.01)
            asked.append(asyncio.create_task(ask()))
        asked.append(asyncio.create_task(ask()))
        charged, times = zip(*await asyncio.gather(*asked), strict=True)
        (entry,) = served.guard.desk.ledger.entries(served.guard.desk.terms)
        assert min(times) >= entry.reserved_at.timestamp() + 1
        assert sum(charged) == 1
        assert served.history.leaves([1]) <= min(times)

    try:
        asyncio.run(twice())
    finally:
        desk.close()
