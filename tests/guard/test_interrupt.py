"""Ctrl-C while a question runs: KeyboardInterrupt and nothing else, paid once, and completed when it is asked again."""

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import afresh

QUESTION = " OR ".join(f"x LIKE '%a%b%{i}%c%d%'" for i in range(60))
ASKING = """
import sys
import afresh
with afresh.open(sys.argv[1], questions=10, ledger=sys.argv[2]) as guard:
    print("asking", flush=True)
    guard.ask(sys.argv[3])
    print("answered", flush=True)
"""


def paid(ledger: Path) -> bool:
    """Whether the question was reserved."""
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
        (records,) = connection.execute("SELECT count(*) FROM afresh_records").fetchone()
    return int(records) > 2


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
def test_a_real_signal(tmp_path: Path) -> None:
    data, ledger = tmp_path / "data.duckdb", tmp_path / "ledger.sqlite"
    with duckdb.connect(str(data)) as connection:
        connection.execute("CREATE TABLE rows AS SELECT repeat('ab', 100) || i AS x FROM range(500_000) AS t(i)")
    command = [sys.executable, "-c", ASKING, str(data), str(ledger), QUESTION]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "asking\n"
            while not paid(ledger):  # from here on it runs
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert out == ""
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert "RuntimeError:" not in err
    assert "Query interrupted" not in err
    with afresh.open(data, ledger=ledger) as guard:
        spent = guard.budget.spent
        assert spent == 1  # it was paid for before it ran
        answer = guard.ask(QUESTION)
        assert answer.charged == 1 - spent
        assert guard.budget.spent == 1
        assert guard.ask(QUESTION).charged == 0
        assert len(guard.transcript) == 1
