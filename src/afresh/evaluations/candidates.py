"""A candidate's scores, matched with the items: mistakes in them are reported before anything is charged.

A candidate is known by its name and by its scores on the open part, never by those of the guarded part: otherwise a
free repeat would reveal that two candidates have the same guarded scores. For the same reason, errors name only ids and
scores of the open part; a guarded score that is not a number from 0 to 1 silently counts as 0. Nothing is certified
from the exam's items after the exam, so there all scores count.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.evaluations.results import Results
from afresh.models.vectors import Rows, Values, VectorQuery, keyed_digest

Floats = NDArray[np.float64]
_SHOWN = 3


Part = Literal["open", "guarded", "exam"]


class Dealt:
    """The ids in order, the part each is in, and the secret that names candidates."""

    def __init__(self, ids: Sequence[str], opened: NDArray[np.int64], exam: NDArray[np.int64], seed: str) -> None:
        """`opened` and `exam` are the places of these items; all others are guarded."""
        self.ids, self.seed = list(ids), seed
        self.open, self.exam = np.zeros((2, len(self.ids)), dtype=bool)
        self.open[opened] = True
        self.exam[exam] = True
        self.guarded = ~(self.open | self.exam)
        self.places = {id: place for place, id in enumerate(self.ids)}

    def match(self, results: Results, *parts: Part) -> Floats:
        """Match scores with items: the mean score of every item, NaN if there is none.

        Args:
            results: Results from a reader.
            parts: The parts in which every item needs a score; in the others scores may be missing.

        Returns:
            One number for every item, in the order of the ids.

        Raises:
            InvalidArgument: An item has no score or two for one trial, or an id is unknown; nothing was charged.
        """
        pairs = list(zip(results.ids, results.trials, strict=True))
        unknown = {id for id in results.ids if id not in self.places}
        twice = {id for (id, _), count in _counted(pairs) if count > 1 and id in self.places}
        there = set(results.ids)
        needed = np.logical_or.reduce([getattr(self, part) for part in parts])
        missing = [id for id, wanted in zip(self.ids, needed, strict=True) if wanted and id not in there]
        problems = []
        if missing:
            problems.append(f"{self._items(missing)} no score")
        if twice:
            problems.append(f"{self._items(sorted(twice))} two scores for one trial")
        if unknown:
            problems.append(
                f"{len(unknown):,} scores belong to no item (ids look like {checks.shown(self.ids_open[0])})"
            )
        if problems:
            raise InvalidArgument(
                f"the results do not fit the {len(self.ids):,} items: {'; '.join(problems)}. Give every item one score "
                "per trial, 0 if a candidate failed. Nothing was charged."
            )
        return self._means(results)

    def _means(self, results: Results) -> Floats:
        at = np.array([self.places[id] for id in results.ids], dtype=np.int64)
        scores = np.array(results.scores, dtype=np.float64)
        good = (scores >= 0) & (scores <= 1)
        bad = np.flatnonzero(~good & self.open[at])
        if bad.size:
            first = int(bad[0])
            raise InvalidArgument(
                f"the score of item {checks.shown(results.ids[first])} is {results.scores[first]:g}, must be a number "
                f"from 0 to 1 (and so for {bad.size:,} of the open part). Nothing was charged."
            )
        scores = np.where(good, scores, 0.0)
        counts = np.bincount(at, minlength=len(self.ids))
        totals = np.bincount(at, scores, minlength=len(self.ids))
        return np.where(counts > 0, np.minimum(totals / np.maximum(counts, 1), 1.0), math.nan)

    @cached_property
    def ids_open(self) -> list[str]:
        """Those of the open part."""
        return [id for id, mine in zip(self.ids, self.open, strict=True) if mine]

    def _items(self, ids: Collection[str]) -> str:
        """How many items, naming only open ones, and the verb "has" or "have"."""
        opened = [id for id in ids if self.open[self.places[id]]]
        kept = sum(bool(self.exam[self.places[id]]) for id in ids)
        guarded = len(ids) - len(opened) - kept
        said = []
        if opened:
            more = ", ..." if len(opened) > _SHOWN else ""
            said.append(f"{len(opened):,} of the open part ({', '.join(map(checks.shown, opened[:_SHOWN]))}{more})")
        if guarded:
            said.append(f"{guarded:,} of the guarded part")
        if kept:
            said.append(f"{kept:,} of the exam")
        return f"{' and '.join(said)} {'has' if len(ids) == 1 else 'have'}"

    def candidate(self, results: Results, name: str | None, part: Part = "guarded") -> Candidate:
        """A candidate with its scores, identified by its name and its open scores; without a name it is always new.

        What was run identifies it too, if the results say so; otherwise, in the exam, the scores of the exam do. It
        needs scores for the open part and for the part that is asked.
        """
        if name is not None:
            checks.text("name", name, "a name for the candidate")
        scores = self.match(results, "open", part)
        nonce = [] if name is not None else [secrets.token_hex(16)]
        seen = [scores[self.open]] if part != "exam" or results.key else [scores[self.open], scores[self.exam]]
        digest = keyed_digest(self.seed, ["candidate", name, results.key, *nonce], seen)
        return self.known(name or f"candidate {digest[:8]}", digest, scores, results.key)

    def known(self, name: str, digest: str, scores: Floats, key: str = "") -> Candidate:
        """The candidate with this digest."""
        seal = keyed_digest(self.seed, ["scores", digest], [scores[self.open | self.guarded]])
        return Candidate(name, digest, seal, key, scores, self.passes(scores))

    def passes(self, scores: Floats) -> bool:
        """Whether scores are passes and failures, judging by the open part."""
        mine = scores[self.open]
        return bool(((mine == 0) | (mine == 1)).all())


@dataclass(frozen=True, eq=False)
class Candidate:
    """Scores of every item, in the order of the ids."""

    name: str
    """What people call it; nothing is looked up by it."""
    digest: str
    seal: str
    """The digest of all its scores but the exam's, with which a gate recognizes scores that it lost."""
    key: str
    """The digest of what was run, if its results said so."""
    scores: Floats
    binary: bool
    """Whether all open scores are 0 or 1: a guarded item then counts as passed if its score is 1, and else as failed.

    The open part decides, since the choice of limits must not depend on guarded scores.
    """

    def values(self, binary: bool, rows: Rows) -> Floats:
        """What counts of some items."""
        found = self.scores[rows]
        return (found >= 1).astype(np.float64) if binary else found


def score_question(candidate: Candidate, seed: str) -> VectorQuery:
    """The mean score of a candidate."""
    what = "share of items passed" if candidate.binary else "mean score"
    digest = keyed_digest(seed, ["score", candidate.binary, candidate.digest])

    def values(rows: Rows) -> Values:
        return candidate.scores[rows] >= 1 if candidate.binary else candidate.scores[rows]

    return VectorQuery(digest, f"{what} of {candidate.name}", values, levels=2 if candidate.binary else None)


def gain_question(a: Candidate, b: Candidate, seed: str) -> VectorQuery:
    """(score of B - score of A + 1)/2, item by item."""
    binary = a.binary and b.binary
    digest = keyed_digest(seed, ["gain", binary, a.digest, b.digest])

    def values(rows: Rows) -> Values:
        return (b.values(binary, rows) - a.values(binary, rows) + 1) / 2

    text = f"score of {b.name} minus that of {a.name}"
    return VectorQuery(digest, text, values, levels=3 if binary else None, bounds=(-1.0, 1.0))


def _counted(pairs: Iterable[tuple[str, object]]) -> Iterable[tuple[tuple[str, Any], int]]:
    return Counter((id, repr(trial)) for id, trial in pairs).items()
