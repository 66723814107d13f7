"""Admit a run when the machine has all that it may use, and give it a folder that outlives neither it nor this process.

What is decided here is decided before a candidate has started, so it cannot depend on what the candidate does.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from afresh.engines.embedded.scratch import Scratch, lock, sweep
from afresh.errors import NotScored
from afresh.judging.room import Needs, lacking, lacks

_PREFIX = "run-"
_NEEDS = "needs.json"
_EVERYTHING = Needs(1 << 62, 1 << 62, 1 << 62)
_PAUSE = 0.1  # seconds between two looks at whether other runs have ended


@contextmanager
def promised(needs: Needs, places: Mapping[str, str], patience: float) -> Iterator[Path]:
    """A new folder, once the machine has room for this run besides all other runs of this user; or `NotScored`."""
    home, until = _home(), time.monotonic() + patience
    while (found := _admitted(home, needs, places)) is None:
        if time.monotonic() > until:
            raise NotScored("other runs hold the memory, processes or disk that it may use.")
        time.sleep(_PAUSE)
    try:
        yield Path(found.path)
    finally:
        found.remove()


@contextmanager
def promised_alone(needs: Needs, places: Mapping[str, str]) -> Iterator[Path]:
    """A new folder, when all other runs of this user have ended; until it is removed, no other is admitted."""
    home = _home()
    first = os.path.join(home, "alone")
    os.makedirs(first, mode=0o700, exist_ok=True)
    turn = lock(first, wait=True)
    found = _noted(home, _EVERYTHING)
    try:
        while len(sweep(_PREFIX, home)) > 1:  # they end, and no new ones begin
            time.sleep(_PAUSE)
        if why := lacks(needs, places):
            raise NotScored(why)
        yield Path(found.path)
    finally:
        found.remove()
        if turn is not None:
            os.close(turn)


def remove_abandoned() -> None:
    """Remove the folders of runs whose process was killed; what other processes are running is left alone."""
    sweep(_PREFIX, _home())


def _home() -> str:
    """The folder of all runs of this user."""
    home = os.path.join(tempfile.gettempdir(), f"afresh-runs-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(home, 0o711)
    found = os.lstat(home)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise NotScored(f"{home} belongs to somebody else; remove it, or set TMPDIR to another folder.")
    return home


def _admitted(home: str, needs: Needs, places: Mapping[str, str]) -> Scratch | None:
    """A folder with a note of what is promised; None if the machine lacks it only because of other runs."""
    held = lock(home, wait=True)  # one after the other, or two would be promised the same
    try:
        others = [_note(path) for path in sweep(_PREFIX, home)]
        if why := lacks(needs, places):
            raise NotScored(why)
        return None if others and lacking(sum(others, needs), places) else _noted(home, needs)
    finally:
        if held is not None:
            os.close(held)


def _noted(home: str, needs: Needs) -> Scratch:
    made = Scratch(_PREFIX, home)
    os.chmod(made.path, 0o711)  # a candidate that is another user passes through
    note = os.open(os.path.join(made.path, _NEEDS), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(note, "w", encoding="utf-8") as file:
        json.dump(asdict(needs), file)
    return made


def _note(path: Path) -> Needs:
    try:
        return Needs(**json.loads((path / _NEEDS).read_text(encoding="utf-8")))
    except (OSError, ValueError):  # it is being made or removed
        return Needs(0, 0, 0)
