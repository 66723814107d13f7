"""A plan in words: the ways to ask with their widths, what would be twice as narrow, and the details on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afresh.mechanisms.base import TYPICAL_MEANS
from afresh.planning.table import table
from afresh.planning.ways import about_numbers, would_tell
from afresh.results import show

if TYPE_CHECKING:
    from afresh.planning.plan import Plan

COLUMNS = 80
_SAID_ELSEWHERE = ("rows", "questions", "failure")


class Details(show.Told):
    """Everything there is to say about a plan: `print(plan.details)`, `afresh plan --all`."""

    def __init__(self, plan: Plan) -> None:
        """Describe this plan."""
        self.plan = plan

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, like the plan itself."""
        return self.plan.to_dict()

    def __str__(self) -> str:
        """In 80 columns."""
        return show.as_text(self._blocks(), COLUMNS)

    def _blocks(self) -> list[show.Block]:
        return [*summary(self.plan)[:-1], *details(self.plan)]


def summary(plan: Plan) -> list[show.Block]:
    """What a person needs to know before opening data."""
    middle, *others = TYPICAL_MEANS
    asked = plan.in_count[0].upper() + plan.in_count[1:]
    title = f"{asked} about {plan.rows:,} rows: all intervals hold at once at {show.percent(plan.confidence)}"
    ways = [[f"±{show.width(way.half_width)}", way.words] for way in plan.ways]
    rest = " and ".join(f"±{show.width(plan.half_width(mean))} near {mean:g}" for mean in others)
    own = f"{plan.method}: ±{show.width(plan.half_width(middle))} for a share near {middle:g}, {rest}"
    own += f", {proviso}" if (proviso := plan.mechanism.proviso) else ""
    return [
        show.Title(title),
        *([show.Table(["half-width", "how to ask"], ways)] if ways else []),
        show.Line(f"This plan uses {own}."),
        *([show.Line(numbers)] if (numbers := about_numbers(plan.mechanism)[0]) else []),
        *([show.Line(twice)] if (twice := twice_as_narrow(plan)) else []),
        show.Line("All methods and constants: plan.details, or --all on the command line."),
    ]


def twice_as_narrow(plan: Plan) -> str:
    """What would halve the width of this plan's answers; nothing for a budget that never runs out."""
    if plan.expected is not None:
        return ""
    now = plan.half_width()
    changes = would_tell(plan.mechanism, now, now / 2, lambda m: m.half_width(0.5))
    choice = ", any one of" if len(changes) > 1 else ""
    return f"For answers twice as narrow{choice}: {'; '.join(changes)}." if changes else ""


def details(plan: Plan) -> list[show.Block]:
    """The method with its constants, and the comparison of all methods."""
    constants = {k: v for k, v in plan.parameters.items() if k not in _SAID_ELSEWHERE and v is not None}
    return [
        show.Facts(
            {
                "method": plan.method,
                "information": plan.mechanism.accounted,
                "failure": ", ".join(f"{v:.4g} {k}" for k, v in plan.failure_use.items()),
                "constants": ", ".join(f"{k}={v:.6g}" for k, v in constants.items()) or "none",
            }
        ),
        table(plan.methods, plan.method),
        show.Facts({name: method.about for name, method in plan.methods.items()}),
        show.Line(plan.advice),
    ]
