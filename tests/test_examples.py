"""Every Python and shell block of README.md and docs/ runs, in order, in one folder per page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from afresh.demo import _customers
from afresh.display import width

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = BLOCK.findall(page.read_text())
    if page.name == "README.md":
        assert {language for language, _ in blocks} == {"python", "sh"}
    if not blocks:
        return
    (tmp_path / "demo").mkdir()
    _customers(tmp_path / "demo" / "customers.parquet", np.random.default_rng(1))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names: dict[str, object] = {}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, str(page), "exec"), names)
        else:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_figures_of_the_readme() -> None:
    """The comparison table says what plans say."""
    import afresh

    rows = re.findall(r"^\| ([\d,]+), ([\d,]+) \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 4
    for n, k, cells in rows:
        methods = afresh.plan(int(n.replace(",", "")), int(k.replace(",", ""))).methods
        told = [re.findall(r"[\d.]+", cell) for cell in cells.split("|")[1:]]
        for name, figures in zip(("split", "paper", "jung", "stabilized"), told, strict=True):
            widths = methods[name].half_width
            assert widths is not None
            assert figures == [width(widths[mean]) for mean in (0.5, 0.01)][: len(figures)]
