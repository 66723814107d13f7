"""What all engines that speak SQL have in common: the public facts about a table, and questions in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from afresh.engines.identity import Identity
from afresh.engines.simpler import ALL, ask_simpler, common_group, is_filter
from afresh.engines.sql.rendering import Dialect, Statement
from afresh.errors import DataChanged, DataError, EngineError, InvalidArgument
from afresh.moments import Moments, Span
from afresh.queries.query import Query
from afresh.queries.tree import Type

if TYPE_CHECKING:
    from afresh.engines.embedded.dealing import Shelf

FEW = 100_000  # rows below which a shorter statement matters more than a faster one
SEVERAL = 8  # questions from which on a layer that makes their columns finite is shorter than doing so in each


class SqlEngine(ABC):
    """Rows in a table. Subclasses know how to reach it, and call `_opened` when they do."""

    dialect: Dialect
    at_once: int  # queries in one statement; more make planning slow, not the scan
    widest = 1500  # columns a projection of several queries may have; Postgres stops at 1664
    layers = False  # whether a layer below the aggregates takes less time than longer aggregates, on few rows
    filters = False  # whether rows outside the common group are left out, while all rows are still counted

    def _opened(self, columns: Mapping[str, str], rows: int) -> None:
        """Keep what was found when the table was opened, or refuse it."""
        check_names(columns, "the table")
        schema = {name: self.dialect.kind(physical) for name, physical in columns.items()}
        if not any(schema.values()):
            raise DataError("the data have no column that a question can use")
        if rows < 1:
            raise DataError("the data have no rows")
        self._columns, self._rows = dict(columns), rows
        self._schema = MappingProxyType(schema)
        self._identity: tuple[str, Identity] | None = None
        self._seed: str | None = None

    @property
    def rows(self) -> int:
        """The number of rows, fixed when the data was opened."""
        return self._rows

    @property
    def schema(self) -> Mapping[str, Type | None]:
        """Column names and their types; None marks a column no question can use."""
        return self._schema

    @property
    def _many(self) -> bool:
        """Whether there are so many rows that a faster statement matters more than a shorter one."""
        return self._rows >= FEW

    def identity(self, key: str = "") -> Identity:
        """The identity of the rows by their content, wherever and however they are stored; its sketch is by the key."""
        if self._identity is None or self._identity[0] != key:
            self._identity = key, self._identify(key)
        return self._identity[1]

    def shuffle(self, seed: str, shelf: Shelf | None = None) -> None:
        """Give every row a place, by a shuffle that depends only on the seed and the content."""
        self._seed = seed

    def prepare(self) -> None:  # noqa: B027 - not every engine has something to prepare
        """Do now what the first question would wait for: nothing, unless a subclass has something."""

    def state(self) -> str | None:
        """A value that stays the same only as long as the rows do: None, unless a subclass has one."""
        return None

    @property
    def learnt(self) -> tuple[str, Any] | None:
        """What to remember besides the identity: None, unless a subclass has something."""
        return None

    def moments(self, queries: Sequence[Query], spans: Sequence[Span] | None = None) -> list[Moments]:
        """Return the moments of every query in one scan, over its own span of the shuffled rows if `spans` is given.

        Very many queries take one scan for every `at_once` of them.
        """
        if spans is not None:
            self._check_spans(queries, spans)
        return ask_simpler(self._moments, queries, spans)

    def _moments(self, queries: Sequence[Query], spans: Sequence[Span] | None) -> list[Moments]:
        results: list[Moments] = []
        for start in range(0, len(queries), self.at_once):
            part = slice(start, start + self.at_once)
            results += self._scan(queries[part], None if spans is None else spans[part])
        return results

    @abstractmethod
    def check_hands_out(self) -> None:
        """Raise `DataError` if rows cannot be handed out."""

    @abstractmethod
    def hand_out(self, span: Span) -> Any:
        """Return some of the shuffled rows as an Arrow table."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise `DataChanged` if the data is visibly not what was opened."""

    @abstractmethod
    def close(self) -> None:
        """Free what the engine holds. Idempotent."""

    @abstractmethod
    def _identify(self, key: str) -> Identity:
        """Compute the identity."""

    @abstractmethod
    def _evaluate(self, statement: Statement, spans: Sequence[Span] | None) -> tuple[Any, ...]:
        """Return the statement's outputs; raises only `EngineError` and `DataChanged`, which quote nothing."""

    def _scan(self, queries: Sequence[Query], spans: Sequence[Span] | None) -> list[Moments]:
        group = common_group(queries) if self.filters and spans is None else None
        if self.filters and spans is None and self._many and len(queries) == 1 and is_filter(queries[0]):
            group = queries[0].expression
            queries = [Query(ALL, group=group)]
        below = self.layers and not self._many and len(queries) >= SEVERAL
        statement = Statement(self.dialect, self._columns, group, below)
        places = [statement.add(query, spans[i] if spans is not None else None) for i, query in enumerate(queries)]
        if len(queries) > 1 and statement.width > self.widest:
            half = len(queries) // 2
            parts = (slice(half), slice(half, None))
            return [found for p in parts for found in self._scan(queries[p], None if spans is None else spans[p])]
        values = self._evaluate(statement, spans)
        sizes = [self._rows] * len(queries) if spans is None else [span.rows for span in spans]
        found = [[float(value or 0) for value in values[place]] for place in places]  # NULL is the sum of no rows
        # a count is its own sum of squares
        return [Moments(size, sums[0], sums[-1]) for size, sums in zip(sizes, found, strict=True)]

    def _check_spans(self, queries: Sequence[Query], spans: Sequence[Span]) -> None:
        if self._seed is None:
            raise InvalidArgument("spans of rows were asked for, but the rows were not shuffled")
        if len(spans) != len(queries):
            raise InvalidArgument(f"{len(spans)} spans for {len(queries)} queries; every query needs its own")
        for span in spans:
            if not 0 <= span.start < span.stop <= self._rows:
                raise InvalidArgument(
                    f"the span {tuple(span)} is not within the {self._rows} rows; places count from 0"
                )

    def _check_count(self, count: int, expected: int | None = None) -> None:
        if count != (self._rows if expected is None else expected):
            raise DataChanged(
                "the data has a different number of rows than when it was opened; nothing was answered. Open them "
                "again: different rows are a different dataset, with its own budget"
            )


def check_names(names: Iterable[str], what: object) -> None:
    """Refuse columns that a question could not distinguish."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise DataError(
                f"{what} has columns {seen[name.lower()]!r} and {name!r} that differ only in case; rename one"
            )
        seen[name.lower()] = name


def failed() -> EngineError:
    """Return the one error for a statement that failed, whatever the reason: an engine's message may quote rows."""
    return EngineError("the engine failed to read the data; the question was not answered")
