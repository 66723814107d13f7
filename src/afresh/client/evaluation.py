"""An evaluation whose items and evaluator are at a service: candidates are sent, and verdicts come back."""

from __future__ import annotations

import base64
import time
from typing import Any

from afresh.client.connection import Connection
from afresh.client.doors import all_pages
from afresh.errors import TimedOut, TooMany
from afresh.evaluations.verdicts import Compared, Examined, Proposed, Scored
from afresh.judging.files import Files, Given, read_candidate
from afresh.judging.results import Checked, Tried
from afresh.results import show
from afresh.results.budget import Budget
from afresh.results.closing import Closing
from afresh.results.transcript import Transcript
from afresh.wire.results import from_json

_RUNS = 6  # this many runs of the evaluator may have to end before an answer comes


class RemoteJudge(show.Shown, Closing):
    """Sends candidates to a service, which runs them. Make one with `afresh.connect(url).evaluation(name)`.

    A candidate is the path of a file, a folder or an archive, or the content of one file as bytes. Its `name` in the
    record is that of the file or folder unless you give one; its files identify it.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        """Ask the service for its description."""
        self.connection, self.name = connection, name
        self.told: dict[str, Any] = connection.get(f"/v1/evaluations/{name}")

    @property
    def most(self) -> int:
        """The most bytes that a candidate may have."""
        return int(self.told["candidate"])

    def read(self, candidate: Given, name: str | None = None) -> Files:
        """Read a candidate, which is limited in size, without sending it."""
        return read_candidate(candidate, self.most, name)

    def open_items(self) -> list[dict[str, Any]]:
        """The open items in full."""
        found: list[dict[str, Any]] = self._get("items")["items"]
        return found

    def check(self, again: bool = False) -> Checked:
        """What the gate can detect, before the first proposal. Free."""
        found: Checked = from_json(self._patiently(lambda: self._get("check")))
        return found

    def try_open(self, candidate: Given, name: str | None = None) -> Tried:
        """Run a candidate on the open items: scores, and what the evaluator wrote. Free."""
        found: Tried = self._sent("try", self.read(candidate, name))
        return found

    def propose(self, candidate: Given, name: str | None = None) -> Proposed:
        """Propose a candidate to the gate: accepted or not. Costs 1 answer; the same candidate again is free."""
        found: Proposed = self._sent("propose", self.read(candidate, name))
        return found

    def score(self, candidate: Given, name: str | None = None) -> Scored:
        """Estimate a candidate's mean score: guessed from the open part, checked on the guarded part. 1 answer."""
        found: Scored = self._sent("score", self.read(candidate, name))
        return found

    def compare(self, a: Given, b: Given) -> Compared:
        """Whether B is better than A, item by item. Costs 1 answer."""
        both = [
            {
                "name": each.name,
                "files" if each.folder else "file": {
                    name: base64.b64encode(content).decode() for name, (content, _) in each.files.items()
                },
                "base64": True,
            }
            for each in (self.read(a), self.read(b))
        ]
        path = f"/v1/evaluations/{self.name}/compare"
        found: Compared = from_json(self._patiently(lambda: self.connection.post(path, {"candidates": both})))
        return found

    def exam(self, candidate: Given, name: str | None = None) -> Examined:
        """Take the exam with the final candidate, once: its score, and its gain over the baseline."""
        found: Examined = self._sent("exam", self.read(candidate, name))
        return found

    @property
    def budget(self) -> Budget:
        """What was spent, and what is left for this token."""
        found: Budget = from_json(self._get("budget"))
        return found

    @property
    def transcript(self) -> Transcript:
        """Everything that was released."""
        return all_pages(lambda **part: self._get("transcript", **part))

    def _get(self, what: str, **part: Any) -> Any:
        return self.connection.get(f"/v1/evaluations/{self.name}/{what}", **part)

    def _sent(self, what: str, files: Files) -> Any:
        content, media = files.packed()
        named = {"name": files.name} if files.folder else {"name": files.name, "file": next(iter(files.files))}
        path = f"/v1/evaluations/{self.name}/{what}"
        return from_json(self._patiently(lambda: self.connection.upload(path, content, media, named)))

    def _patiently(self, ask: Any) -> Any:
        """Ask again while the evaluator runs: a verdict reached in the meantime is free."""
        until = time.monotonic() + _RUNS * float(self.told["seconds"]) + 60
        while True:
            try:
                return ask()
            except (TimedOut, TooMany):
                if time.monotonic() > until:
                    raise

    def close(self) -> None:
        """Close the connection; nothing is lost."""
        self.connection.close()

    def __repr__(self) -> str:
        """One line."""
        return f"RemoteJudge({self.name!r}, {self.told['rows']:,} items)"

    def _blocks(self) -> list[show.Block]:
        told = self.told
        facts = {
            "items": f"{told['rows']:,}, of which {told['open']:,} are open and {told['guarded']:,} confirm",
            "answers left": f"{told['left']:,}",
        }
        return [show.Title(f"Evaluation {self.name}"), show.Facts(facts)]
