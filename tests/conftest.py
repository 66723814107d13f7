"""Every test is reproducible: no deadline (machines may be slow), no randomness of hypothesis's own, seeded guards."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from habits import HERE, LONGEST, THOROUGH

settings.register_profile(
    "afresh",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("AFRESH_EXAMPLES", "100")),  # tests take multiples of it, see tests/examples.py
)
settings.load_profile("afresh")

# Every commit of a ledger waits until it is on the disk. Thousands of short-lived ledgers need not: where there is
# plenty of memory that looks like a disk, tests keep their files in it. Kills are of processes, not of machines.
MEMORY = "/dev/shm"
found = os.statvfs(MEMORY) if os.access(MEMORY, os.W_OK) else None
if found and found.f_bavail * found.f_frsize > 8e9 and not found.f_flag & os.ST_NOEXEC:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)

# Where several workers share the cores, threads of linear algebra only wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Whoever wants no compiled files is asked to bear them here: tests start hundreds of processes.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


STARTED = {"spark", "postgres_url", "server", "service"}  # fixtures that start what `make quick` leaves out


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make quick` does not even import files and folders that it leaves out whole."""
    name = collection_path.relative_to(HERE).as_posix() if collection_path.is_relative_to(HERE) else ""
    left_out = f"{name}/".startswith(THOROUGH) and config.option.markexpr == "not thorough"
    return True if name and left_out else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that take long, and begin with what takes longest, lest one worker wait for another in the end.

    Those on Spark come first of all, or each worker of xdist would start its own.
    """
    for item in items:
        name = item.path.relative_to(HERE).as_posix() + item.nodeid.partition(".py")[2]
        if name.startswith(THOROUGH) or STARTED.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("thorough")
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    if "spark" in getattr(item, "fixturenames", ()):
        return -1
    name = item.path.relative_to(HERE).as_posix()
    return next((place for place, long in enumerate(LONGEST) if name.startswith(long)), len(LONGEST))


def pytest_sessionstart() -> None:
    from chance import use_streams

    use_streams()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Each test has its own chance, whatever ran before it."""
    from chance import stream

    with stream(item.nodeid, _module(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """What several tests share has its own chance too, whichever test is the first to need it."""
    from chance import stream

    if fixturedef.scope == "function":
        return (yield)
    name = f"{request.node.nodeid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"
    with stream(name, _module(request.node)):
        return (yield)


def _module(node: Any) -> Any:
    found = node.getparent(pytest.Module)
    return found and found.obj


@pytest.fixture(autouse=True)
def private_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the ledger of whoever runs it."""
    path = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("AFRESH_LEDGER", str(path))
    return path
