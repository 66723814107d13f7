"""The path of every answer: reserve, evaluate in one scan, add noise, record; only what is recorded can be read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from afresh.engines.base import sum_moments
from afresh.reading import Reading, read

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.evaluation import AnyQuery
    from afresh.ledger import Entry, Ledger, Question, Terms
    from afresh.noise import Noise
    from afresh.plan import Plan


class Wanted(NamedTuple):
    """A query, how many times the plan's noise is enough, and a guess of the analyst's own."""

    query: AnyQuery
    coarseness: float = 1.0
    guess: tuple[float, float] | None = None


@dataclass(frozen=True)
class Release:
    """What the steps need. No step reaches back."""

    engine: Engine
    plan: Plan
    ledger: Ledger
    terms: Terms
    draw: Noise

    def __call__(self, wanted: Sequence[Wanted], analyst: str, later: int = 0) -> list[Reading]:
        """What was released for every query, now or earlier; refused if as many `later` ones could not be paid."""
        self.engine.check_unchanged()
        questions = [self._question(one) for one in wanted]
        entries = self.ledger.reserve(self.terms, questions, analyst, later=later)
        asked = {entry.number: one for entry, one in zip(entries, wanted, strict=True)}
        if pending := {entry.number: entry for entry in entries if entry.released is None}:
            # Reserved stays charged if the engine fails, whatever the rows; asking again completes it.
            recorded = {entry.number: entry for entry in self._answer(list(pending.values()), asked)}
            entries = [replace(recorded.get(entry.number, entry), new=entry.new) for entry in entries]
        return [read(self.plan, entry) for entry in entries]

    def _question(self, wanted: Wanted) -> Question:
        from afresh.ledger import Question

        query, mechanism = wanted.query, self.plan.at(wanted.coarseness)
        detail: dict[str, Any] = {"bounds": query.bounds, "missing": query.missing, "binary": query.binary}
        digest = query.digest
        if wanted.guess is not None:  # another guess is another question
            detail["guess"] = wanted.guess
            digest = hashlib.sha256(f"{digest} {wanted.guess!r}".encode()).hexdigest()
        return Question(
            digest,
            query.text,
            json.dumps(detail),
            mechanism.charge,
            mechanism.row_charge,
            mechanism.method,
            wanted.coarseness,
        )

    def _answer(self, pending: list[Entry], asked: Mapping[int, Wanted]) -> list[Entry]:
        """Evaluate in one scan, add noise, record. Only what the ledger returns may be released."""
        released = []
        for entry, moments in zip(pending, self._moments(pending, asked), strict=True):
            guess = asked[entry.number].guess
            options = {} if guess is None else {"guess": guess}
            with np.errstate(all="ignore"):  # that a mean is nearly 0, say, is for the answer to tell
                release = self.plan.at(entry.coarseness).release(moments, self.draw(entry.number), **options)
            released.append((entry, release))
        return self.ledger.record_many(self.terms, released)

    def _moments(self, pending: list[Entry], asked: Mapping[int, Wanted]) -> list[Any]:
        """Of every entry the moments of all rows, or of each group of blocks its mechanism wants."""
        from afresh.evaluation import evaluate  # on demand: `import afresh` stays fast

        queries = [asked[entry.number].query for entry in pending]
        groups = [self.plan.mechanism.blocks(entry.number) for entry in pending]
        if not any(groups):
            return list(evaluate(self.engine, queries))
        wanted = [
            (query, block) for query, parts in zip(queries, groups, strict=True) for part in parts for block in part
        ]
        found = iter(evaluate(self.engine, [query for query, _ in wanted], [block for _, block in wanted]))
        summed = [[sum_moments([next(found) for _ in part]) for part in parts] for parts in groups]
        return [parts[0] if len(parts) == 1 else tuple(parts) for parts in summed]
