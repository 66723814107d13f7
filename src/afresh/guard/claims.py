"""Claims: "this mean lies between a and b", passed or not, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.guard.tasked import Tasked
from afresh.mechanisms.tasks import Claim
from afresh.queries.asked import Asked
from afresh.queries.group import GroupMean
from afresh.queries.text import number
from afresh.results.claims import Claimed

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.guard.path import Reply
    from afresh.mechanisms.tasks import Task
    from afresh.queries.base import RowQuestion
    from afresh.theory.symbols import Trail


def of_mean(query: RowQuestion, between: Any, words: str | None = None) -> Tasked:
    """The claim that a mean lies between two ends, in the question's units."""
    low, high = ends_of(between, query.bounds)
    bottom, top = query.bounds
    ends = [(end - bottom) / (top - bottom) for end in (low, high)]
    task = Claim(max(ends[0], 0.0), min(ends[1], 1.0))
    text = f"claim: {words or query.text} is between {number(low)} and {number(high)}"
    return Tasked((query,), task, text, query.bounds, query.levels)


def ends_of(between: Any, bounds: tuple[float, float]) -> tuple[float, float]:
    """Two ends within the bounds; None means the bound itself."""
    must_be = f"two numbers in order within ({number(bounds[0])}, {number(bounds[1])}), one of which may be None"
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise checks.wrong("between", between, must_be)
    given = [bound if end is None else end for end, bound in zip(between, bounds, strict=True)]
    found = checks.numbers(tuple(given))
    if len(found) != 2 or not bounds[0] <= found[0] < found[1] <= bounds[1] or tuple(found) == bounds:
        raise checks.wrong("between", between, must_be)
    return found[0], found[1]


def single(asked: Asked, *, public: bool) -> RowQuestion:
    """The one question of a claim; a mean over some of the rows is tested by those rows, as draws from the group (15).

    Not if features are public: which rows are in the group is then not random, and the true value is a different one.
    """
    if len(asked.queries) == 1:
        return asked.queries[0]
    if public:
        raise InvalidArgument(
            "a claim over some of the rows needs rows drawn from a population, but here their features are public and "
            'only labels are random: leave out where, or claim the share of all rows, as in "churned AND tenure < 3".'
        )
    return GroupMean(asked.text, *asked.queries)


def ask_task(desk: Desk, analyst: str, tasked: Tasked, about: str) -> Reply:
    """Return the symbol, paid for and recorded like any answer."""
    desk.check_open()
    asked = Asked(
        queries=(tasked,), question=tasked.text, bounds=tasked.bounds, about_value=about, about_missing="", own=True
    )
    return desk.answer([asked], analyst)[0]


def put(desk: Desk, analyst: str, tasked: Tasked, deviation: float | None = None) -> Claimed:
    """Test a claim."""
    reply = ask_task(desk, analyst, tasked, "a claim")
    released: Any = _released(reply)
    passed = bool(released["passed"])
    found = detectable(desk, tasked, before(released), deviation)
    said = "It is true" if passed else "Had it passed, it would be true"
    covers = f"{said} {desk.target}, together with everything else this guard certifies, {desk.odds}."
    return Claimed(
        claim=tasked.text.split(": ", 1)[1],
        passed=passed,
        detects=found,
        confidence=desk.plan.confidence,
        covers=desk.covers(covers),
        method=desk.plan.method,
        charged=len(reply.charged),
        left=reply.left,
        simulated=desk.terms.simulated,
    )


def detectable(
    desk: Desk, tasked: Tasked, trail: Trail, deviation: float | None, share: float = 1.0, **contest: Any
) -> float:
    """Return how far inside its ends the truth must lie for a claim after this path to pass, in the answer's units.

    Within a group of this share of the rows; or for the winner of a `contest` among several.
    """
    mechanism: Any = desk.plan.mechanism
    task: Task = tasked.task
    assert isinstance(task, Claim)
    scale = tasked.bounds[1] - tasked.bounds[0]
    one_sided = task.low <= 0 or task.high >= 1
    mean = (task.high if task.low <= 0 else task.low) if one_sided else (task.low + task.high) / 2
    unequal = desk.scope.features == "public"
    unit = None if deviation is None else deviation / scale
    found = mechanism.detects(trail, mean, unit, levels=tasked.levels, unequal=unequal, share=share, **contest)
    return float(found * scale)


def present(
    desk: Desk, tasked: Tasked, deviation: float | None = None, share: float | None = None, **contest: Any
) -> float:
    """Return the same for a claim made now, or a contest held now."""
    desk.check_open()
    desk.questions([Asked(queries=(tasked,), question="", bounds=tasked.bounds, about_value="", about_missing="")])
    mechanism: Any = desk.plan.mechanism
    if deviation is not None:
        deviation = checks.number("deviation", deviation, "a standard deviation, in the answer's units", least=0)
    if share is None:
        share = 1.0
    elif not isinstance(tasked.inner[0], GroupMean):
        raise InvalidArgument("share= is the share of rows in the group, but all rows count here; leave it out.")
    share = checks.number("share", share, "above 0 and at most 1, the share of rows in the group", above=0, most=1)
    return detectable(desk, tasked, mechanism.trail(desk.ledger.released(desk.terms)), deviation, share, **contest)


def _released(reply: Reply) -> Any:
    outcome = reply.parts[0].entry.outcome
    assert outcome is not None
    return outcome.released


def before(released: Any) -> Trail:
    """The path before a symbol, as it was recorded."""
    from afresh.theory.symbols import Trail

    return Trail(int(released["steps"]), int(released["events"]), float(released["nats"]))
