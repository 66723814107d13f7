"""The one contract of an engine: many queries in, one scan, moments out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from afresh.engines.embedded.dealing import Shelf
    from afresh.engines.identity import Identity
    from afresh.moments import Moments, Span
    from afresh.queries.query import Query
    from afresh.queries.tree import Type


class Engine(Protocol):
    """Where rows live. What it reveals besides moments is public: the number of rows and the schema."""

    @property
    def rows(self) -> int:
        """The number of rows, fixed when the data was opened."""
        ...

    @property
    def schema(self) -> Mapping[str, Type | None]:
        """Column names and their types; None marks a column no question can use."""
        ...

    def identity(self, key: str = "") -> Identity:
        """The identity of the rows by their content, in any order and encoding, on any engine; for the ledger only.

        Its sketch depends on the key, the ledger's secret.
        """
        ...

    def state(self) -> str | None:
        """A value that stays the same only as long as the rows do, even for a later process; None if unsure."""
        ...

    @property
    def learnt(self) -> tuple[str, Any] | None:
        """A state of the data, and what makes opening it faster in that state; None if nothing does."""
        ...

    def check_unchanged(self) -> None:
        """Raise `DataChanged` if the data visibly changed since it was opened; reads no row's values."""
        ...

    def shuffle(self, seed: str, shelf: Shelf | None = None) -> None:
        """Give every row a position, by a shuffle that depends only on the seed and the content, on any engine.

        A `shelf` keeps the positions for the next opening of the same data.
        """
        ...

    def prepare(self) -> None:
        """Do now what the first question would wait for."""
        ...

    def moments(self, queries: Sequence[Query], spans: Sequence[Span] | None = None) -> list[Moments]:
        """The moments of every query in one scan, over its own span of the shuffled rows if `spans` is given."""
        ...

    def check_hands_out(self) -> None:
        """Raise `DataError` if rows cannot be handed out, which `hand_out` needs."""
        ...

    def hand_out(self, span: Span) -> Any:
        """Some of the shuffled rows as an Arrow table, in their order, for the analyst who may hold them in full."""
        ...

    def close(self) -> None:
        """Free what the engine holds. Idempotent."""
        ...
