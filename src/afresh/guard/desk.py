"""The path of every answer: reserve, evaluate in one scan, add noise, record; only what is recorded can be read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from afresh.ledger.base import Outcome, Question, Statement, outcome
from afresh.moments import sum_moments
from afresh.results.reading import Reading, read

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.guard.evaluate import AnyQuery
    from afresh.guard.noise import Noise
    from afresh.ledger import Entry, Ledger, Terms
    from afresh.ledger.ledger import Settle
    from afresh.ledger.records import Released
    from afresh.mechanisms.base import Mechanism
    from afresh.planning.plan import Plan


class Wanted(NamedTuple):
    """A query, how many times the plan's noise is enough, and a guess of the analyst's own."""

    query: AnyQuery
    coarseness: float = 1.0
    guess: tuple[float, float] | None = None
    own: bool = True
    """Whether it is asked for itself, and not as a part of a statement."""


Derive = Callable[[Sequence[Reading]], Sequence[Statement]]


@dataclass(frozen=True)
class Release:
    """What the steps need. No step reaches back."""

    engine: Engine
    plan: Plan
    ledger: Ledger
    terms: Terms
    draw: Noise

    def __call__(
        self, wanted: Sequence[Wanted], analyst: str, later: int = 0, derive: Derive | None = None
    ) -> list[Reading]:
        """What was released for every query, now or earlier; refused if as many `later` ones could not be paid.

        What `derive` makes of all of it is recorded together with it.
        """
        self.engine.check_unchanged()
        questions = [self.question(one) for one in wanted]
        entries = self.ledger.reserve(self.terms, questions, analyst, later=later)
        asked = {entry.number: one for entry, one in zip(entries, wanted, strict=True)}
        if pending := {entry.number: entry for entry in entries if entry.outcome is None}:

            def derived(stored: Mapping[int, Entry]) -> Sequence[Statement]:
                return [] if derive is None else derive([read(stored.get(entry.number, entry)) for entry in entries])

            # Reserved stays charged if the engine fails, whatever the rows; asking again completes it.
            outcomes = self._outcomes(list(pending.values()), asked)
            recorded = {
                entry.number: entry for entry in self.ledger.record_many(self.terms, outcomes, derived, analyst)
            }
            entries = [replace(recorded.get(entry.number, entry), new=entry.new) for entry in entries]
        return [read(entry) for entry in entries]

    def question(self, wanted: Wanted) -> Question:
        """What the ledger is asked to reserve."""
        query, mechanism = wanted.query, self.plan.at(wanted.coarseness)
        digest = query.digest
        if wanted.guess is not None:  # another guess is another question
            digest = hashlib.sha256(f"{digest} {wanted.guess!r}".encode()).hexdigest()
        return Question(
            digest,
            query.text,
            mechanism.charge,
            mechanism.row_charge,
            wanted.coarseness,
            query.bounds,
            query.binary,
            wanted.own,
            wanted.guess,
        )

    def _outcomes(self, pending: list[Entry], asked: Mapping[int, Wanted]) -> list[tuple[Entry, Outcome | Settle]]:
        """Evaluate in one scan and add noise. Only what the ledger has recorded of it may be released."""
        found: list[tuple[Entry, Outcome | Settle]] = []
        for entry, moments in zip(pending, self._moments(pending, asked), strict=True):
            mechanism, guess = self.plan.at(entry.coarseness), asked[entry.number].guess
            options = {} if guess is None else {"guess": guess}
            with np.errstate(all="ignore"):  # that a mean is nearly 0, say, is for the answer to tell
                released = mechanism.release(moments, self.draw(entry.number), **options)
            settle = partial(_settle, mechanism, entry.binary, self.plan.ends, released)
            found.append((entry, settle if callable(released) else settle(())))
        return found

    def _moments(self, pending: list[Entry], asked: Mapping[int, Wanted]) -> list[Any]:
        """Of every entry the moments of all rows, or of each group of blocks its mechanism wants."""
        from afresh.guard.evaluate import evaluate  # on demand: `import afresh` stays fast

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


def _settle(mechanism: Mechanism, binary: bool, ends: float, released: Any, earlier: Sequence[Released]) -> Outcome:
    """What is recorded: the released number with its value and interval, which nobody computes again."""
    made = released(earlier) if callable(released) else released
    with np.errstate(all="ignore"):  # whatever a process asked of numpy
        return outcome(made, mechanism.value(made), *mechanism.interval(made, binary=binary), ends=ends)
