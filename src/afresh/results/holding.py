"""What a ledger holds: the datasets opened with it, and what is left of their budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from afresh.results import show

_SHOWN = 6  # columns


@dataclass(frozen=True, slots=True)
class Held:
    """One dataset in a ledger. A ledger knows rows by their content, so it cannot say where they are stored."""

    data: str
    """The name by which receipts identify the rows."""
    rows: int
    columns: tuple[str, ...]
    opened_at: str
    opened_by: str
    plan: str
    """The plan in words."""
    fixed: bool
    """Whether the plan is fixed: something was answered, charged or divided."""
    spent: int
    left: int
    last_asked_at: str | None
    simulated: bool

    @property
    def words(self) -> str:
        """Its rows, its history and its budget, in a paragraph."""
        more = f" and {len(self.columns) - _SHOWN} more" if len(self.columns) > _SHOWN else ""
        by = f" by {self.opened_by}" if self.opened_by else ""
        asked = f", last asked {_minute(self.last_asked_at)}" if self.last_asked_at else ""
        plan = self.plan if self.fixed else f"{self.plan} (not fixed until the first answer)"
        return (
            f"{self.rows:,} rows: {', '.join(self.columns[:_SHOWN])}{more}. "
            f"Opened {_minute(self.opened_at)}{by}{asked}. {plan}; {self.spent:,} spent, {self.left:,} left."
            + (" A simulation: its noise is predictable." if self.simulated else "")
        )


@dataclass(frozen=True, slots=True)
class Holding(show.Told):
    """Everything a ledger holds, in the order of opening."""

    place: str
    datasets: Sequence[Held]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"ledger": self.place, "datasets": [asdict(each) for each in self.datasets]}

    def _blocks(self) -> list[show.Block]:
        count = len(self.datasets)
        title = show.Title(f"{self.place} holds {count:,} dataset{'' if count == 1 else 's'}")
        return [title, *(show.Line(f"{each.data[:8]}  {each.words}") for each in self.datasets)]


def _minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"
