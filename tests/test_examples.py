"""Every Python and shell block of README.md and docs/ runs, all pages in one folder, in three orders.

In order and in reverse, every page runs once before every other: none needs what another made.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp.client.stdio  # noqa: F401 # keeps the stderr of its import, which must outlive a single test's
import pytest

from afresh.demo.files import LEDGER, flights_file
from cli.forked import shared

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[tuple[str, str]]:
    """Its blocks, each with its language."""
    return BLOCK.findall(page.read_text())


README, *OTHERS = [page for page in PAGES if examples(page)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a newcomer is after `make demo`, with the demo's ledger and the environment activated."""
    flights_file(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AFRESH_LEDGER", str(tmp_path / "demo" / LEDGER))
    paths = [str(shared().parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(paths))
    yield tmp_path
    if (started := tmp_path / "serve.pid").exists():  # of a page that failed before it stopped its service
        os.kill(int(started.read_text()), signal.SIGKILL)


def free_port() -> str:
    """Several pages may run at once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def run(page: Path) -> None:
    names: dict[str, object] = {}
    port = free_port()
    for language, text in [(language, text.replace("8765", port)) for language, text in examples(page)]:
        if language == "python":
            exec(compile(text, str(page), "exec"), names)
        else:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{page.name}: {done.stderr}"


@pytest.mark.parametrize(
    "others",
    [OTHERS, OTHERS[::-1], OTHERS[::2] + OTHERS[1::2][::-1]],
    ids=["in order", "in reverse", "in and out"],
)
@pytest.mark.usefixtures("folder")
def test_all_pages_run_in_one_folder_on_one_ledger(others: list[Path], capfd: pytest.CaptureFixture[str]) -> None:
    """As a reader does who tries everything: no page may ask of another's data what its plan does not allow."""
    run(README)
    # Fresh deals: .032 with a standard deviation of .0014 on the rows that guess, and half of an interval is .016.
    assert "B is better" in capfd.readouterr().out
    for page in others:
        run(page)


TUTORIALS = [page for page in OTHERS if page.parent.name == "tutorials"]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_a_notebook(page: Path, folder: Path) -> None:
    """In a Jupyter kernel, and alone: what readers download is made from the page in the same way."""
    import nbformat
    from nbclient import NotebookClient

    made = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate" / "notebooks.py", page], capture_output=True, text=True, check=True
    )
    notebook = nbformat.reads(made.stdout.replace("8765", free_port()), as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert [cell.cell_type for cell in notebook.cells].count("code") == len(examples(page))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()


def test_the_readme_has_both_languages() -> None:
    assert {language for language, _ in examples(README)} == {"python", "sh"}


def anchors(page: Path) -> set[str]:
    """What its headings are called in addresses."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Those of docs/ are checked when the site is built (test_site.py)."""
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?[^)]*\)", page.read_text()):
        if "://" not in target:
            found = ROOT / target if target else page
            assert found.exists(), target
            assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


def test_figures_of_the_readme() -> None:
    """The table of the ways to ask says what plans say, to 2%."""
    import afresh

    ways: dict[str, dict[str, Any]] = {
        "`open=0.4`": {"open": 0.4},
        "`rounds=10`": {"rounds": 10},
        '`method="checked"`': {"method": "checked"},
        "`promise=True, typical=0.5`": {"promise": True, "typical": 0.5},
    }
    rows = re.findall(r"^\| [^|]*\| ([^|]*?) ?\| (±.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [said for said, _ in rows] == [*ways, ""]
    for said, cells in rows:
        for n, cell in zip((1_000, 10_000, 100_000), cells.split(" | "), strict=True):
            plan = afresh.plan(n, 100, **ways.get(said, {}))
            found = plan.half_width() if said else (plan.methods["fixed"].half_width or {})[0.5]
            assert float(cell.removeprefix("±")) == pytest.approx(found, rel=0.02), (said, n)


def test_the_service_example_runs(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "service" / "run.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "B is better" in done.stdout or "A is better" in done.stdout or "cannot tell" in done.stdout
