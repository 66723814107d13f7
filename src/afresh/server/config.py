"""`afresh.toml`: what is served. Every mistake is reported with its line on reading, before any data is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from afresh import checks
from afresh.boards.rules import RULES, Rules, check_rules
from afresh.errors import AfreshError
from afresh.guard.open import check_opening
from afresh.judging.settings import Settings, evaluation_of
from afresh.losses import Loss, make_loss
from afresh.server.keys import check_keys
from afresh.settings.reader import Reader, as_given, shares, texts, words
from afresh.wire.arguments import to_loss

_PLAN = (
    *("questions", "confidence", "method", "answers", "rounds", "typical", "open", "exam", "promise"),
    *("disagreement", "deviation", "allow_wide", "new_rows"),
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column's entry in the data dictionary."""

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
    dates: str | None = None
    """How a CSV file writes dates."""
    description: str = ""
    wishes: Mapping[str, Any] = field(default_factory=dict)
    """The plan: what `afresh.open` takes."""
    shares: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    label: str | None = None
    loss: Loss | None = None
    classes: tuple[Any, ...] | None = None
    id: str | None = None
    place: str = ""
    """Its place in the configuration, for messages."""
    download: bool = True
    """Whether the service hands out open rows, and the features of a holdout, which analysts hold in any case."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request, and one token, may ask for."""

    body: int = 400_000
    """The most bytes in a request."""
    predictions: int = 100_000_000
    """The most bytes in a request with predictions."""
    batch: int = 1000
    """The most questions in one request."""
    requests: int = 6000
    """The most requests a token may make in a minute, in every worker."""
    scans: int = 64
    """The number of requests that are answered at once; the others wait."""
    seconds: float = 60.0
    """How long a request waits for its answer, and how long the service waits for a request's body."""
    headers: float = 20.0
    """How long the service waits for a request's headers."""


@dataclass(frozen=True, slots=True)
class Jwt:
    """An identity provider whose signed tokens are accepted in addition to the service's own."""

    keys: str
    """Its key set (JWKS): a file, or an https address, or an http one on this machine."""
    issuer: str
    audience: str
    role: str = "afresh_role"
    """The claim that holds the role."""
    datasets: str = "afresh_datasets"


@dataclass(frozen=True, slots=True)
class BoardSettings:
    """A board on a holdout."""

    name: str
    holdout: str
    rules: Rules
    description: str = ""
    public: bool = False
    """Whether its table can be read without a token."""


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a service needs to know."""

    datasets: Mapping[str, Dataset]
    state: str = "afresh-state"
    ledger: str = ""
    """A file, or a postgresql:// address; by default, a file in the state directory."""
    host: str = "127.0.0.1"
    port: int = 8765
    tick: float = 0.05
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    jwt: Jwt | None = None
    boards: Mapping[str, BoardSettings] = field(default_factory=dict)
    evaluations: Mapping[str, Settings] = field(default_factory=dict)
    """Items and an evaluator that the service runs."""
    origins: tuple[str, ...] = ()
    """Web pages that may call the service from a browser; none by default."""
    hosts: tuple[str, ...] = ()
    """The names at which agents reach `/mcp`, besides `host` and those of this machine."""


def read_config(path: str | os.PathLike[str]) -> Config:
    """Read the configuration in a file; paths in it are relative to its folder."""
    reader = _Reader(path)
    config = reader.config(reader.document)
    reader.finish()
    return config


