"""Every test is reproducible: no deadline (the machine may be slow) and no randomness of hypothesis's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("afresh", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("afresh")


@pytest.fixture(autouse=True)
def private_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the ledger of whoever runs it."""
    path = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("AFRESH_LEDGER", str(path))
    return path
