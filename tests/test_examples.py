"""Every Python and shell block of README.md and docs/ runs: all pages in one folder, in any order, and each alone."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from afresh.demo.files import LEDGER, flights_file
from afresh.results.show import width

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
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    yield tmp_path
    if (started := tmp_path / "serve.pid").exists():  # of a page that failed before it stopped its service
        os.kill(int(started.read_text()), signal.SIGKILL)


def run(page: Path) -> None:
    names: dict[str, object] = {}
    with socket.socket() as probe:  # several pages may run at once
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    for language, text in [(language, text.replace("8765", port)) for language, text in examples(page)]:
        if language == "python":
            exec(compile(text, str(page), "exec"), names)
        else:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{page.name}: {done.stderr}"


@pytest.mark.parametrize("others", [OTHERS, OTHERS[::-1]], ids=["in order", "in reverse"])
@pytest.mark.usefixtures("folder")
def test_all_pages_run_in_one_folder_on_one_ledger(others: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """As a reader does who tries everything: no page may ask of another's data what its plan does not allow."""
    run(README)
    # Fresh noise: "cannot tell" is 9 standard deviations of the interval's end away.
    assert "B is better" in capsys.readouterr().out
    for page in others:
        run(page)


@pytest.mark.parametrize("page", [p for p in OTHERS if p.stem != "models"], ids=lambda page: page.stem)
@pytest.mark.usefixtures("folder")
def test_a_page_needs_no_other(page: Path) -> None:
    """All but models.md, which is slow and keeps ledgers of its own."""
    run(page)


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
    """The comparison table says what plans say."""
    import afresh

    rows = re.findall(r"^\| ([\d,]+), ([\d,]+) \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 4
    for n, k, cells in rows:
        methods = afresh.plan(int(n.replace(",", "")), int(k.replace(",", ""))).methods
        told = [re.findall(r"[\d.]+", cell) for cell in cells.split("|")[1:]]
        asked = int(k.replace(",", ""))
        in_rounds = afresh.plan(int(n.replace(",", "")), asked, rounds=min(10, asked))
        found = [methods[name].half_width for name in ("rounds", "paper", "jung", "stabilized")]
        for widths, figures in zip([*found, {m: in_rounds.half_width(m) for m in (0.5, 0.01)}], told, strict=True):
            assert widths is not None
            assert figures == [width(widths[mean]) for mean in (0.5, 0.01)][: len(figures)]


def test_the_service_example_runs(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "service" / "run.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "B is better" in done.stdout or "A is better" in done.stdout or "cannot tell" in done.stdout
