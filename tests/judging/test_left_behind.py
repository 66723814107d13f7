"""What a killed service leaves behind is removed by the next, and what others are running is not."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from afresh.judging.promising import promised
from afresh.judging.room import Needs
from cli.forked import shared
from judging.made import PERFECT
from judging.test_service import CONFIG, serve_config
from server.running import Service, running


def test_a_service_killed_in_a_guarded_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder has guarded items, so the next start removes it; the candidate is dead, and nothing was charged."""
    home, mark = tmp_path / "temporary", f"killed-{os.getpid()}.py"
    home.mkdir()
    shared()  # the command of all tests is no temporary file of this one
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setattr("tempfile.tempdir", str(home))
    (tmp_path / "customers.parquet").touch()
    config = serve_config(tmp_path)
    with promised(Needs(1, 1, 1), {}, 0) as ours:  # of a process that lives: this one
        (ours / "items.jsonl").touch()
        with running(tmp_path, more=config, config=CONFIG) as service:
            left = killed(service, home, mark)
        assert (left / "run" / "items.jsonl").exists()
        (left / "run").chmod(0)
        more = config.replace('command = ["', 'command = ["/nowhere')
        with running(tmp_path, more=more, config=CONFIG) as service:
            assert not left.exists()
            assert (ours / "items.jsonl").exists()
            refused = service.post("/v1/evaluations/qa/propose", body(service, mark))
            assert (refused.status_code, refused.json()["code"]) == (503, "not-scored")
            assert "No such file" in refused.json()["detail"]
            assert service.get("/v1/evaluations/qa/budget").json()["spent"] == 0
    assert not ours.exists()
    while [each for each in Path("/proc").glob("[0-9]*/cmdline") if mark in _read(each)]:
        time.sleep(0.01)  # it dies in its own time


def killed(service: Service, home: Path, mark: str) -> Path:
    """Kill a service while a candidate runs on the guarded items; returns the folder of this run."""
    asked = body(service, mark)

    def ask() -> None:
        with pytest.raises(httpx.TransportError):
            service.post("/v1/evaluations/qa/propose", asked)

    asking = threading.Thread(target=ask)
    asking.start()
    while not (found := list(home.glob("*/run-*/run/began"))):
        assert service.process.poll() is None, service.log
        time.sleep(0.01)
    service.process.send_signal(signal.SIGKILL)
    service.process.wait()
    asking.join()
    return found[0].parents[1]


def body(service: Service, name: str) -> dict[str, Any]:
    """A candidate that never ends on the guarded items."""
    known = [item["id"] for item in service.get("/v1/evaluations/qa/items").json()["items"]]
    slow = f"def everything(items):\n    if items[0]['id'] not in {known!r}:\n        import time\n"
    slow += f"        open('began', 'w')\n        time.sleep(600)\n{PERFECT}"
    return {"candidates": [{"name": "c", "file": {name: slow}}]}


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:  # it has ended
        return ""
