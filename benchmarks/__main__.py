"""Measure speed as ratios, side by side, against the limits that are set.

python -m benchmarks                  all of it, as a table in Markdown; progress goes to stderr
python -m benchmarks small many       some of it
python -m benchmarks --check          what falls short, and exit code 1 if anything does
python -m benchmarks --keep           put the table into docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measured import Measured, show, table

ALL = (
    *("startup", "planning", "small", "questions", "many", "identity", "opening", "memory", "scoring"),
    *("postgres", "spark", "chains", "processes", "threads", "peers", "service", "pages"),
)
LARGE = ("questions", "many", "identity", "opening", "memory")  # whose tables have 10,000,000 rows
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- the table begins -->", "<!-- the table ends -->"


def run(name: str, rows: int | None = None) -> list[Measured]:
    """Every line of a benchmark, of so many rows if its table is a large one."""
    module = importlib.import_module(f"benchmarks.{name}")
    about, load = (module.__doc__ or "").splitlines()[0], os.getloadavg()[0]
    print(f"{name}, at a load of {load:.1f}: {about}", file=sys.stderr)
    return show(module.measure(rows=rows) if rows is not None and name in LARGE else module.measure())


def written(found: list[Measured], loads: Sequence[tuple[float, ...]]) -> str:
    """The table, with what it was measured on."""
    least, most = min(load[0] for load in loads), max(load[0] for load in loads)
    where = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    about = f"Measured on {datetime.now(UTC):%Y-%m-%d}: {where}, a load of {least:.1f} to {most:.1f}."
    return f"{about}\n\n{table(found)}"


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(ALL)}")
    parser.add_argument("--check", action="store_true", help="print what falls short, and exit with 1 if anything does")
    parser.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument("--rows", type=int, help=f"of the large tables, of {', '.join(LARGE)}")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.names if name not in ALL]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
    loads, found = [os.getloadavg()], list[Measured]()
    for name in chosen.names or ALL:
        found += run(name, chosen.rows)
        loads.append(os.getloadavg())
    short = [line for line in found if not line.holds]
    said = written(short if chosen.check else found, loads)
    if chosen.keep:
        head, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{written(found, loads)}\n{END}{rest.partition(END)[2]}")
    print(said if found and (short or not chosen.check) else "every limit holds")
    sys.exit(chosen.check and bool(short))


if __name__ == "__main__":
    main()
