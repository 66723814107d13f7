"""`evaluation.toml`: items, the first incumbent, and the evaluator's command; the service has the same tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from afresh import checks
from afresh.settings.reader import Reader, as_given, shares, texts, words

_PLAN = ("open", "exam", "questions", "confidence")


@dataclass(frozen=True, slots=True)
class Command:
    """How a candidate is run on items."""

    command: tuple[str, ...]
    """A program and its arguments; {candidate}, {items} and {results} are replaced by paths."""
    files: tuple[str, ...] = ()
    """What the command needs from the file's folder; copied to where it runs."""
    results: str = "results.jsonl"
    """Where it writes a score for every item; may contain * for parts that are not known in advance."""
    score: str | None = None
    """The name of the score, if there are several."""
    seconds: float = 600.0
    memory: int = 2_000_000_000
    processes: int = 256
    network: bool = False
    user: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    tick: float = 1.0
    """A verdict leaves this many seconds after its run began, or 2, 4, 8, ... times as many."""
    candidate: int = 50_000_000
    """The most bytes that a candidate may have."""


@dataclass(frozen=True, slots=True)
class Settings:
    """An evaluation that runs candidates itself."""

    name: str
    folder: str
    """The file's folder, from which the command's files are copied."""
    items: str
    baseline: str
    evaluator: Command
    state: str
    ledger: str
    id: str = "id"
    margin: float = 0.0
    description: str = ""
    shares: Mapping[str, int] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    """The plan's options for `afresh.evaluation`."""


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """Read the settings in the file of one evaluation."""
    reader = Reader(path)
    document = dict(reader.document)
    own = reader.take((), {key: document.pop(key) for key in ("state", "ledger") if key in document}, _places(reader))
    state = own.get("state", str(reader.place.parent / "evaluation-state"))
    found = evaluation_of(reader, (), document, state, own.get("ledger", os.path.join(state, "ledger.sqlite")))
    reader.finish()
    return found


def _places(reader: Reader) -> dict[str, Callable[..., Any]]:
    return {"state": reader.path, "ledger": reader.path_or_address}


def evaluation_of(reader: Reader, path: tuple[str, ...], table: Mapping[str, Any], state: str, ledger: str) -> Settings:
    """Read one evaluation's table in a file; the reader collects the mistakes."""
    given = reader.take(
        path,
        table,
        {
            "items": reader.path,
            "baseline": reader.path,
            "evaluator": as_given,
            "id": words,
            "margin": lambda key, value: checks.number(key, value, "from 0 to below 1", least=0, below=1),
            "description": words,
            "shares": shares,
            "open": lambda key, value: checks.between_0_and_1(key, value),
            "exam": lambda key, value: checks.number(key, value, "a share of the items", least=0, below=1),
            "questions": lambda key, value: checks.whole(key, value, 1),
            "confidence": lambda key, value: checks.between_0_and_1(key, value),
            **(_places(reader) if not path else {}),  # named in the list of keys
        },
    )
    for key, what in (("items", "a file of items"), ("baseline", "the current candidate, to be improved")):
        if key not in table:
            reader.wrong(path, f"{key} must be given: {what}.")
        elif key in given and not os.path.exists(given[key]):
            reader.wrong((*path, key), f"there is no {checks.shown(given[key])}.")
    command = _command(reader, (*path, "evaluator"), given.pop("evaluator", None))
    plan = {key: given.pop(key) for key in _PLAN if key in given}
    given |= {key: "" for key in ("items", "baseline") if key not in given}
    name = path[-1] if path else reader.place.stem
    folder = str(reader.place.parent)
    return Settings(name, folder, **given, state=state, ledger=ledger, evaluator=command, plan=plan)


def _command(reader: Reader, path: tuple[str, ...], table: Any) -> Command:
    if not isinstance(table, Mapping) or "command" not in table:
        reader.wrong(path, f'[{".".join(path)}] must say command = ["python", "run.py", "{{candidate}}"].')
        return Command(())
    given = reader.take(
        path,
        table,
        {
            "command": _arguments,
            "files": texts,
            "results": _inside,
            "score": words,
            "seconds": lambda key, value: checks.number(
                key, value, "seconds above 0, at most a day", above=0, most=86400
            ),
            "memory": lambda key, value: checks.whole(key, value, 10_000_000),
            "processes": lambda key, value: checks.whole(key, value, 1, 100_000),
            "network": checks.flag,
            "user": words,
            "environment": _environment,
            "tick": lambda key, value: checks.number(key, value, "seconds from 0 to a day", least=0, most=86400),
            "candidate": lambda key, value: checks.whole(key, value, 1),
        },
    )
    for each in given.get("files", ()):
        place = os.path.join(reader.place.parent, each)
        if os.path.isabs(each) or ".." in each.split("/") or not os.path.exists(place):
            reader.wrong((*path, "files"), f"there is no {checks.shown(each)} in the folder of this file.")
    if "user" in given and (found := user_of(given["user"])) is None:
        reader.wrong((*path, "user"), f"there is no user {checks.shown(given['user'])}.")
    elif "user" in given and found is not None and found[0] == 0:
        reader.wrong((*path, "user"), "candidates must not run as root; name a user who owns nothing.")
    return Command(**{"command": (), **given})


def user_of(name: str | None) -> tuple[int, int] | None:
    """The numbers of a user and its group; None if there is no such user."""
    try:
        import pwd

        found = pwd.getpwnam(name or "nobody")
    except (ImportError, KeyError):
        return None
    return found.pw_uid, found.pw_gid


def _arguments(key: str, value: Any) -> tuple[str, ...]:
    found = texts(key, value)
    if not found or not found[0]:
        raise checks.wrong(key, value, 'a program and its arguments, such as ["python", "run.py", "{candidate}"]')
    return found


def _inside(key: str, value: Any) -> str:
    found = words(key, value)
    if os.path.isabs(found) or ".." in found.split("/"):
        raise checks.wrong(key, value, "a path inside the folder where the command runs")
    return found


def _environment(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) and "\0" not in each for each in value.values()):
        raise checks.wrong(key, value, "a table of names and strings")
    return {checks.text(key, name, "names of variables"): each for name, each in value.items()}
