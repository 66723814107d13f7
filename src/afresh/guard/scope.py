"""What a guard's answers are about: the population, or these rows' features if the analyst holds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from afresh.errors import InvalidArgument

if TYPE_CHECKING:
    from afresh.queries.base import RowQuestion

Features = Literal["public", "hidden"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a holdout declared about the features of a guard's rows; empty without a holdout."""

    features: Features | None = None
    label: str | None = None
    """With public features, the one column that the analyst does not hold."""
    called: str = "rows"
    """The word for rows."""

    def words(self, rows: int, dealt: bool) -> str:
        """Say what a true value is a mean over."""
        if self.features != "public":
            return f"in the population the {rows:,} {self.called} were drawn from"
        which = "a random part of these rows" if dealt else f"these {rows:,} rows"
        return f"on the features of {which}, if their labels were drawn anew (new rows may differ)"

    def check(self, queries: Iterable[RowQuestion]) -> None:
        """Refuse a question about features the analyst holds: its true value is known, and is not a population's."""
        if self.features != "public":
            return
        for query in queries:
            if query.columns is not None and self.label not in query.columns:
                raise InvalidArgument(
                    f"{query.text} does not read the label {self.label!r}, and you hold all other columns of this "
                    'holdout: compute it from them. With afresh.holdout(..., features="hidden") it can be asked.'
                )

    def joined(self, other: Scope) -> Scope:
        """Return the scope of a guard with one more holdout, which must not reveal what another hides."""
        if self.features is None or self == other:
            return other
        raise InvalidArgument(
            f"this guard has a holdout with features={self.features!r}"
            + (f" and the label {self.label!r}" if self.label is not None else "")
            + "; another one must declare the same, or it would reveal what that one hides. Several labels of one "
            'guard need features="hidden".'
        )
