"""The command line with an address in place of a file."""

from __future__ import annotations

import json
import subprocess

from cli.program import afresh
from server.running import Service


def run(service: Service, *arguments: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
    return afresh(*arguments, folder=service.folder, AFRESH_TOKEN=token or service.token())


def test_commands_take_an_address(service: Service) -> None:
    address = f"{service.url}/customers"
    first = run(service, "ask", address, "churned AND tenure < 3", "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["charged"] == 1
    priced = run(service, "ask", address, "amount", "--dry-run")
    assert "Costs 1 answer;" in priced.stdout
    assert json.loads(run(service, "budget", address, "--json").stdout)["spent"] == 1
    assert "churned AND tenure < 3" in run(service, "log", address).stdout
    receipt = run(service, "receipt", address, "--out", "receipt.json")
    assert receipt.returncode == 0, receipt.stderr
    assert run(service, "verify", "receipt.json").returncode == 0
    steward = service.token("sam", "steward")
    assert run(service, "divide", address, "ann=5", token=steward).returncode == 0


def test_errors_have_the_same_exit_codes(service: Service) -> None:
    address = f"{service.url}/customers"
    assert run(service, "ask", address, "nothing > 1").returncode == 3
    assert run(service, "ask", address, "churned", "--questions", "5").returncode == 2
    assert run(service, "divide", address, "ann=5").returncode == 1
    refused = run(service, "budget", address, token="wrong")
    assert refused.returncode == 1
    assert "ask the steward" in refused.stderr
