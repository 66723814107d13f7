"""Reads tables of a TOML file, and goes on after a mistake, so that all are told at once."""

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
    """All mistakes of a file, one a line."""

    def __str__(self) -> str:
        """The same, with every line safe to print."""
        return "\n".join(map(visible, str(self.args[0]).split("\n")))


class Reader:
    """One file. Paths in it are meant from its folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read it; `document` is what TOML makes of it."""
        self.place = Path(path)
        try:
            text = self.place.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:  # a name may be none, and bytes may be no text
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
        """Tell all mistakes, if there are any."""
        if self.mistakes:
            raise Mistakes("\n".join(visible(words) for _, words in sorted(self.mistakes)))

    def wrong(self, path: tuple[str, ...], words: object) -> None:
        """Note a mistake."""
        self.mistakes.append((line_of(self._lines, path), f"{self.at(path)}: {'.'.join(path)}: {words}"))

    def at(self, path: tuple[str, ...]) -> str:
        """The file and the line of a key."""
        return f"{self.place}:{line_of(self._lines, path)}"

    def take(self, path: tuple[str, ...], table: Mapping[str, Any], readers: Mapping[str, Callable[..., Any]]) -> Any:
        """The known keys of a table, each by its reader; what is unknown or wrong is noted and left out."""
        found: dict[str, Any] = {}
        if not isinstance(table, Mapping):
            self.wrong(path, f"must be a table: [{'.'.join(path)}].")
            return found
        for key, value in table.items():
            if key not in readers:
                self.wrong((*path, key), f"there is no such key; there are {', '.join(readers)}.")
                continue
            try:
                found[key] = readers[key](key, value)
            except AfreshError as error:
                self.wrong((*path, key), error)
        return found

    def tables(self, path: tuple[str, ...], value: Any, named: bool = True) -> dict[str, Mapping[str, Any]]:
        """The tables inside a table, by their names."""
        if not isinstance(value, Mapping):
            self.wrong(path, f"must be a table: [{'.'.join(path)}.NAME].")
            return {}
        found = {}
        for name, table in value.items():
            if named and not NAME.fullmatch(name):
                self.wrong((*path, name), "a name has letters, digits, dots, hyphens and underscores, at most 64.")
            elif not isinstance(table, Mapping):
                self.wrong((*path, name), "must be a table.")
            else:
                found[name] = table
        return found

    def path(self, key: str, value: Any) -> str:
        """A path, from the file's folder."""
        return str(self.place.parent / os.path.expanduser(words(key, value)))

    def path_or_address(self, key: str, value: Any) -> str:
        """A path from the file's folder, or an address as it is."""
        return words(key, value) if "://" in words(key, value) else self.path(key, value)


def words(key: str, value: Any) -> str:
    """A text."""
    return checks.text(key, value, "text")


def as_given(key: str, value: Any) -> Any:
    """What is checked elsewhere."""
    return value


def texts(key: str, value: Any) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(words(key, each) for each in checks.listed(key, value, "a list of texts"))


def shares(key: str, value: Any) -> dict[str, int]:
    """A table of analysts and their numbers of answers."""
    if not isinstance(value, Mapping):
        raise checks.wrong(key, value, "a table of names and numbers of answers")
    return {name: checks.whole(f"the share of {name}", share, 0) for name, share in value.items()}
