"""Spark on a cluster: processes of their own hold the rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_spark_on_a_cluster() -> None:
    """A process has one Spark, so the cluster's tests run in a process of their own."""
    tests = str(Path(__file__).with_name("test_spark.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", tests]
    command += ["-k", "TestSpark and (oracle or mistaken or identity)"]
    environment = {**os.environ, "AFRESH_TEST_SPARK": "local-cluster[2,1,1024]"}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "3 passed" in done.stdout
