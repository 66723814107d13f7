"""A board as the ledger knows it: everything that was stated under its name, from a ledger or from a receipt alike.

An entry is a statement by the rule "entry" about the score of its predictions; a comparison is a statement by the rule
"difference" with the names of both entries; a challenge is one by the rule "improvement". Nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from afresh.boards.order import Constraints
from afresh.errors import InvalidArgument
from afresh.results.reading import Number

if TYPE_CHECKING:
    from afresh.ledger import Entry
    from afresh.ledger.records import Stated
    from afresh.planning.plan import Plan

Target = tuple[Any, ...]
"""Which rows' features a truth is a mean over, where these are public and rows are dealt; () where all are one."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A score of an entry."""

    name: str
    number: Number
    target: Target
    part: int
    """The number of the answer; two entries with one answer make the same predictions."""


@dataclass(frozen=True, slots=True)
class Challenged:
    """Whether an entry certainly beats another."""

    name: str
    over: str
    passed: bool


@dataclass(frozen=True, slots=True)
class Submission:
    """An entry, as it was first recorded."""

    name: str
    entrant: str
    at: datetime
    round: int
    """In which round it was first revealed, from 1; 1 where there are none."""


class Graph:
    """What was released about one target: its entries, their values, and all intervals as constraints."""

    def __init__(self, before: Graph | None = None) -> None:
        """Start empty, or from what was known before."""
        self.places: dict[str, int] = {} if before is None else dict(before.places)
        """The entries, in order of arrival."""
        self.values: dict[str, float] = {} if before is None else dict(before.values)
        """The latest released scores; an entry that only challenged has none."""
        self.constraints: Constraints = Constraints() if before is None else before.constraints.copy()
        self._first: dict[int, int] = {} if before is None else dict(before._first)

    def place(self, name: str) -> int:
        """The number of an entry."""
        if name not in self.places:
            self.places[name] = self.constraints.enter()
        return self.places[name]

    def score(self, scored: Scored, bounds: tuple[float, float]) -> None:
        """The mean loss of an entry."""
        self.constraints.scale = bounds[1] - bounds[0]
        place, number = self.place(scored.name), scored.number
        self.values[scored.name] = number.value
        self.constraints.score(place, number.low, number.high)
        same = self._first.setdefault(scored.part, place)
        if same != place:  # one answer: the same predictions, so the same mean
            self.constraints.difference(place, same, 0.0, 0.0)

    def compare(self, a: str, b: str, number: Number) -> None:
        """The mean loss of one entry minus that of another."""
        if a in self.places and b in self.places:
            self.constraints.difference(self.places[a], self.places[b], number.low, number.high)

    def challenge(self, made: Challenged) -> None:
        """Whether an entry certainly beats another."""
        place = self.place(made.name)
        if made.passed and made.over in self.places:
            self.constraints.ahead(place, self.places[made.over])


@dataclass(frozen=True, slots=True)
class Recorded:
    """Everything a ledger says about a board."""

    board: str
    loss: str | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    submissions: Mapping[str, Submission] = field(default_factory=dict)
    scores: Mapping[str, Scored] = field(default_factory=dict)
    """The first score of every entry."""
    last: Mapping[str, Number] = field(default_factory=dict)
    """The last score of every entry, whatever its target."""
    challenges: tuple[Challenged, ...] = ()
    rounds: Mapping[tuple[int, int] | None, Target] = field(default_factory=dict)
    """The target of every round, in order, by the rows that were opened for it; one where there are no rounds."""
    final: Target | None = None
    """That of the final, once it was held."""
    graphs: Mapping[Target, Graph] = field(default_factory=dict)
    seen: int = 0
    """How many statements of the ledger were read, about this board or others."""

    @property
    def targets(self) -> list[Target]:
        """Of every round, in order."""
        return list(self.rounds.values())

    @property
    def led(self) -> list[str]:
        """Where only improvements are revealed, the leaders in order: the first entry, and all that were accepted."""
        return [*list(self.submissions)[:1], *(each.name for each in self.challenges if each.passed)]

    @property
    def leader(self) -> str | None:
        """Where only improvements are revealed, who was accepted last."""
        return next(reversed(self.led), None)

    def graph(self, target: Target | None = None) -> Graph:
        """What was released about one target, the last round's or the final's unless it is given."""
        if target is None:
            target = self.final if self.final is not None else next(reversed(self.targets), ())
        return self.graphs.get(target) or Graph()


def boards_in(stated: Sequence[Stated]) -> list[str]:
    """The names of the boards that something was stated about."""
    return list(dict.fromkeys(each.parameters["board"] for each in stated if "board" in each.parameters))


def read_record(
    board: str, stated: Collection[Stated], entries: Sequence[Entry], plan: Plan, before: Recorded | None = None
) -> Recorded:
    """What was stated about a board, in order; only what is new, if an earlier reading is given."""
    old = before or Recorded(board)
    loss, bounds, final = old.loss, old.bounds, old.final
    submissions, scores, last = dict(old.submissions), dict(old.scores), dict(old.last)
    challenges, rounds, graphs = list(old.challenges), dict(old.rounds), dict(old.graphs)
    for each in islice(stated, old.seen, None):
        parameters = each.parameters
        if parameters.get("board") != board:
            continue
        parts = [entries[part - 1] for part in each.parts]
        target, number, span = _target(parameters, parts, plan), Number(each.value, each.low, each.high), parts[0].span
        if plan.mechanism.exam_rows is not None and span is not None:
            final = target
        else:
            rounds.setdefault(span, target)
        if graphs.get(target) is old.graphs.get(target):
            graphs[target] = Graph(old.graphs.get(target))
        graph = graphs[target]
        if each.rule == "difference":
            graph.compare(parameters["a"], parameters["b"], number)
            continue
        name = parameters["entry"]
        if name not in submissions:
            submissions[name] = Submission(name, parameters["entrant"], each.at, len(rounds))
        if each.rule == "improvement":
            challenges.append(Challenged(name, parameters["over"], (each.low, each.high) != each.bounds))
            graph.challenge(challenges[-1])
        elif each.rule == "entry":
            loss, bounds = parameters["loss"], each.bounds
            scored = Scored(name, number, target, each.parts[0])
            scores.setdefault(name, scored)
            last[name] = number
            graph.score(scored, bounds)
        else:
            raise InvalidArgument(f"the board {board!r} has a statement by the rule {each.rule!r}; upgrade afresh.")
    made = tuple(challenges)
    return Recorded(board, loss, bounds, submissions, scores, last, made, rounds, final, graphs, len(stated))


def _target(parameters: Mapping[str, Any], parts: Sequence[Entry], plan: Plan) -> Target:
    """With public features the truth is a mean over the features of the rows that answered: other rows, another truth.

    So only what the same rows answered may be put together. Where features are hidden all speak of one population.
    """
    if parameters.get("features") != "public":
        return ()
    from afresh.moments import Span

    found = [plan.mechanism.spans(each.number, None if each.span is None else Span(*each.span))[-1:] for each in parts]
    return tuple(tuple(span) for each in found for span in each)[:1]
