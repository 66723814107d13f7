"""What a final look can repeat: questions asked in rounds, and the numbers that were derived from their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from afresh.results.rules import again

if TYPE_CHECKING:
    from afresh.guard.scope import Scope
    from afresh.ledger import Entry
    from afresh.queries.asked import Asked
    from afresh.queries.base import RowQuestion
    from afresh.results.reading import Reading


class Repeat(NamedTuple):
    """A number that a final look tells once more."""

    asked: Asked
    queries: tuple[RowQuestion, ...]
    """What is answered again for it."""
    kept: tuple[int, ...] = ()
    """The numbers of the first answers that it takes as well, because others were asked around their values."""
    mixed: bool = False
    """Whether its answers come from the rows of different rounds."""

    def entries(self, first: Mapping[int, Entry], looks: Mapping[str, Entry]) -> list[Entry] | None:
        """Return what it follows from, given first answers by number and looks by digest; None if a look is missing."""
        if not all(query.digest in looks for query in self.queries):
            return None
        return [*(first[number] for number in self.kept), *(looks[query.digest] for query in self.queries)]


class Remembered:
    """What one desk was asked in rounds."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._queries: dict[str, RowQuestion] = {}
        self._repeats: dict[tuple[str, ...], Repeat] = {}

    def repeats(self, scope: Scope) -> list[Repeat]:
        """Everything to tell again, in order.

        With public features, answers from different rows have different truths, which no rule may combine.
        """
        found = list(self._repeats.values())  # other threads may ask in the meantime
        return [each for each in found if not (each.mixed and scope.features == "public")]

    def asked(self, asked: Sequence[Asked]) -> None:
        """Remember questions that were answered."""
        # Only questions fully determined by their digest: a model may by then predict differently under the same name.
        named = [one for one in asked if all(query.columns is not None for query in one.queries)]
        self._queries |= {query.digest: query for one in named for query in one.queries}
        for one in named:
            if one.own:
                self._keep(Repeat(one, one.queries))

    def stated(self, asked: Sequence[Asked], parts: Sequence[Reading]) -> None:
        """Remember numbers that were derived from answers to such questions."""
        entries = [part.entry for part in parts]
        if not all(entry.digest in self._queries for entry in entries):
            return
        mixed = len({entry.span for entry in entries}) > 1
        for one in asked:
            assert one.rule is not None
            rule, kept = again(one.rule, one.parameters)
            queries = tuple(self._queries[entry.digest] for entry in (*entries[kept:], *entries[:kept]))
            numbers = tuple(entry.number for entry in entries[:kept])
            self._keep(Repeat(replace(one, rule=rule), queries, numbers, mixed))

    def _keep(self, repeat: Repeat) -> None:
        self._repeats[(repeat.asked.text, *(query.digest for query in repeat.queries))] = repeat
