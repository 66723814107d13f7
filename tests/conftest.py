"""Every test is reproducible: no deadline (the machine may be slow), no randomness of hypothesis's own, seeded guards."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

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


# Servers, Spark, kills, simulations, docs, thorough fuzzing, proofs by enumeration: what `make quick` leaves out.
THOROUGH = (
    *("engines/test_postgres", "engines/test_spark", "engines/test_ibis_backends", "engines/test_paths"),
    *("ledger/test_postgres", "ledger/test_analysts", "ledger/test_processes", "ledger/test_fork", "ledger/test_flips"),
    *("ledger/test_conformance.py::TestPostgres", "queries/test_fuzz", "queries/test_linear", "engines/test_like"),
    *(
        "lab/",
        "oracle/",
        "test_examples",
        "test_site",
        "test_demo",
        "test_benchmarks",
        "guard/test_attack",
        "guard/test_processors",
    ),
    *("guard/test_interrupt", "models/test_true_answers", "mechanisms/test_extreme_confidence", "theory/attack"),
    *(
        "integrations/",
        "server/",
        "agents/",
        "judging/",
        "evaluations/test_reading.py::test_inspect_end",
        "evaluations/test_reading.py::test_lm_evaluation_harness_end",
        "test_checks",
        "evaluations/test_hostile",
        "theory/paper",
        "theory/test_extremes",
        "theory/test_stability",
    ),
    *("theory/symmetrized", "theory/test_betting", "theory/test_symbols", "theory/test_checked", "theory/test_rounds"),
    *("theory/test_envelope", "guard/test_guard.py::test_renaming"),
    *("models/test_hidden.py::test_a_small_difference", "models/test_hidden.py::test_no_call_tells"),
    *(
        "models/test_holdout.py::test_rows_keep",
        "models/test_statistics.py::test_truths",
        "guard/test_first_answer.py::test_verify",
    ),
    *(
        "ledger/test_known.py::test_other",
        "planning/test_plan.py::test_half_widths",
        "cli/test_cli.py::test_as_a_process",
    ),
    *("learn/test_learn.py::test_estimator_checks", "learn/test_learn.py::test_a_"),
    *("engines/test_csv_file.py::test_long", "engines/test_identity.py::test_more_rows"),
    *("engines/test_identity.py::test_texts", "engines/test_identity.py::test_sums", "engines/test_watchdog"),
    *("evaluations/test_gate.py::test_two_processes", "queries/test_operations.py::test_both_fuzzers", "test_release"),
    # Attacks and coverage of many conversations.
    *("models/test_disagreement.py::test_an_analyst", "guard/test_rounds.py::test_simultaneous"),
    *("guard/test_noise_shown.py::test_the_noise", "guard/test_vectors.py::test_intervals_cover"),
    *("models/test_hidden.py::test_rows_without", "theory/test_theorem_t", "theory/test_binomial.py::test_miss_rates"),
    # Oracles in exact arithmetic, and plans at every corner.
    *("mechanisms/test_deviations.py::test_bounds", "mechanisms/test_endless.py::test_widths_against"),
    *("mechanisms/test_endless.py::test_plans_at", "mechanisms/test_settled.py::test_plans_at"),
    *("mechanisms/test_settled.py::test_constants", "mechanisms/test_twofold.py::test_constants"),
    *("mechanisms/test_numbers.py::test_stabilized_against", "theory/test_posterior.py::test_level_against"),
    *("planning/test_frozen.py::test_the_grids", "receipts/test_growth.py::test_a_mechanism"),
)


STARTED = {"spark", "postgres_url", "server", "service"}  # fixtures that start what `make quick` leaves out
HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make quick` does not even import files and folders that it leaves out whole."""
    name = collection_path.relative_to(HERE).as_posix() if collection_path.is_relative_to(HERE) else ""
    left_out = f"{name}/".startswith(THOROUGH) and config.option.markexpr == "not thorough"
    return True if name and left_out else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that take long. Those on Spark come first, or each worker of xdist would start its own."""
    for item in items:
        name = item.path.relative_to(HERE).as_posix() + item.nodeid.partition(".py")[2]
        if name.startswith(THOROUGH) or STARTED.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("thorough")
    items.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))


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
