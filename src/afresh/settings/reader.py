"""Reads tables of a TOML file and continues after a mistake, to report all mistakes at once."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from afresh import checks
from afresh.errors import AfreshError, InvalidArgument
from afresh.escaping import visible
from afresh.settings.places import line_of, lines_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Mistakes(InvalidArgument):
    """All mistakes in a file, one per line."""

    def __str__(self) -> str:
        """Each mistake made safe to print on a line of its own."""
        return "\n".join(visible(words) for words in self.args)


class Reader:
    """One file. Paths in it are relative to its folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read the file; `document` is its parsed content."""
        self.place = Path(path)
        try:
            text = self.place.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:  # the name may be invalid, and the bytes may not be text
            why = getattr(error, "strerror", None) or "it is not text in UTF-8"
            raise InvalidArgument(f"{self.place} cannot be read: {why}.") from None
        try:
            self.document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"at line (\d+)", str(error))
            raise Mistakes(f"{self.place}:{found[1] if found else len(text.splitlines())}: {error}.") from None
        self._lines = lines_of(text)
        self.mistakes: list[tuple[int, str]] = []

    def finish(self) -> None:
        """Report all mistakes, if there are any."""
        if self.mistakes:
            raise Mistakes(*(words for _, words in sorted(self.mistakes)))

    def wrong(self, path: tuple[str, ...], words: object) -> None:
        """Note a mistake. A message that begins with the name of its key continues the path to it."""
        said = str(words)
        said = said.removeprefix(path[-1]) if path and said.startswith(f"{path[-1]} == ") else f": {said}"
        self.mistakes.append((line_of(self._lines, path), f"{self.at(path)}: {'.'.join(path)}{said}"))

    def at(self, path: tuple[str, ...]) -> str:
        """The file and the line of a key."""
        return f"{self.place}:{line_of(self._lines, path)}"

    def take(self, path: tuple[str, ...], table: Mapping[str, Any], readers: Mapping[str, Callable[..., Any]]) -> Any:
        """The known keys of a table, each read by its reader; unknown and wrong ones are noted and left out."""
        found: dict[str, Any] = {}
        if not isinstance(table, Mapping):
            self.wrong(path, f"must be a table: [{'.'.join(path)}].")
            return found
        for key, value in table.items():
            if key not in readers:
                near = checks.meant(key, readers)
                self.wrong((*path, key), f"unknown key; the known keys are {', '.join(readers)}{near}.")
                continue
            try:
                found[key] = readers[key](key, value)
            except AfreshError as error:
                self.wrong((*path, key), error)
        return found

    def tables(self, path: tuple[str, ...], value: Any, named: bool = True) -> dict[str, Mapping[str, Any]]:
        """The tables inside a table, by name."""
        if not isinstance(value, Mapping):
            self.wrong(path, f"must be a table: [{'.'.join(path)}.NAME].")
            return {}
        found = {}
        for name, table in value.items():
            if named and not NAME.fullmatch(name):
                self.wrong(
                    (*path, name), "a name consists of at most 64 letters, digits, dots, hyphens and underscores."
                )
            elif not isinstance(table, Mapping):
                self.wrong((*path, name), "must be a table.")
            else:
                found[name] = table
        return found

    def path(self, key: str, value: Any) -> str:
        """A path relative to the file's folder."""
        return str(self.place.parent / os.path.expanduser(words(key, value)))

    def path_or_address(self, key: str, value: Any) -> str:
        """A path relative to the file's folder, or an address unchanged."""
        return words(key, value) if "://" in words(key, value) else self.path(key, value)


def words(key: str, value: Any) -> str:
    """A non-empty string."""
    return checks.text(key, value, "text")


def as_given(key: str, value: Any) -> Any:
    """A value that is checked elsewhere."""
    return value


def texts(key: str, value: Any) -> tuple[str, ...]:
    """A list of strings."""
    return tuple(words(key, each) for each in checks.listed(key, value, "a list of strings"))


def shares(key: str, value: Any) -> dict[str, int]:
    """A table of analysts and the number of answers each may have."""
    if not isinstance(value, Mapping):
        raise checks.wrong(key, value, "a table of names and numbers of answers")
    return {checks.analyst(name): checks.whole(f"the share of {name}", share, 0) for name, share in value.items()}
