"""Measure speed as ratios, side by side, and compare them with their limits.

python -m benchmarks                  everything, as Markdown tables; progress goes to stderr
python -m benchmarks small many       only these
python -m benchmarks --check          what falls short, and exit code 1 if anything does
python -m benchmarks --keep           put each table into docs/benchmarks.md as soon as it is measured
python -m benchmarks --keep --missing only those not there from the last two hours, to continue after an interruption
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import sys
import time
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.measured import Measured, show, table

ALL = (
    *(
        "startup",
        "planning",
        "small",
        "questions",
        "many",
        "dealt",
        "identity",
        "opening",
        "memory",
        "frames",
        "scoring",
    ),
    *("postgres", "spark", "chains", "processes", "threads", "peers", "service", "attacks", "pages"),
)
LARGE = ("questions", "dealt", "identity", "opening", "memory")  # whose tables have 10,000,000 rows
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- the tables begin -->", "<!-- the tables end -->"
FAILED = "failed"
RECENT = timedelta(hours=2)  # the longest time between two tables of one run, which takes about a quarter of an hour


def run(name: str, rows: int | None = None) -> list[Measured]:
    """Every line of a benchmark, with so many rows if its table is a large one. A failure is a line that says why."""
    module = importlib.import_module(f"benchmarks.{name}")
    about, load = (module.__doc__ or "").splitlines()[0], os.getloadavg()[0]
    place = f"{ALL.index(name) + 1} of {len(ALL)}"
    print(f"{name} ({place}), at a load of {load:.1f}: {about}", file=sys.stderr, flush=True)
    found = list[Measured]()
    try:
        show(module.measure(rows=rows) if rows is not None and name in LARGE else module.measure(), found)
    except Exception as error:  # the others are measured all the same
        traceback.print_exc()
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200].replace("|", "/")
        found.append(Measured(f"{name}: {FAILED}", float("inf"), 0.0, told))
    return found


def section(name: str, found: list[Measured], loads: tuple[float, float], seconds: float, rows: int | None) -> str:
    """A benchmark's table, with when and on what it was measured."""
    about = (importlib.import_module(f"benchmarks.{name}").__doc__ or "").splitlines()[0]
    where = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    least, most = sorted(loads)
    fewer = f", {rows:,} rows in place of 10,000,000" if rows is not None and name in LARGE else ""
    when = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {where}, a load of {least:.1f} to {most:.1f}, {seconds:.0f} s{fewer}"
    )
    return f"**{name}.** {about} Measured on {when}.\n\n{table(found)}"


def keep(name: str, text: str) -> None:
    """Put a benchmark's section into the page, in place of the one before."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    kept, _, tail = rest.partition(END)
    sections = {**_sections(kept), name: text}
    body = "\n\n".join(f"<!-- {each} -->\n{sections[each]}" for each in ALL if each in sections)
    PAGE.write_text(f"{head}{BEGIN}\n{body}\n{END}{tail}")


def _sections(kept: str) -> dict[str, str]:
    """The sections that are there, by name."""
    parts = re.split(r"<!-- (\w+) -->\n", kept)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _is_recent(section: str) -> bool:
    """Whether a table is from this run, perhaps an interrupted one, and not from an earlier one of the same day."""
    found = re.search(r"Measured on (\d{4}-\d\d-\d\d \d\d:\d\d) UTC", section)
    return found is not None and datetime.now(UTC) - datetime.fromisoformat(f"{found[1]}+00:00") < RECENT


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(ALL)}")
    parser.add_argument("--check", action="store_true", help="print what falls short, and exit with 1 if anything does")
    parser.add_argument("--keep", action="store_true", help="put the tables into docs/benchmarks.md, one by one")
    parser.add_argument(
        "--missing", action="store_true", help="only what docs/benchmarks.md does not have from the last two hours"
    )
    parser.add_argument("--rows", type=int, help=f"of the large tables, of {', '.join(LARGE)}")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.names if name not in ALL]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
    names = chosen.names or ALL
    if chosen.missing:
        there = _sections(PAGE.read_text().partition(BEGIN)[2].partition(END)[0])
        names = [name for name in names if not _is_recent(there.get(name, ""))]
    short, start = False, time.monotonic()
    for name in names:
        before, begun = os.getloadavg()[0], time.monotonic()
        found = run(name, chosen.rows)
        loads, seconds = (before, os.getloadavg()[0]), time.monotonic() - begun
        print(f"  {name} took {seconds:.0f} s", file=sys.stderr, flush=True)
        if chosen.keep:
            keep(name, section(name, found, loads, seconds, chosen.rows))
        told = [line for line in found if not line.holds] if chosen.check else found
        short = short or not all(line.holds for line in found)
        if told:
            print(section(name, told, loads, seconds, chosen.rows), end="\n\n", flush=True)
    print(f"all took {(time.monotonic() - start) / 60:.0f} minutes", file=sys.stderr, flush=True)
    if chosen.check and not short:
        print("every limit holds")
    sys.exit(chosen.check and short)


if __name__ == "__main__":
    main()
