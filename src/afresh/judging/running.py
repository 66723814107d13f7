"""One run of the steward's evaluator: a candidate, some items, a separate process, and a score for every item."""

from __future__ import annotations

import fnmatch
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afresh.errors import AfreshError, DataError, EngineError
from afresh.evaluations.reading import as_given
from afresh.evaluations.results import Results
from afresh.judging.files import Files
from afresh.judging.settings import Settings, user_of

_CONFINE = os.path.join(os.path.dirname(__file__), "confine.py")  # not imported: it is a program for POSIX
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SHOWN = 2000  # the most characters quoted from a failed command
_LARGEST = 200_000_000  # the most bytes in any file that a command writes, including its output
_RESULTS = 100_000_000  # the most bytes of results that are read
_GRACE = 60.0  # seconds beyond its own limit that the confined program may take to end


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended. Its output is in two of the steward's files."""

    ended: str
    """One of exit, signal, time, memory or refused."""
    code: int
    seconds: float
    alone: bool
    """Whether it ran as another user, who can neither see nor change anything on the machine."""
    out: str
    err: str
    results: Results | None
    wrong: str = ""
    """Why there are no results, in words, for the steward or, if the items are open, for the candidate's author."""


def run(settings: Settings, files: Files, items: Sequence[Mapping[str, Any]], log: str) -> Ran:
    """Run the evaluator on items. It never raises because of what a candidate does, however the run ends.

    `log` is where the output is kept for the steward; `.out` and `.err` are appended.
    """
    with tempfile.TemporaryDirectory(prefix="afresh-run-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        candidate = _lay_out(settings, files, items, folder)
        names = {"{candidate}": candidate, "{items}": "items.jsonl", "{results}": settings.evaluator.results}
        command = [_filled(each, names) for each in settings.evaluator.command]
        report = _confined(settings, command, folder, log)
        ended, code = str(report["ended"]), int(report["code"])
        found, wrong = None, _why(settings, report)
        if not wrong:
            try:
                found = _results(settings, folder)
            except AfreshError as error:
                wrong = str(error)
            except Exception as error:  # raised by anything that reads a file that a candidate may have written
                wrong = f"its results cannot be read ({type(error).__name__})."
        _let_go(folder)
    seconds, alone = float(report["seconds"]), bool(report["alone"])
    return Ran(ended, code, seconds, alone, f"{log}.out", f"{log}.err", found, wrong)


def _lay_out(settings: Settings, files: Files, items: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Put everything into the folder; returns the candidate's path there."""
    for each in settings.evaluator.files:
        source, target = Path(settings.folder, each), folder / each
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    candidate = files.write(folder)
    lines = (json.dumps(dict(item), ensure_ascii=True, default=str) for item in items)
    (folder / "items.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (folder / settings.evaluator.results).parent.mkdir(parents=True, exist_ok=True)
    if (user := _other_user(settings)) is not None:
        for place, _, names in os.walk(folder):
            for name in (place, *(os.path.join(place, each) for each in names)):
                os.chown(name, *user, follow_symlinks=False)
    return candidate


def _other_user(settings: Settings) -> tuple[int, int] | None:
    """The user that the command runs as; None for this user, where it cannot be another."""
    return user_of(settings.evaluator.user) if hasattr(os, "geteuid") and os.geteuid() == 0 else None


def _filled(argument: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        argument = argument.replace(name, value)
    return argument


def _confined(settings: Settings, command: list[str], folder: Path, log: str) -> dict[str, Any]:
    evaluator, user = settings.evaluator, _other_user(settings)
    spec = {
        "command": command,
        "folder": str(folder),
        "environment": {"PATH": PATH, "LANG": "C.UTF-8", **evaluator.environment},
        "uid": None if user is None else user[0],
        "gid": None if user is None else user[1],
        "seconds": evaluator.seconds,
        "memory": evaluator.memory,
        "processes": evaluator.processes,
        "file_size": _LARGEST,
        "network": evaluator.network,
        "secrets": [os.path.abspath(each) for each in (settings.items, settings.state) if "://" not in each],
    }
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
    heard, told = os.pipe()
    streams = [os.open(f"{log}{end}", flags, 0o600) for end in (".out", ".err")]
    try:
        launched = subprocess.run(
            [sys.executable, "-I", "-S", _CONFINE, str(told)],
            input=json.dumps(spec).encode(),
            stdout=streams[0],
            stderr=streams[1],
            pass_fds=(told,),
            env={},
            start_new_session=True,
            timeout=evaluator.seconds + _GRACE,
            check=False,
        )
        os.close(told)
        told = -1
        said = b"".join(iter(lambda: os.read(heard, 65536), b""))
    except subprocess.TimeoutExpired:
        return {"ended": "time", "code": 137, "seconds": evaluator.seconds, "alone": user is not None}
    except OSError as error:
        raise EngineError(f"the evaluator cannot be started: {error.strerror}.") from None
    finally:
        for each in (heard, told, *streams):
            if each >= 0:
                os.close(each)
    if not said:  # something killed it
        return {"ended": "exit", "code": launched.returncode or 1, "seconds": 0.0, "alone": user is not None}
    return dict(json.loads(said))


def _why(settings: Settings, report: Mapping[str, Any]) -> str:
    """What went wrong with a run, in words; empty if nothing did."""
    evaluator, ended = settings.evaluator, report["ended"]
    if report.get("readable"):
        paths = ", ".join(report["readable"])
        return f"{evaluator.user or 'nobody'}, as whom candidates run, may read {paths}; run: chmod -R go-rwx {paths}"
    if ended == "refused":
        return f"it could not be confined ({report.get('why', 'no reason given')})."
    if ended == "time":
        return f"it took more than {evaluator.seconds:g} seconds."
    if ended == "memory":
        return f"it took more than {evaluator.memory:,} bytes of memory."
    if ended == "signal":
        return f"it ended by signal {report['code']}."
    return "" if report["code"] == 0 else f"it ended with exit code {report['code']}."


def _results(settings: Settings, folder: Path) -> Results:
    """Read the command's results; no link or device is followed, since this process may read more than the command."""
    wanted = settings.evaluator.results
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if fnmatch.fnmatchcase(os.path.relpath(path, folder), wanted):
                found.append(path)
    if len(found) != 1:
        many = "left no results" if not found else f"left {len(found)} files of results"
        raise DataError(f"it {many}; it must write one file {wanted}.")
    opened = os.open(found[0], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(opened, "rb") as file, tempfile.TemporaryDirectory(prefix="afresh-results-") as own:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise DataError(f"its {wanted} is not a file.")
        if os.fstat(opened).st_size > _RESULTS:
            raise DataError(f"its {wanted} has more than {_RESULTS:,} bytes.")
        copy = os.path.join(own, os.path.basename(found[0]))
        with open(copy, "wb") as out:
            shutil.copyfileobj(file, out)
        return as_given(copy, id=_column_of(copy, settings.id), score=settings.evaluator.score)


def _column_of(path: str, id: str) -> str | None:
    """The evaluation's own name for ids, where a plain table has such a column."""
    if not path.endswith((".jsonl", ".csv")):
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        first = file.readline(1 << 16)
    return id if f'"{id}"' in first or id in first.strip().split(",") else None


def _let_go(folder: Path) -> None:
    """Make everything removable, whatever file modes a candidate set."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)


def tail(path: str) -> str:
    """The end of what a command wrote, for those who may see it."""
    with open(path, "rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - 4 * _SHOWN, 0))
        return file.read().decode(errors="replace")[-_SHOWN:].strip()
