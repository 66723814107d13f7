"""A tutorial as a Jupyter notebook, from the same source: its Markdown page.

python docs/generate/notebooks.py docs/tutorials/analyst.md > analyst.ipynb
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)


def cells_of(page: str) -> list[tuple[str, str]]:
    """The parts of a page in order, each with its kind: `markdown`, `python` or `sh`."""
    cells, end = [], 0
    for found in BLOCK.finditer(page):
        cells += [("markdown", page[end : found.start()]), (found[1], found[2])]
        end = found.end()
    cells.append(("markdown", page[end:]))
    return [(kind, text.strip("\n")) for kind, text in cells if text.strip()]


def notebook_of(page: str) -> str:
    """The notebook of a page, as JSON; without outputs, which are the reader's own."""
    cells: list[dict[str, object]] = []
    for number, (kind, text) in enumerate(cells_of(page)):
        if kind == "markdown":
            text = re.sub(r"\]\((?!https?:|#)([^)\s]+?)\.md(#[^)]*)?\)", r"](\1.html\2)", text)
            cells.append({"cell_type": "markdown", "metadata": {}, "id": f"cell-{number}", "source": text})
        else:
            source = text if kind == "python" else f"%%bash\n{text}"
            cell = {"cell_type": "code", "metadata": {}, "id": f"cell-{number}", "source": source}
            cells.append(cell | {"execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


if __name__ == "__main__":
    print(notebook_of(Path(sys.argv[1]).read_text()))
