"""Every test here has runs of its own: those of other tests and other evaluators of this user cannot hold it up."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A temporary folder for runs, which a candidate that is another user can pass through."""
    home = tempfile.mkdtemp(prefix="afresh-test-runs-")
    os.chmod(home, 0o711)
    monkeypatch.setattr(tempfile, "tempdir", home)
    monkeypatch.setenv("TMPDIR", home)
    yield
    shutil.rmtree(home, ignore_errors=True)
