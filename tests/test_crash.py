"""kill -9 at every step of an ask: nothing is lost, nothing is paid twice, nothing unrecorded is released."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import afresh

# Asks questions and prints each answer; kills itself with SIGKILL at one step of the fourth.
CHILD = """
import os, signal, sys
import afresh
step, data = sys.argv[1:]

def kill(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

guard = afresh.open(data, questions=10)
for number in range(6):
    if number == 3:
        if step == "before reserve":
            kill()
        elif step == "between reserve and evaluate":
            guard._engine.moments = kill
        elif step == "between noise and record":
            guard._ledger.record_many = kill
        elif step == "between record and release":
            guard._build = kill
    answer = guard.ask(f"x < {number}")
    print(number, repr(answer.value), answer.charged, flush=True)
"""
STEPS = {
    # How many answers are paid for, and how many of those recorded, when the process is gone.
    "before reserve": (3, 3),
    "between reserve and evaluate": (4, 3),
    "between noise and record": (4, 3),
    "between record and release": (4, 4),
}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL is POSIX")
@pytest.mark.parametrize("step", STEPS)
def test_kill(step: str, tmp_path: Path, private_ledger: Path) -> None:
    data = tmp_path / "data.parquet"
    pd.DataFrame({"x": np.arange(1000) % 10}).to_parquet(data)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, step, str(data)],
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    released = dict(line.split()[:2] for line in child.stdout.splitlines())
    assert list(released) == ["0", "1", "2"]
    paid, recorded = STEPS[step]
    with afresh.open(data) as guard:
        records = guard.transcript.records
        assert len(records) == guard.budget.spent == paid
        assert sum(record.value is not None for record in records) == recorded
        for number, value in released.items():
            again = guard.ask(f"x < {number}")
            assert (repr(again.value), again.charged) == (value, 0)
        interrupted = guard.ask("x < 3")
        assert interrupted.charged == (1 if step == "before reserve" else 0)
        if recorded == 4:
            assert interrupted.value == records[3].value
        assert guard.budget.spent == 4
