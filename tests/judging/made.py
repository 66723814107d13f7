"""A small evaluation whose candidates are programs: what they print, leave or break is up to them."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

ITEMS = 400
RUN = """
import json, sys, types
module = types.ModuleType("candidate")
items = [json.loads(line) for line in open("items.jsonl")]
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), vars(module))
if hasattr(module, "everything"):
    module.everything(items)
with open("results.jsonl", "w") as out:
    for item in items:
        out.write(json.dumps({"id": item["id"], "score": module.solve(item)}) + "\\n")
"""
BASELINE = "def solve(item):\n    return float(item['hard'] < 0.2)\n"
PERFECT = "def solve(item):\n    return 1.0\n"
POOR = "def solve(item):\n    return float(item['hard'] < 0.1)\n"
CONFIG = """
items = "items.jsonl"
baseline = "baseline.py"
questions = 60
{more}
[evaluator]
command = ["{python}", "run.py", "{{candidate}}"]
files = ["run.py"]
seconds = 20
memory = 400_000_000
tick = 0.05
{evaluator}
"""


def others_may_run(path: str) -> bool:
    """Whether any user may execute a program, wherever it is."""
    found = Path(path).resolve()
    bits = [each.stat().st_mode & stat.S_IXOTH for each in (found, *found.parents)]
    return found.is_file() and all(bits)


def interpreter() -> str:
    """A Python that candidates may run, whoever they run as."""
    if os.geteuid():
        return sys.executable
    places = [sys.executable, *filter(None, (shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin"),))]
    for each in places:
        if others_may_run(each):
            return each
    pytest.skip("there is no Python that another user may run")


def make(folder: Path, more: str = "", evaluator: str = "", items: int = ITEMS) -> Path:
    """Everything that a steward writes; returns the configuration's path."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "items.jsonl"
    made.write_text("".join(json.dumps({"id": f"item-{i}", "hard": (i * 7 % 100) / 100}) + "\n" for i in range(items)))
    made.chmod(0o600)
    (folder / "run.py").write_text(RUN)
    (folder / "baseline.py").write_text(BASELINE)
    place = folder / "evaluation.toml"
    place.write_text(CONFIG.format(more=more, python=interpreter(), evaluator=evaluator))
    return place


def candidate(folder: Path, text: str, name: str = "candidate.py") -> Path:
    """A candidate's file in a folder of its own."""
    own = folder / f"c{len(list(folder.glob('c*')))}"
    own.mkdir()
    (own / name).write_text(text)
    return own / name
