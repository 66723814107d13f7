"""`afresh.toml`: what is served. Every mistake is told with its line when it is read, before any data are opened."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from afresh import checks
from afresh.errors import AfreshError, InvalidArgument
from afresh.guard.open import check_opening
from afresh.losses import Loss, make_loss
from afresh.server.places import line_of, lines_of
from afresh.wire.arguments import to_loss

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PLAN = (
    *("questions", "confidence", "method", "answers", "rounds", "typical", "open", "exam", "promise"),
    *("disagreement", "deviation", "allow_wide"),
)


@dataclass(frozen=True, slots=True)
class Column:
    """What the data dictionary says of a column."""

    description: str = ""
    unit: str = ""
    bounds: tuple[float, float] | None = None
    categories: tuple[Any, ...] | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows behind a guard; with a `label`, a holdout."""

    name: str
    data: str
    table: str | None = None
    description: str = ""
    wishes: Mapping[str, Any] = field(default_factory=dict)
    """The plan: what `afresh.open` takes."""
    shares: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    label: str | None = None
    loss: Loss | None = None
    classes: tuple[Any, ...] | None = None
    id: str | None = None
    download: bool = True
    """Whether the service hands out open rows, and the features of a holdout, which analysts hold in any case."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request, and one token, may ask for."""

    body: int = 1_000_000
    """Bytes of a request."""
    predictions: int = 100_000_000
    """Bytes of a request with predictions."""
    batch: int = 1000
    """Questions of one request."""
    requests: int = 6000
    """Requests of a token in a minute, in every worker."""
    scans: int = 64
    """Requests that are answered at once; the others wait."""
    seconds: float = 60.0
    """How long a request waits for its answer."""


@dataclass(frozen=True, slots=True)
class Jwt:
    """An identity provider whose signed tokens are taken beside the service's own."""

    keys: str
    """Its key set (JWKS): a file, or an https address."""
    issuer: str
    audience: str
    role: str = "afresh_role"
    """The claim that says the role."""
    datasets: str = "afresh_datasets"


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a service needs to know."""

    datasets: Mapping[str, Dataset]
    state: str = "afresh-state"
    ledger: str = ""
    """A file, or a postgresql:// address; in the state directory unless it is given."""
    host: str = "127.0.0.1"
    port: int = 8765
    tick: float = 0.05
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    jwt: Jwt | None = None
    origins: tuple[str, ...] = ()
    """Web pages that may call the service from a browser; none by default."""


class Mistakes(InvalidArgument):
    """All mistakes of a configuration, one a line."""


def read_config(path: str | os.PathLike[str]) -> Config:
    """The configuration in a file; paths in it are meant from its folder."""
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise InvalidArgument(f"{place} cannot be read: {why}.") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise Mistakes(f"{place}:{found[1] if found else len(text.splitlines())}: {error}.") from None
    reader = _Reader(place, lines_of(text))
    config = reader.config(document)
    if reader.mistakes:
        raise Mistakes("\n".join(words for _, words in sorted(reader.mistakes)))
    return config