class _Reader(Reader):
    """Reads the tables of a configuration."""

    def config(self, document: Mapping[str, Any]) -> Config:
        names = ("datasets", "holdouts", "boards", "evaluations", "limits", "jwt")
        sections = {key: document.get(key, {}) for key in names}
        rest = {key: value for key, value in document.items() if key not in sections}
        top = self.take(
            (),
            rest,
            {
                "state": self.path,
                "ledger": self.path_or_address,
                "host": words,
                "port": lambda key, value: checks.whole(key, value, 0, 65535),
                "workers": lambda key, value: checks.whole(key, value, 1, 64),
                "tick": lambda key, value: checks.number(
                    key, value, "a number of seconds from 0 to 60", least=0, most=60
                ),
                "origins": texts,
                "hosts": _hosts,
                **dict.fromkeys(sections, words),  # named in the list of keys
            },
        )
        datasets = {}
        for kind in ("datasets", "holdouts"):
            for name, table in self.tables((kind,), sections[kind]).items():
                if name in datasets:
                    self.wrong((kind, name), "the name is taken; datasets and holdouts need distinct names.")
                datasets[name] = self.dataset((kind, name), table, holdout=kind == "holdouts")
        state = top.get("state", str(self.place.parent / "afresh-state"))
        ledger = top.get("ledger", os.path.join(state, "ledger.sqlite"))
        evaluations = {}
        for name, table in self.tables(("evaluations",), sections["evaluations"]).items():
            if name in datasets:
                self.wrong(("evaluations", name), "the name is taken; evaluations and datasets need distinct names.")
            own = os.path.join(state, "evaluations", name)
            evaluations[name] = evaluation_of(self, ("evaluations", name), table, own, ledger)
        if not datasets and not evaluations and not self.mistakes:
            self.wrong((), 'nothing to serve; add a table [datasets.NAME] with data = "rows.parquet".')
        limits = Limits(**self.take(("limits",), sections["limits"], _LIMITS))
        jwt = None
        if "jwt" in document:
            readers = {**{each.name: words for each in fields(Jwt)}, "keys": self._keys}
            given = self.take(("jwt",), sections["jwt"], readers)
            if missing := {"keys", "issuer", "audience"} - given.keys():
                self.wrong(("jwt",), f"{', '.join(sorted(missing))} must be given.")
            else:
                jwt = Jwt(**given)
        boards = {
            name: found
            for name, table in self.tables(("boards",), sections["boards"]).items()
            if (found := self.board(("boards", name), table, datasets)) is not None
        }
        made = {**top, "state": state, "ledger": ledger, "limits": limits, "jwt": jwt, "boards": boards}
        return Config(datasets, **made, evaluations=evaluations)

    def board(
        self, path: tuple[str, ...], table: Mapping[str, Any], datasets: Mapping[str, Dataset]
    ) -> BoardSettings | None:
        given = self.take(
            path,
            table,
            {"holdout": words, "description": words, "public": checks.flag, **dict.fromkeys(RULES, as_given)},
        )
        holdouts = [name for name, each in datasets.items() if each.label is not None]
        if given.get("holdout") not in holdouts:
            there = ", ".join(holdouts) or "none"
            self.wrong((*path, "holdout") if "holdout" in table else path, f"holdout must be one of: {there}.")
            return None
        try:
            rules = check_rules(**{key: given.pop(key) for key in RULES if key in given})
        except AfreshError as error:
            self.wrong(path, error)
            return None
        return BoardSettings(path[-1], rules=rules, **given)

    def dataset(self, path: tuple[str, ...], table: Mapping[str, Any], *, holdout: bool) -> Dataset:
        own: dict[str, Callable[..., Any]] = {
            "data": self.path_or_address,
            "table": words,
            "dates": words,
            "shares": shares,
        }
        own |= {"description": words, "download": checks.flag}
        models = {
            "label": words,
            "loss": lambda key, value: make_loss(to_loss(value)),
            "classes": lambda key, value: checks.listed(key, value, "a list of the labels' classes"),
            "id": words,
        }
        readers = {**own, **(models if holdout else {}), **dict.fromkeys(_PLAN, as_given), "columns": as_given}
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
        for name in (name for name, column in columns.items() if column.hidden and holdout):
            for what, why in (("label", "scores are based on it"), ("id", "predictions name rows by it")):
                if str(given.get(what)).lower() == name.lower():
                    self.wrong((*path, "columns", name), f"the {what} cannot be hidden: {why}.")
        wishes = {key: given.pop(key) for key in _PLAN if key in given}
        if wishes.get("questions") == "no end":
            wishes["questions"] = None
        self.check_plan(path, wishes)
        return Dataset(path[-1], **given, wishes=wishes, columns=columns, place=self.at(path))

    def _keys(self, key: str, value: Any) -> str:
        found = self.path_or_address(key, value)
        return check_keys(found) if "://" in found else found

    def check_plan(self, path: tuple[str, ...], wishes: Mapping[str, Any]) -> None:
        """Check that such a plan is possible; each value on its own first, to find out which ones are wrong."""
        known = len(self.mistakes)
        for some in (*({key: value} for key, value in wishes.items()), wishes):
            if some is wishes and len(self.mistakes) > known:
                return
            try:
                check_opening("", **some)
            except AfreshError as error:
                self.wrong((*path, *list(some)[:1]), error)


def _hosts(key: str, value: Any) -> tuple[str, ...]:
    for name in (names := texts(key, value)):
        if not _HOST.fullmatch(name):
            raise checks.wrong(key, name, "a name such as afresh.example.com, without https:// and without a port")
    return tuple(map(str.lower, names))


_HOST = re.compile(r"[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]")
_COLUMN: Mapping[str, Callable[..., Any]] = {
    "description": words,
    "unit": words,
    "bounds": checks.bounds,
    "categories": lambda key, value: checks.listed(key, value, "a list of strings or numbers"),
    "hidden": checks.flag,
}
_LIMITS: Mapping[str, Callable[..., Any]] = {
    **{each.name: lambda key, value: checks.whole(key, value, 1) for each in fields(Limits)},
    **dict.fromkeys(
        ("seconds", "headers"), lambda key, value: checks.number(key, value, "a number of seconds above 0", above=0)
    ),
}
