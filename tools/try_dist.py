"""Install what `make dist` built in clean environments, bare and with every extra, and ask a question in each.

    python tools/try_dist.py                              # every extra on this Python
    python tools/try_dist.py --python python3.12 --python python3.13 --extra "" --extra sklearn

Each environment is made in a temporary folder and removed. What is not tried because a package has no build for a
Python is said, and counts as a failure.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What each extra is for, in a line that fails without it.
_ASKED = "afresh.open({}, 2, rounds=1, ledger=':memory:').ask('x < 5')"
USES = {
    "": "assert afresh.plan(1000, 10).half_width() < 0.5",
    "frames": "import pandas; " + _ASKED.format("pandas.DataFrame({'x': range(99)})"),
    "ibis": "import ibis; " + _ASKED.format("ibis.memtable({'x': list(range(99))})"),
    "inspect": "import inspect_ai",
    "mcp": "import mcp",
    "lab": "from afresh.lab.analysts import ANALYSTS; from afresh.lab import figures",
    "optuna": "import afresh.integrations.optuna",
    "plot": "import matplotlib, afresh.demo.pictures",
    "postgres": "import psycopg, afresh.ledger.postgres",
    "client": "import httpx, afresh.client.connect",
    "server": "import afresh.server.app",
    "sklearn": "import afresh.integrations.sklearn, afresh.learn",
    "spark": "import pyspark, afresh.engines.remote.spark",
    "all": "import afresh.server.app, afresh.integrations.sklearn, afresh.integrations.optuna",
}
ASK = """
import json, os, subprocess, sys
from pathlib import Path
import afresh

assert Path(sys.prefix) in Path(afresh.__file__).parents, afresh.__file__
afresh.datasets.flights(2000).write_parquet("flights.parquet")
program = str(Path(sys.prefix) / "bin" / "afresh")
command = [program, "ask", "flights.parquet", "cancelled", "--questions", "5", "--json"]
told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
assert told["low"] <= told["value"] <= told["high"]
"""


def extras() -> list[str]:
    """None, and every extra of pyproject.toml."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return ["", *found]


def built() -> tuple[Path, Path]:
    """The newest wheel and source distribution in dist/."""
    wheels, sources = (sorted((ROOT / "dist").glob(each), key=os.path.getmtime) for each in ("*.whl", "*.tar.gz"))
    if not wheels or not sources:
        sys.exit("dist/ has no wheel and source distribution; run make dist first.")
    return wheels[-1], sources[-1]


def tried(python: str, archive: Path, extra: str) -> str | None:
    """What went wrong in a clean environment, or None."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "env"
        bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        bare["AFRESH_LEDGER"] = str(Path(folder) / "ledger.sqlite")
        wanted = f"{archive}[{extra}]" if extra else str(archive)
        inside = str(environment / "bin" / "python")
        for command in (
            [python, "-m", "venv", str(environment)],
            [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted],
            [inside, "-c", ASK],
            [inside, "-c", f"import afresh; {USES.get(extra, 'pass')}"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=bare)
            if done.returncode != 0:
                said = [line for line in (done.stderr or done.stdout).strip().splitlines() if "notice" not in line]
                return re.sub(r"\s+", " ", said[-1] if said else f"exit code {done.returncode}")[:200]
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Try everything that was asked for; the number of failures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", help="an interpreter; may be repeated (default: this one)")
    parser.add_argument("--extra", action="append", help='an extra, "" for none; may be repeated (default: each)')
    chosen = parser.parse_args(arguments)
    wheel, source = built()
    failures = 0
    for python in chosen.python or [sys.executable]:
        if shutil.which(python) is None:
            print(f"{python}: not found", flush=True)
            failures += 1
            continue
        for archive, extra in [(source, ""), *((wheel, each) for each in chosen.extra or extras())]:
            start = time.monotonic()
            wrong = tried(python, archive, extra)
            failures += wrong is not None
            name = f"{Path(python).resolve().name} {archive.name}" + (f"[{extra}]" if extra else "")
            outcome = wrong or "installs and answers"
            print(f"{name}: {outcome} ({time.monotonic() - start:.0f} s)", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main())
