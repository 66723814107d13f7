"""Runs of the steward's evaluator: a candidate, some items, a separate process, and a score for every item.

Whose failure it is when a run has no results, or too few, is decided here (docs/agents.md):

- The candidate's own: its exit code, a signal that it brought about, a limit of its own exceeded by its own processes,
  results that cannot be read. It counts.
- Not the candidate's: the machine lacked what the run was promised before it started, or something failed before the
  command was there. `NotScored`: nothing about the candidate is known, and nothing that it did is revealed.
- Unclear, because a candidate can bring it about too: the machine ran low while it ran, the system killed something
  for want of memory, or a signal came that others may have sent. It is run again, the last time without other runs
  beside it. If the machine lacks something by then, it was the machine; what happens every time, on a machine that is
  in order before and after, is the candidate's own.
"""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from afresh.errors import AfreshError, DataError, NotScored
from afresh.evaluations.reading import as_given
from afresh.evaluations.results import Results
from afresh.judging import room
from afresh.judging.files import Files
from afresh.judging.promising import promised, promised_alone
from afresh.judging.settings import Command, Settings, user_of

_CONFINE = os.path.join(os.path.dirname(__file__), "confine.py")  # not imported: it is a program for POSIX
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SHOWN = 2000  # the most characters quoted from a failed command
_LARGEST = 200_000_000  # the most bytes in any file that a command writes, including its output
_KEPT = 1_000_000  # the most bytes of each output that are kept
_RESULTS = 100_000_000  # the most bytes of results that are read
_LOOK = 0.1  # seconds between two looks at the machine
_TIMES = 3  # how often something unclear happens before it is the candidate's
_SENT = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}  # signals that others send
_OURS = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.EIO}


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended. Its output is in two of the steward's files."""

    ended: str
    """One of exit, signal, time, memory, processes, or stopped or lost, which are unclear."""
    code: int
    seconds: float
    alone: bool
    """Whether it ran as another user, who can neither see nor change anything on the machine."""
    out: str
    err: str
    results: Results | None
    wrong: str = ""
    """Why there are no results, in words, for the steward or, if the items are open, for the candidate's author."""
    unclear: str = ""
    """What happened that may not be the candidate's doing."""


def run(settings: Settings, files: Files, items: Sequence[Mapping[str, Any]], log: str) -> Ran:
    """Run the evaluator on items. It never raises because of what a candidate does, however the run ends.

    `log` is where the output is kept for the steward; `.out` and `.err` are appended.
    """
    evaluator = settings.evaluator
    needs = room.Needs(evaluator.memory, evaluator.processes, 2 * _LARGEST)  # for both of its outputs
    at_first = needs + room.Needs(0, 0, 2 * _KEPT)  # or what it leaves behind could decide whether there is enough
    places = {"the state folder": os.path.dirname(log), "temporary folders": tempfile.gettempdir()}
    try:
        for left in reversed(range(_TIMES)):
            granted = promised(at_first, places, evaluator.seconds) if left else promised_alone(needs, places)
            with granted as folder:
                ran = _once(settings, files, items, folder / "run", log, places)
            if not ran.unclear:
                return ran
            at_first = needs
    except (OSError, MemoryError) as error:  # of this process
        raise NotScored(f"the service itself failed ({getattr(error, 'strerror', None) or 'no memory'}).") from None
    if why := room.lacks(needs, places):
        raise NotScored(why)
    return ran


def _once(
    settings: Settings,
    files: Files,
    items: Sequence[Mapping[str, Any]],
    folder: Path,
    log: str,
    places: Mapping[str, str],
) -> Ran:
    """Run the evaluator once in a new folder."""
    candidate, killed = _lay_out(settings, files, items, folder), room.killed()
    names = {"{candidate}": candidate, "{items}": "items.jsonl", "{results}": settings.evaluator.results}
    report = _confined(settings, [_filled(each, names) for each in settings.evaluator.command], folder, log, places)
    found, wrong, unclear = None, _why(settings.evaluator, report), _unclear(report, room.killed() > killed)
    if not wrong:
        try:
            found = _results(settings, folder)
        except AfreshError as error:
            wrong = str(error)
        except MemoryError:
            wrong = unclear = "there was no memory to read its results."
        except Exception as error:  # raised by anything that reads a file that a candidate may have written
            if isinstance(error, OSError) and error.errno in _OURS:
                raise
            wrong = f"its results cannot be read ({type(error).__name__})."
    ended, code, seconds = str(report["ended"]), int(report["code"]), float(report["seconds"])
    return Ran(ended, code, seconds, bool(report["alone"]), f"{log}.out", f"{log}.err", found, wrong, unclear)


