"""A judge: an evaluation that runs candidates itself. A candidate's author sees the open items, and verdicts.

The open items run first and the guarded items separately, so nothing about a guarded item can show in what is open.
Whatever a candidate does in a guarded run, a missing score counts as 0 and the verdict is charged: an error would
reveal something about the items without being charged. What a machine does to a run is never a score: `running` says
whose failure is whose. The end of a guarded run shows only on the clock.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from afresh.errors import EvaluatorFailed, InvalidArgument, NotScored
from afresh.evaluations.candidates import Part
from afresh.evaluations.evaluation import Evaluation
from afresh.evaluations.gate import Gate, accepted_by, open_gate
from afresh.evaluations.items import read_items
from afresh.evaluations.keeping import Keeping
from afresh.evaluations.open import evaluation
from afresh.evaluations.results import Results, from_mapping
from afresh.evaluations.verdicts import Compared, Examined, Proposed, Scored
from afresh.judging.files import Files, Given, read_candidate
from afresh.judging.promising import remove_abandoned
from afresh.judging.results import Checked, Tried
from afresh.judging.running import Ran, run, tail
from afresh.judging.settings import Settings
from afresh.results import show
from afresh.results.closing import Closing
from afresh.results.progress import waiting
from afresh.server.clock import leaving

_BASELINE = "baseline"


class _Opened(NamedTuple):
    """What a candidate did on the open items."""

    results: Results
    output: str
    alone: bool


class Judge(show.Shown, Closing):
    """Runs candidates and gives verdicts. Make one with `open_judge`."""

    def __init__(self, settings: Settings, opened: Evaluation, rows: Sequence[dict[str, Any]]) -> None:
        """Not for users. `rows` are all items, in the order of their ids."""
        self.settings, self.evaluation, self._rows = settings, opened, rows

    def for_analyst(self, analyst: str) -> Judge:
        """The same judge, for another analyst."""
        return Judge(self.settings, self.evaluation.for_analyst(analyst), self._rows)

    @property
    def most(self) -> int:
        """The most bytes that a candidate may have."""
        return self.settings.evaluator.candidate

    def read(self, candidate: Given, name: str | None = None) -> Files:
        """Read a candidate, which is limited in size."""
        return read_candidate(candidate, self.most, name)

    def open_items(self) -> list[dict[str, Any]]:
        """The open items in full."""
        return self.evaluation.open_items()

    def try_open(self, files: Files) -> Tried:
        """Run a candidate on the open items: scores, and what the evaluator wrote. Free."""
        opened = self._open(files)
        scores = self.evaluation.open_scores(opened.results)
        with self._locked():
            gate = self._gate()
        return Tried(
            candidate=files.label,
            open_score=math.fsum(scores.values()) / len(scores),
            scores=scores,
            chance=gate.chance(opened.results),
            output=opened.output,
        )

    def propose(self, files: Files) -> Proposed:
        """Propose a candidate to the gate: accepted or not. Costs 1 answer; the same candidate again is free."""
        opened = self._open(files).results
        with self._locked():
            gate = self._gate()
            if gate.judged(opened, files.label):
                return gate.propose(self._whole(opened, {}), files.label)
            return gate.propose(self._whole(opened, self._guarded(files, "guarded")), files.label)

    def score(self, files: Files) -> Scored:
        """Estimate a candidate's mean score: guessed from the open part, checked on the guarded part. 1 answer."""
        opened = self._open(files).results
        return self.evaluation.score(self._whole(opened, self._guarded(files, "guarded")), name=files.label)

    def compare(self, a: Files, b: Files) -> Compared:
        """Whether B is better than A, item by item. Costs 1 answer."""
        opened = [self._open(each).results for each in (a, b)]
        runs = [self._guarded(each, "guarded") for each in (a, b)]
        first, second = (self._whole(*both) for both in zip(opened, runs, strict=True))
        return self.evaluation.compare(first, second, names=(a.label, b.label))

    def exam(self, files: Files) -> Examined:
        """Take the exam with the final candidate, once: its score, and its gain over the baseline."""
        baseline = self._baseline()
        opened = [self._open(each).results for each in (files, baseline)]
        first = self._of_baseline(baseline, "exam")
        final, start = self._whole(opened[0], self._guarded(files, "exam")), self._whole(opened[1], first)
        return self.evaluation.exam(final, start, names=(files.label, baseline.label))

    def check(self, again: bool = False) -> Checked:
        """Run the baseline on the open items, and show what the gate can detect, before the first proposal. Free."""
        files = self._baseline()
        opened = self._open(files, again)
        scores = self.evaluation.open_scores(opened.results)
        with self._locked():
            gate = self._gate()
        return Checked(
            items=self.evaluation.items,
            open=self.evaluation.open,
            guarded=self.evaluation.guarded,
            baseline=math.fsum(scores.values()) / len(scores),
            incumbent=gate.incumbent,
            too_few=gate.too_few,
            advice=gate.advice,
            alone=opened.alone,
            network=self.settings.evaluator.network,
            left=self.evaluation.guard.desk.left(self.evaluation.guard.analyst),
        )

    def _open(self, files: Files, again: bool = False) -> _Opened:
        """Scores of the open items, kept so that a candidate runs once: a repeat is then exact even if runs vary."""
        key = self._key(files)
        kept = self._path("open", f"{key}.json")
        with self._locked(key):
            if again or not os.path.exists(kept):
                ran = self._run(files, "open")
                output = self._output(ran)
                if ran.results is None:
                    raise EvaluatorFailed(_failed(ran.wrong), output)
                try:
                    scores = self.evaluation.open_scores(ran.results)
                except InvalidArgument as error:
                    raise EvaluatorFailed(_failed(str(error)), output) from None
                if not os.path.exists(kept):
                    _write(kept, {"scores": scores, "output": output, "alone": ran.alone})
        found = _read(kept)
        return _Opened(from_mapping(found["scores"])._replace(key=key), found["output"], found["alone"])

    @staticmethod
    def _output(ran: Ran) -> str:
        return "\n".join(text for text in (tail(ran.out), tail(ran.err)) if text)

    def _guarded(self, files: Files, part: Part) -> dict[str, float]:
        """Scores of a part that is not open; silently 0 where there is no valid score.

        They, and everything recorded about them, become available when the clock says so.
        """
        began = time.monotonic()
        try:
            results = self._run(files, part).results
            return {} if results is None else _lenient(results)
        finally:
            leaves = leaving(time.monotonic() - began, self.settings.evaluator.tick)
            time.sleep(max(leaves - (time.monotonic() - began), 0.0))

    def _whole(self, opened: Results, others: dict[str, float]) -> Results:
        """Scores of the open items together with others, 0 where there are none."""
        dealt = self.evaluation.dealt
        hidden = [id for id, mine in zip(dealt.ids, dealt.open, strict=True) if not mine]
        scores = [others.get(id, 0.0) for id in hidden]
        return Results([*opened.ids, *hidden], [*opened.scores, *scores], [0] * len(dealt.ids), opened.key)

    def _run(self, files: Files, part: Part) -> Ran:
        dealt = self.evaluation.dealt
        wanted = getattr(dealt, part)
        items = [row for row, mine in zip(self._rows, wanted, strict=True) if mine]
        log = self._path("runs", f"{time.strftime('%Y%m%dT%H%M%S')}-{files.digest[:8]}-{part}-{os.urandom(3).hex()}")
        with waiting(f"Running {files.label} on {len(items):,} items"):
            ran = run(self.settings, files, items, log)
        told = {"ended": ran.ended, "code": ran.code, "seconds": round(ran.seconds, 2), "alone": ran.alone}
        told |= {"candidate": files.label, "part": part, "wrong": ran.wrong, "unclear": ran.unclear}
        _write(f"{log}.json", told)
        return ran

    def _baseline(self) -> Files:
        return self.read(self.settings.baseline, _BASELINE)

    def _gate(self) -> Gate:
        """The gate with its incumbent, which is the baseline until a candidate is accepted."""
        incumbent, name = None, _BASELINE
        if not accepted_by(self.evaluation):
            files = self._baseline()
            incumbent, name = self._whole(self._open(files).results, self._of_baseline(files, "guarded")), files.label
        keeping = Keeping(os.path.join(self.settings.state, "gates"))
        return open_gate(self.evaluation, incumbent, name, self.settings.margin, keeping)

    def _of_baseline(self, files: Files, part: Part) -> dict[str, float]:
        """Scores of the steward's own candidate, which must not fail; they are kept, readable only by this user."""
        kept = self._path("open", f"{self._key(files)}.{part}")
        if not os.path.exists(kept):
            ran = self._run(files, part)
            if ran.results is None:
                raise EvaluatorFailed(f"the baseline failed, and it is the steward's: see {ran.err}.")
            _write(kept, _lenient(ran.results))
        found: dict[str, float] = _read(kept)
        return found

    def _key(self, files: Files) -> str:
        """The key of a candidate with this evaluator."""
        evaluator, folder = self.settings.evaluator, Path(self.settings.folder)
        found = hashlib.sha256(repr((files.digest, evaluator.command, evaluator.results, evaluator.score)).encode())
        for each in evaluator.files:
            places = sorted((folder / each).rglob("*")) if (folder / each).is_dir() else [folder / each]
            for place in places:
                found.update(repr(place).encode() + (place.read_bytes() if place.is_file() else b""))
        return found.hexdigest()

    def _path(self, kind: Literal["open", "runs"], name: str) -> str:
        folder = os.path.join(self.settings.state, kind)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return os.path.join(folder, name)

    @contextmanager
    def _locked(self, what: str = "gate") -> Iterator[None]:
        """One at a time, across all processes: a second proposal runs when the first is decided."""
        import fcntl

        with open(os.open(self._path("open", f"{what}.lock"), os.O_RDWR | os.O_CREAT, 0o600), "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def close(self) -> None:
        """Close the evaluation."""
        self.evaluation.close()

    def __repr__(self) -> str:
        """One line."""
        return f"Judge({self.evaluation!r})"

    def _blocks(self) -> list[show.Block]:
        return [show.Title(f"Judge of {self.settings.name}"), *self.evaluation.blocks()]


def open_judge(settings: Settings, analyst: str | None = None) -> Judge:
    """Open the items and the ledger; only this user can read the state folder. What killed runs left is removed."""
    remove_abandoned()
    os.makedirs(settings.state, mode=0o700, exist_ok=True)
    os.chmod(settings.state, 0o700)
    rows = read_items(settings.items, settings.id).rows
    opened = evaluation(rows, id=settings.id, ledger=settings.ledger, analyst=analyst, **settings.plan)
    return Judge(settings, opened, rows)


def _lenient(results: Results) -> dict[str, float]:
    """The mean of an item's scores; anything but a number from 0 to 1 counts as 0."""
    found: dict[str, list[float]] = {}
    for id, score in zip(results.ids, results.scores, strict=True):
        found.setdefault(id, []).append(score if 0 <= score <= 1 else 0.0)
    return {id: math.fsum(scores) / len(scores) for id, scores in found.items()}


def _failed(why: str) -> str:
    return f"the evaluator failed on the open items: {why.removesuffix(' Nothing was charged.')} Nothing was charged."


def _write(path: str, found: Any) -> None:
    """Write a file, whole or not at all, that only this user can read."""
    part = f"{path}.{os.urandom(4).hex()}"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            json.dump(found, out)
        os.replace(part, path)
    except OSError as error:
        raise NotScored(f"the state folder cannot be written ({error.strerror}).") from None


def _read(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return json.load(file)
