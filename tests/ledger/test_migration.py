"""Ledgers of earlier layouts are opened, converted, kept to the last bit, and charged on."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import afresh
from afresh import noise
from afresh.engines.opening import open_engine
from afresh.errors import BudgetExhausted, DataError, InvalidArgument
from afresh.guard import Guard
from afresh.ledger import Ledger, open_ledger
from afresh.ledger.records import Reserved, decode
from afresh.plan import Plan
from ledger.samples import FOLDER, METHODS, frame, told

of_old = pytest.mark.parametrize("method", METHODS[:3])
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(autouse=True)
def any_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples may be newer than this machine's clock."""
    monkeypatch.setenv("AFRESH_ACCEPT_CLOCK", "1")


def sample(layout: int, folder: Path) -> Path:
    path = folder / "ledger.sqlite"
    shutil.copy(FOLDER / f"layout{layout}.sqlite", path)
    path.chmod(0o600)
    return path


def guard_of_old(ledger: Ledger, method: str) -> Guard:
    """As if the fingerprint were still made as it was then."""
    terms = ledger.terms(told(1)[method]["fingerprint"])
    assert terms is not None
    engine = open_engine(frame(method))
    if method == "split":
        engine.deal(terms.questions, terms.seed)
    return Guard(engine, Plan.thaw(terms.plan), ledger, terms, noise.from_entropy, analyst="Ada", owns_ledger=False)


def tables(path: Path) -> tuple[int, list[Any]]:
    """Layout and content of a file."""
    with closing(sqlite3.connect(path)) as file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
        return version, list(file.iterdump())