class _Reader:
    """Reads tables, and goes on after a mistake, so that all are told at once."""

    def __init__(self, place: Path, lines: dict[tuple[str, ...], int]) -> None:
        self.place, self.lines = place, lines
        self.mistakes: list[tuple[int, str]] = []

    def wrong(self, path: tuple[str, ...], words: object) -> None:
        line = line_of(self.lines, path)
        self.mistakes.append((line, f"{self.place}:{line}: {'.'.join(path)}: {words}"))

    def take(self, path: tuple[str, ...], table: Mapping[str, Any], readers: Mapping[str, Callable[..., Any]]) -> Any:
        """The known keys of a table, each by its reader; what is unknown or wrong is noted and left out."""
        found = {}
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

    def config(self, document: Mapping[str, Any]) -> Config:
        sections = {key: document.get(key, {}) for key in ("datasets", "holdouts", "limits", "jwt")}
        rest = {key: value for key, value in document.items() if key not in sections}
        top = self.take(
            (),
            rest,
            {
                "state": self._path,
                "ledger": self._place,
                "host": _words,
                "port": lambda key, value: checks.whole(key, value, 0, 65535),
                "workers": lambda key, value: checks.whole(key, value, 1, 64),
                "tick": lambda key, value: checks.number(key, value, "seconds from 0 to 60", least=0, most=60),
                "origins": _texts,
                **dict.fromkeys(sections, _words),  # named where keys are listed
            },
        )
        datasets = {}
        for kind in ("datasets", "holdouts"):
            for name, table in self.tables((kind,), sections[kind]).items():
                if name in datasets:
                    self.wrong((kind, name), "the name is taken; datasets and holdouts need different ones.")
                datasets[name] = self.dataset((kind, name), table, holdout=kind == "holdouts")
        if not datasets and not self.mistakes:
            self.wrong((), 'nothing is served; add a table [datasets.NAME] with data = "rows.parquet".')
        limits = Limits(**self.take(("limits",), sections["limits"], _LIMITS))
        jwt = None
        if "jwt" in document:
            given = self.take(("jwt",), sections["jwt"], {each.name: _words for each in fields(Jwt)})
            if missing := {"keys", "issuer", "audience"} - given.keys():
                self.wrong(("jwt",), f"{', '.join(sorted(missing))} must be given.")
            else:
                keys = given["keys"]
                jwt = Jwt(**{**given, "keys": keys if keys.startswith("https://") else self._path("keys", keys)})
        state = top.get("state", str(self.place.parent / "afresh-state"))
        ledger = top.get("ledger", os.path.join(state, "ledger.sqlite"))
        return Config(datasets, **{**top, "state": state, "ledger": ledger, "limits": limits, "jwt": jwt})

    def dataset(self, path: tuple[str, ...], table: Mapping[str, Any], *, holdout: bool) -> Dataset:
        own = {"data": self._place, "table": _words, "description": _words, "shares": _shares, "download": checks.flag}
        models = {
            "label": _words,
            "loss": lambda key, value: make_loss(to_loss(value)),
            "classes": lambda key, value: checks.listed(key, value, "a list of the labels' classes"),
            "id": _words,
        }
        readers = {**own, **(models if holdout else {}), **dict.fromkeys(_PLAN, _as_given), "columns": _as_given}
        given = self.take(path, table, readers)
        columns = {}
        for name, described in self.tables((*path, "columns"), given.pop("columns", {}), named=False).items():
            columns[name] = Column(**self.take((*path, "columns", name), described, _COLUMN))
        if "data" not in given:
            if "data" not in table:
                self.wrong(path, "data must be given: a file, or a postgresql:// address and table.")
            given["data"] = ""
        if holdout and "label" not in table:
            self.wrong(path, "label must be given: the column that holds the labels.")
        if holdout and given.get("label") in [name for name, column in columns.items() if column.hidden]:
            self.wrong((*path, "columns", given["label"]), "the label cannot be hidden: scores are about it.")
        wishes = {key: given.pop(key) for key in _PLAN if key in given}
        if wishes.get("questions") == "no end":
            wishes["questions"] = None
        self.check_plan(path, wishes)
        return Dataset(path[-1], **given, wishes=wishes, columns=columns)

    def check_plan(self, path: tuple[str, ...], wishes: Mapping[str, Any]) -> None:
        """Whether there could be such a plan; each value by itself first, to tell which one is wrong."""
        for some in (*({key: value} for key, value in wishes.items()), wishes):
            try:
                check_opening("", **some)
            except AfreshError as error:
                return self.wrong((*path, *list(some)[:1]), error)
        return None

    def _path(self, key: str, value: Any) -> str:
        return str(self.place.parent / os.path.expanduser(_words(key, value)))

    def _place(self, key: str, value: Any) -> str:
        """A path from the file's folder, or an address as it is."""
        return _words(key, value) if "://" in _words(key, value) else self._path(key, value)


def _words(key: str, value: Any) -> str:
    return checks.text(key, value, "text")


def _as_given(key: str, value: Any) -> Any:
    return value


def _texts(key: str, value: Any) -> tuple[str, ...]:
    return tuple(_words(key, each) for each in checks.listed(key, value, "a list of texts"))


def _shares(key: str, value: Any) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise checks.wrong(key, value, "a table of names and numbers of answers")
    return {name: checks.whole(f"the share of {name}", share, 0) for name, share in value.items()}


_COLUMN: Mapping[str, Callable[..., Any]] = {
    "description": _words,
    "unit": _words,
    "bounds": checks.bounds,
    "categories": lambda key, value: checks.listed(key, value, "a list of texts or numbers"),
    "hidden": checks.flag,
}
_LIMITS: Mapping[str, Callable[..., Any]] = {
    **{each.name: lambda key, value: checks.whole(key, value, 1) for each in fields(Limits)},
    "seconds": lambda key, value: checks.number(key, value, "a number of seconds above 0", above=0),
}
