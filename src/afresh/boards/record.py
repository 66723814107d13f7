"""A board as the ledger knows it: everything that was stated under its name, from a ledger or from a receipt alike.

An entry is a statement by the rule "entry" about the score of its predictions; a comparison is a statement by the rule
"difference" with the names of both entries; a challenge is one by the rule "improvement". Nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from afresh.boards.order import Constraints, Order
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
class Compared:
    """The mean loss of one entry minus that of another."""

    a: str
    b: str
    number: Number
    target: Target


@dataclass(frozen=True, slots=True)
class Challenged:
    """Whether an entry certainly beats another."""

    name: str
    over: str
    passed: bool
    target: Target


@dataclass(frozen=True, slots=True)
class Submission:
    """An entry, as it was first recorded."""

    name: str
    entrant: str
    at: datetime
    round: int
    """In which round it was first revealed, from 1; 1 where there are none."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """All that a ledger says about a board."""

    board: str
    loss: str | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    submissions: Mapping[str, Submission] = field(default_factory=dict)
    scores: tuple[Scored, ...] = ()
    comparisons: tuple[Compared, ...] = ()
    challenges: tuple[Challenged, ...] = ()
    rounds: tuple[Target, ...] = ()
    """The target of every round, in order; one where there are no rounds."""
    final: Target | None = None
    """That of the final, once it was held."""

    @property
    def leader(self) -> str | None:
        """Where only improvements are revealed, who was accepted last."""
        accepted = [each.name for each in self.challenges if each.passed]
        return accepted[-1] if accepted else next(iter(self.submissions), None)


def boards_in(stated: Sequence[Stated]) -> list[str]:
    """The names of the boards that something was stated about."""
    return list(dict.fromkeys(each.parameters["board"] for each in stated if "board" in each.parameters))


def read_record(board: str, stated: Sequence[Stated], entries: Sequence[Entry], plan: Plan) -> Recorded:
    """What was stated about a board, in order."""
    own = [each for each in stated if each.parameters.get("board") == board]
    known = {entry.number: entry for entry in entries}
    submissions: dict[str, Submission] = {}
    scores: list[Scored] = []
    comparisons: list[Compared] = []
    challenges: list[Challenged] = []
    rounds: dict[tuple[int, int] | None, Target] = {}  # by the rows that were opened for each
    final: Target | None = None
    loss, bounds = None, (0.0, 1.0)
    for each in own:
        parameters = each.parameters
        target = _target(parameters, [known[part] for part in each.parts], plan)
        number = Number(each.value, each.low, each.high)
        span = known[each.parts[0]].span
        if plan.mechanism.exam_rows is not None and span is not None:
            final = target
        else:
            rounds.setdefault(span, target)
        if each.rule == "difference":
            comparisons.append(Compared(parameters["a"], parameters["b"], number, target))
            continue
        name = parameters["entry"]
        if name not in submissions:
            submissions[name] = Submission(name, parameters["entrant"], each.at, len(rounds))
        if each.rule == "improvement":
            passed = (each.low, each.high) != each.bounds
            challenges.append(Challenged(name, parameters["over"], passed, target))
        elif each.rule == "entry":
            scores.append(Scored(name, number, target, each.parts[0]))
            loss, bounds = parameters["loss"], each.bounds
        else:
            raise InvalidArgument(f"the board {board!r} has a statement by the rule {each.rule!r}; upgrade afresh.")
    return Recorded(
        board,
        loss,
        bounds,
        submissions,
        tuple(scores),
        tuple(comparisons),
        tuple(challenges),
        tuple(rounds.values()),
        final,
    )


def _target(parameters: Mapping[str, Any], parts: Sequence[Entry], plan: Plan) -> Target:
    """With public features the truth is a mean over the features of the rows that answered: other rows, another truth.

    So only what the same rows answered may be put together. Where features are hidden all speak of one population.
    """
    if parameters.get("features") != "public":
        return ()
    from afresh.moments import Span

    found = [plan.mechanism.spans(each.number, None if each.span is None else Span(*each.span))[-1:] for each in parts]
    return tuple(tuple(span) for each in found for span in each)[:1]


@dataclass(frozen=True, slots=True)
class Solved:
    """The entries of one table, and what is certain about their order."""

    names: tuple[str, ...]
    values: tuple[float | None, ...]
    """The score that was released last; None of an entry that was only challenged with."""
    order: Order


def constraints_of(recorded: Recorded, target: Target | None = None) -> tuple[tuple[str, ...], Constraints]:
    """What was released about one target, the last round's unless it is given, as a graph."""
    target = _shown(recorded) if target is None else target
    scores = [each for each in recorded.scores if each.target == target]
    challenges = [each for each in recorded.challenges if each.target == target]
    there = {each.name for each in scores} | {each.name for each in challenges}
    names = tuple(name for name in recorded.submissions if name in there)
    places = {name: place for place, name in enumerate(names)}
    low, high = recorded.bounds
    graph = Constraints(len(names), high - low)
    first: dict[int, int] = {}
    for score in scores:
        place = places[score.name]
        graph.score(place, score.number.low, score.number.high)
        same = first.setdefault(score.part, place)
        if same != place:  # one answer: the same predictions, so the same mean
            graph.difference(place, same, 0.0, 0.0)
    for each in recorded.comparisons:
        if each.target == target and each.a in places and each.b in places:
            graph.difference(places[each.a], places[each.b], each.number.low, each.number.high)
    for challenge in challenges:
        if challenge.passed and challenge.over in places:
            graph.ahead(places[challenge.name], places[challenge.over])
    return names, graph


def solved(recorded: Recorded, target: Target | None = None) -> Solved:
    """The entries of a target, with all that follows from what was released about them."""
    target = _shown(recorded) if target is None else target
    names, graph = constraints_of(recorded, target)
    values = {each.name: each.number.value for each in recorded.scores if each.target == target}
    return Solved(names, tuple(values.get(name) for name in names), graph.solve())


def _shown(recorded: Recorded) -> Target:
    if recorded.final is not None:
        return recorded.final
    return recorded.rounds[-1] if recorded.rounds else ()
