"""Starting: `import afresh` compared with numpy and duckdb; `afresh --help` and `afresh plan` with typer and its help.

Fresh processes, taken in turns, by the CPU time of each. All have their bytecode, as installed packages do.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.measured import Measured, compared

IMPORT, HELP, PLAN = 1.1, 1.5, 2.5
WAYS = {
    "numpy, duckdb": ["-c", "import numpy, duckdb"],
    "afresh": ["-c", "import afresh"],
    "used": ["-c", "from afresh import open, plan"],
    "typer": ["-c", "import typer, typer.rich_utils"],  # the latter imports all of rich that help takes
    "help": ["-m", "afresh.cli", "--help"],
    "plan": ["-m", "afresh.cli", "plan", "--rows", "100000", "--questions", "1000"],
}


def _seconds(arguments: list[str], bytecode: str) -> float:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rounds: int = 11) -> Iterator[Measured]:
    """The least of each."""
    best = dict.fromkeys(WAYS, float("inf"))
    with tempfile.TemporaryDirectory() as bytecode:
        for turn in range(rounds + 1):
            for name, arguments in WAYS.items():
                taken = _seconds(arguments, bytecode)
                best[name] = min(best[name], taken) if turn else best[name]  # the first compiles and warms the disk
    yield compared("`import afresh`, to numpy and duckdb", best["afresh"], best["numpy, duckdb"], IMPORT)
    yield compared("`from afresh import open, plan`, to numpy and duckdb", best["used"], best["numpy, duckdb"])
    yield compared("`afresh --help`, to importing typer and rich", best["help"], best["typer"], HELP)
    yield compared("`afresh plan`, to importing typer and rich", best["plan"], best["typer"], PLAN)
