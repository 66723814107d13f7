"""What MkDocs calls while it builds the site: pages and notebooks that are made from the code and from other pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from commands import commands_page  # noqa: E402 - found by the line above
from doors import doors_page  # noqa: E402
from notebooks import notebook_of  # noqa: E402

NOTEBOOK = '\n!!! tip "As a notebook"\n    This page is also [a Jupyter notebook]({name}.ipynb), with the same code.\n'


def on_files(files: Files, config: Any) -> Files:
    """Add the reference of commands and HTTP, and a notebook beside every tutorial."""
    made: dict[str, str] = {"reference/commands.md": commands_page(), "reference/http.md": doors_page()}
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        if page.stem != "index":
            made[f"tutorials/{page.stem}.ipynb"] = notebook_of(page.read_text())
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Name the notebook of a tutorial under its title."""
    where = Path(page.file.src_uri)
    if where.parent.name == "tutorials" and where.stem != "index":
        return re.sub(r"^(# .*\n)", lambda found: found[0] + NOTEBOOK.format(name=where.stem), markdown, count=1)
    return markdown
