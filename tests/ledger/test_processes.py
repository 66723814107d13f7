"""Many processes on one file, and processes that are killed."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from afresh.ledger.sqlite import SqliteLedger

SCRIPT = Path(__file__).with_name("processes.py")
CHARGE = 0.1


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", str(SCRIPT), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(*processes: subprocess.Popen[str]) -> list[list[Any]]:
    said = [process.communicate(timeout=60) for process in processes]
    for process, (_, err) in zip(processes, said, strict=True):
        assert (process.returncode, err) == (0, "")
    return [[json.loads(line) for line in out.splitlines()] for out, _ in said]


def test_racing_processes_never_overspend(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ledger.sqlite"  # the directory, the file and the terms are raced for too
    workers, asked, questions = 6, 30, 60  # 6 * 15 + 15 = 105 different questions for 60 answers
    begin = time.time() + 2.5
    processes = [start("race", path, worker, begin, asked, questions) for worker in range(workers)]
    outputs = finish(*processes)

    openings = {(lines[0]["plan"], lines[0]["seed"]) for lines in outputs}
    assert len(openings) == 1
    said = [line for lines in outputs for line in lines[1:]]
    assert len(said) == workers * asked
    released = {(line["digest"], line["number"], line["released"]) for line in said if "refused" not in line}

    ledger = SqliteLedger(path)
    terms = ledger.terms("data")
    assert terms is not None
    entries = ledger.entries(terms)
    ledger.close()
    assert [entry.number for entry in entries] == list(range(1, questions + 1))
    assert math.fsum(entry.charge for entry in entries) == pytest.approx(terms.information, rel=1e-9)
    assert len({entry.digest for entry in entries}) == questions
    # Every answer anyone saw is the stored one, and every stored one was seen.
    assert released == {(entry.digest, entry.number, entry.released) for entry in entries}
    refused = {line["refused"] for line in said if "refused" in line}
    assert refused
    assert refused.isdisjoint(entry.digest for entry in entries)
    # The workers did meet, or the test shows nothing.
    askers = {entry.digest.split()[0] for entry in entries}
    assert len(askers) > 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_racing_creations_agree(tmp_path: Path) -> None:
    (rounds,) = finish(start("create", tmp_path, 30))
    assert [len(seeds) for seeds in rounds] == [6] * 30
    assert [set(seeds) for seeds in rounds] == [{seeds[0]} for seeds in rounds]
    assert {len(seeds[0]) for seeds in rounds} == {64}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_processes_leave_nothing_unpaid_or_unrecorded(tmp_path: Path) -> None:
    kills, questions = 48, 400  # each child answers at most 8, so none but the last can finish
    (rounds,) = finish(start("crash", tmp_path / "ledger.sqlite", kills, questions, "a fixed seed"))
    assert len(rounds) == kills + 1
    assert [each["status"] for each in rounds] == [signal.SIGKILL] * kills + [0]

    released: dict[str, float] = {}
    before: list[list[Any]] = []
    for each in rounds:
        entries = each["entries"]
        assert [entry[0] for entry in entries] == list(range(1, len(entries) + 1))
        # Nothing is forgotten or changed: an entry can only get its answer.
        for old, new in zip(before, entries, strict=False):
            assert new[:3] == old[:3]
            assert old[3] in (None, new[3])
        assert len(entries) >= len(before)
        stored = {digest: value for _, digest, _, value in entries}
        for digest, value in each["released"]:
            assert released.setdefault(digest, value) == value
        assert released.items() <= stored.items()
        if each["suicide"]:
            assert any(entry[3] is None for entry in entries)
        before = entries
    # The last child completed all reservations, and none was paid for twice.
    assert len(before) == questions
    assert all(entry[3] is not None for entry in before)
    assert math.fsum(entry[2] for entry in before) == pytest.approx(questions * CHARGE, rel=1e-9)
