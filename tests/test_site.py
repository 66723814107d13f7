"""The documentation site builds without a warning, is complete, fetches nothing from elsewhere, and can be searched."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from server.browser import browser

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr  # a broken link, an anchor, a page without a place
    return folder


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = re.compile(
        r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(https?:)?//|<link[^>]*\shref=["']?(https?:)?//"""
    )
    for page in site.rglob("*.html"):
        assert not fetched.search(page.read_text()), page
        assert 'class="mermaid"' not in page.read_text(), page  # its script would be fetched
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text()), style


def test_it_can_be_searched(site: Path) -> None:
    found = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    for words, page in {
        "GroupMeans": "questions.html",
        "--dry-run": "reference/commands.html",
        "/v1/": "reference/http.html",
        "ask_many": "reference/python.html",
    }.items():
        assert any(words in each["text"] + each["title"] for each in found if each["location"].startswith(page)), words


@pytest.mark.parametrize("name", ["index.html", "explanation/faq.html"])
def test_it_can_be_searched_without_a_server(site: Path, name: str) -> None:
    """In the folder, where browsers start no workers (docs/javascripts/iframe-worker.js)."""
    wrong: list[str] = []
    with browser() as chromium:
        page = chromium.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((site / name).as_uri())
        page.locator(".md-search__input").click()
        page.locator(".md-search__input").press_sequentially("GroupMeans")
        found = page.locator(".md-search-result__item a").first
        found.wait_for()
        assert (site / "reference" / "python.html").as_uri() in (found.get_attribute("href") or "")
    assert wrong == []


def test_the_reference_has_every_command_and_name(site: Path) -> None:
    import afresh
    from afresh.cli.app import app

    commands = (site / "reference" / "commands.html").read_text()
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        assert f"afresh {name}<" in commands, name
    names = (site / "reference" / "python.html").read_text()
    rooms = {"boards", "evaluations", "integrations", "lab", "losses", "receipts", "statistics", "errors"}
    for name in {*afresh.__all__} - {"__version__"} - rooms:
        assert f'id="afresh.{name}"' in names, name
