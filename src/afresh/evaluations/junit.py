"""JUnit XML, as pytest and most other test runners write it: an item is a test case, and passes or not.

Read by expat with every document type refused: no entity, internal or external, is ever expanded.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.parsers import expat

from afresh.evaluations.results import Results, unreadable

_NOT_PASSED = {"failure", "error", "skipped"}


class _Doctype(Exception):
    """A document type, which may declare entities."""


def read_junit(path: str | os.PathLike[str]) -> Results:
    """Test cases named classname::name; only one that neither failed nor was skipped has a score of 1."""
    parser = expat.ParserCreate()
    found: list[tuple[str, float]] = []
    inside: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            names = [attributes.get("classname", ""), attributes.get("name", "")]
            found.append(("::".join(name for name in names if name), 1.0))
        elif tag in _NOT_PASSED and inside and inside[-1] == "testcase":
            found[-1] = (found[-1][0], 0.0)
        inside.append(tag)

    def end(tag: str) -> None:
        inside.pop()

    def refuse(*_: object) -> None:
        raise _Doctype

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(Path(path).read_bytes(), True)
    except _Doctype:
        raise unreadable(path, "declares a document type", "test runners do not write one, so it is refused") from None
    except expat.ExpatError as error:
        raise unreadable(path, f"is not XML (line {error.lineno})", "write it with pytest --junitxml=PATH") from None
    if not found or not all(name for name, _ in found):
        raise unreadable(path, "has no test cases with a name", "write it with pytest --junitxml=PATH")
    return Results.of((name, score, 0) for name, score in found)