class TestLayout1:
    @of_old
    def test_keeps_everything(self, tmp_path: Path, method: str) -> None:
        path, old = sample(1, tmp_path), told(1)[method]
        with closing(open_ledger(path)) as ledger:
            terms = ledger.terms(old["fingerprint"])
            assert terms is not None
            assert terms.created_at == datetime.fromisoformat(old["created_at"])
            for name in ("plan", "rows", "questions", "information", "seed"):
                assert getattr(terms, name) == old[name]
            assert (terms.answers, terms.row_share) == (old["questions"], None)
            entries = ledger.entries(terms)
            kept = [
                {name: getattr(entry, name) for name in ("number", "digest", "text", "detail", "charge", "released")}
                | {
                    "reserved_at": entry.reserved_at.isoformat(),
                    "answered_at": entry.answered_at and entry.answered_at.isoformat(),
                }
                for entry in entries
            ]
            assert kept == old["entries"]
            assert entries[-1].released is None
            spent = ledger.spent(terms)
            assert (spent.answers, spent.information) == (5, sum(entry.charge for entry in entries))
            records = [decode(text) for text, _ in ledger.chain(terms)]
            assert {record.method for record in records if isinstance(record, Reserved)} == {method}
            assert ledger.terms("a simulation", simulated=True) is not None
        assert tables(path)[0] == 2
        assert "CREATE TABLE entries" not in "".join(tables(path)[1])

    @of_old
    def test_is_charged_on(self, tmp_path: Path, method: str) -> None:
        old = told(1)[method]
        with closing(open_ledger(sample(1, tmp_path))) as ledger, guard_of_old(ledger, method) as guard:
            again = [guard.ask("x < 3"), guard.ask("y", bounds=(0, 2)), guard.ask("x = 1", where="y < 0.5")]
            assert [answer.charged for answer in again] == [0, 0, 0]
            for answer, before in zip(again, old["answers"], strict=False):
                for name in ("value", "low", "high", "confidence", "method"):
                    assert answer.to_dict()[name] == before[name]
            assert guard.ask("x > 4").charged == 0  # was paid for, and is completed
            assert guard.budget.spent == 5
            for i in range(3):
                assert guard.ask(f"x > {i}").charged == 1
            with pytest.raises(BudgetExhausted):
                guard.ask("x > 5")
            assert ledger.terms(old["fingerprint"]) is not None  # verifies the chain

    @of_old
    def test_its_data_are_not_taken_for_new_ones(self, tmp_path: Path, method: str) -> None:
        """Fingerprints were made in another way then, so the same rows have another one now."""
        with pytest.raises(DataError, match="1000 rows that were opened with afresh before its first release"):
            afresh.open(frame(method), ledger=sample(1, tmp_path))

    def test_plans_of_old_admit_only_answers_of_equal_noise(self, tmp_path: Path) -> None:
        """Their constants were computed for those, and their ledgers kept no account of single rows."""
        with closing(open_ledger(sample(1, tmp_path))) as ledger, guard_of_old(ledger, "stabilized") as guard:
            with pytest.raises(InvalidArgument, match="older version"):
                guard.charge("a mean of a few rows", noise_sd=10.0, rows=6)
            with pytest.raises(InvalidArgument, match="older version"):
                guard.ask("x < 2", precision=0.45)
            assert guard.budget.spent == 5

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL is POSIX")
    @pytest.mark.parametrize("guards", [0, 1, 4])
    def test_a_killed_conversion_leaves_it_as_it_was(self, tmp_path: Path, guards: int) -> None:
        path = sample(1, tmp_path)
        before = tables(path)
        code = (
            "import os, signal, sys\n"
            "from afresh.ledger import layout, open_ledger\n"
            "make, left = layout._chain, [0] * int(sys.argv[2])\n"
            "def chain(*arguments):\n"
            "    return make(*arguments) if left and not left.pop() else os.kill(os.getpid(), signal.SIGKILL)\n"
            "layout._chain = chain\n"
            "layout._APPEND_ONLY = property()\n"  # not iterable: after the last guard, this ends it
            "try:\n    open_ledger(sys.argv[1])\n"
            "except TypeError:\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, path, str(guards)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert tables(path) == before
        assert before[0] == 1
        with closing(open_ledger(path)) as ledger:
            assert ledger.terms(told(1)["split"]["fingerprint"]) is not None

    def test_processes_that_convert_it_at_once_agree(self, tmp_path: Path) -> None:
        path = sample(1, tmp_path)
        code = (
            "import sys, time\n"
            "from afresh.ledger import open_ledger\n"
            "from afresh.ledger.sqlite import SqliteJournal\n"
            "time.sleep(max(0, float(sys.argv[2]) - time.time()))\n"
            "ledger = open_ledger(sys.argv[1])\n"
            "print([ledger.chain(ledger.terms(data))[-1].hash for data in sys.argv[3:]])\n"
        )
        prints = [each["fingerprint"] for each in told(1).values()]
        command = [sys.executable, "-c", code, str(path), str(time.time() + 1.0), *prints]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) for _ in range(4)]
        heads = [process.communicate(timeout=60)[0] for process in running]
        assert [process.returncode for process in running] == [0] * 4
        assert len(set(heads)) == 1
        assert len(heads[0]) > 3 * 64


class TestLayout2:
    @each_method
    def test_keeps_everything(self, tmp_path: Path, method: str) -> None:
        with closing(open_ledger(sample(2, tmp_path))) as ledger:
            terms = ledger.terms(told(2)[method]["fingerprint"])
            assert terms is not None
            assert (terms.plan, terms.seed) == (told(2)[method]["plan"], told(2)[method]["seed"])
            assert [list(record) for record in ledger.chain(terms)] == told(2)[method]["chain"]

    @each_method
    def test_is_charged_on(self, tmp_path: Path, method: str) -> None:
        old = told(2)[method]
        with afresh.open(frame(method), 12, 0.9, ledger=sample(2, tmp_path), analyst="Ada") as guard:
            again = [guard.ask("x < 3"), guard.ask("y", bounds=(0, 2)), guard.ask("x = 1", where="y < 0.5")]
            again += [guard.ask("x > 1")] * (len(old["answers"]) > 3)
            before = old["answers"][:3] + old["answers"][4:]
            assert [(a.charged, a.value, a.low, a.high) for a in again] == [
                (0, b["value"], b["low"], b["high"]) for b in before
            ]
            assert guard.ask("x > 4").charged == 0
            assert guard.budget.shares == {"Ada": 9}
            assert guard.ask("x > 5").charged == 1