def _unclear(report: Mapping[str, Any], killed: bool) -> str:
    """What may not be the candidate's doing, in words; empty if everything is."""
    ended = report["ended"]
    if ended == "stopped":
        return f"the machine ran low: {report['why']}"
    if ended == "lost" or (ended == "signal" and report["code"] in _SENT):
        return "something ended it."
    if killed and ended not in ("memory", "processes"):
        return "the system killed a process because memory ran out."
    return ""


def _lay_out(settings: Settings, files: Files, items: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Put everything into a new folder; returns the candidate's path there."""
    folder.mkdir(mode=0o700)
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


def _confined(
    settings: Settings, command: list[str], folder: Path, log: str, places: Mapping[str, str]
) -> dict[str, Any]:
    """How the command ended; `NotScored` if it never began, or if what confines it was killed."""
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
    heard, told = os.pipe()
    with open(heard, "rb") as report:
        with open(told, "wb"), _kept(f"{log}.out") as out, _kept(f"{log}.err") as err:
            program = [sys.executable, "-I", "-S", _CONFINE, str(told)]
            confined = subprocess.Popen(
                program,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                pass_fds=(told,),
                env={},
                start_new_session=True,
            )
        low = _waited(confined, json.dumps(spec).encode(), places)
        for end in (".out", ".err"):
            _shorten(f"{log}{end}")
        said = [json.loads(line) for line in report]
    if not said or said[-1].get("ended") == "refused":
        raise NotScored(_never_began(evaluator, said[-1] if said else {}))
    if len(said) == 1 and not low and said[0]["alone"]:  # no candidate can end what it cannot see
        raise NotScored("something ended the program that confines it.")
    found = {"ended": "lost", "code": 0, "seconds": 0.0, **said[0], **said[-1]}
    return found | ({"ended": "stopped", "why": low} if low else {})


def _kept(path: str) -> BinaryIO:
    """A new file for the steward alone, in place of that of an earlier try."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    return open(os.open(path, flags, 0o600), "wb")


def _shorten(path: str) -> None:
    """Keep only the end of a long output."""
    with open(path, "r+b") as file:
        if os.fstat(file.fileno()).st_size > _KEPT:
            file.seek(-_KEPT, os.SEEK_END)
            end = file.read()
            file.seek(0)
            file.write(end)
            file.truncate()


def _waited(confined: subprocess.Popen[bytes], spec: bytes, places: Mapping[str, str]) -> str:
    """Wait for the end of a run; returns what the machine ran low on, for which it was stopped."""
    low = ""
    try:
        assert confined.stdin is not None
        try:
            with confined.stdin:
                confined.stdin.write(spec)
        except BrokenPipeError:  # it could not start, and says so
            pass
        while not low and confined.poll() is None:
            try:
                confined.wait(_LOOK)
            except subprocess.TimeoutExpired:
                low = room.lacking(room.LAST, places)
    finally:
        confined.terminate()  # it ends all that it started
        confined.wait()
    return low


def _never_began(evaluator: Command, report: Mapping[str, Any]) -> str:
    """Why a command was not started, in words, with the remedy."""
    if report.get("readable"):
        paths, who = shlex.join(report["readable"]), evaluator.user or "nobody"
        return f"{who}, as whom candidates run, may read {paths}; deny it first (chmod -R go-rwx {paths})."
    return f"the evaluator could not be started: {report.get('why', 'no reason given')}."


def _why(evaluator: Command, report: Mapping[str, Any]) -> str:
    """What went wrong with a run, in words; empty if nothing did."""
    ended = report["ended"]
    if ended == "stopped":
        return f"the machine ran low: {report['why']}"
    limits = {
        "time": f"it took more than {evaluator.seconds:g} seconds.",
        "memory": f"it took more than {evaluator.memory:,} bytes of memory.",
        "processes": f"it had more than {evaluator.processes:,} processes.",
        "signal": f"it ended by signal {report['code']}.",
        "lost": "something ended it.",
    }
    return limits.get(ended, "" if report["code"] == 0 else f"it ended with exit code {report['code']}.")


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
    status = os.lstat(found[0])  # nothing of the candidate is running any more
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"its {wanted} is not a file.")
    if status.st_size > _RESULTS:
        raise DataError(f"its {wanted} has more than {_RESULTS:,} bytes.")
    return as_given(found[0], id=_column_of(found[0], settings.id), score=settings.evaluator.score)


def _column_of(path: str, id: str) -> str | None:
    """The evaluation's own name for ids, where a plain table has such a column."""
    if not path.endswith((".jsonl", ".csv")):
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        first = file.readline(1 << 16)
    return id if f'"{id}"' in first or id in first.strip().split(",") else None


def tail(path: str) -> str:
    """The end of what a command wrote, for those who may see it."""
    with open(path, "rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - 4 * _SHOWN, 0))
        return file.read().decode(errors="replace")[-_SHOWN:].strip()
