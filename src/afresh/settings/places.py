"""Where in a TOML file a value was written, to report a mistake with its line."""

from __future__ import annotations

import re

_TABLE = re.compile(r"\s*\[\[?\s*(.+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")

Path = tuple[str, ...]


def lines_of(text: str) -> dict[Path, int]:
    """The line of every table and key, from 1; a key inside an inline table has the line of that table's key."""
    found: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TABLE.match(line):
            table = _parts(match[1])
            _note(found, table, number)
        elif match := _KEY.match(line):
            _note(found, (*table, *_parts(match[1])), number)
    return found


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of a key, or of the nearest table around it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _parts(name: str) -> Path:
    return tuple(part.strip("\"'") for part in _PART.findall(name))


def _note(found: dict[Path, int], path: Path, number: int) -> None:
    for length in range(1, len(path) + 1):
        found.setdefault(path[:length], number)
