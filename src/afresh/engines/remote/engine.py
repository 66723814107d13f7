"""What the engines over other databases have in common.

A remote table can change at any time. Its number of rows and its schema are read when it is opened and checked
again before every question, before anything is charged; and the statement that answers a question counts the rows
itself, so a change in between is noticed too. Values that change while the number of rows stays the same are not
noticed: the person who opens a table promises that it stays as it is. When it is opened again, a table whose content
has changed has a different fingerprint, hence a different budget.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from afresh.engines.identity import Identity, Sums, identify
from afresh.engines.identity.cells import VERSION
from afresh.engines.sql.engine import SqlEngine
from afresh.engines.sql.rendering import Dialect, Statement
from afresh.errors import DataChanged
from afresh.moments import Span

Step = Any
"""A projection, as texts of SQL; or whatever else an engine puts between two of them."""


class RemoteDialect(Dialect, Protocol):
    """A dialect that can also shuffle rows."""

    def digest(self, text: str) -> str:
        """Return SQL for a text's SHA-256 in hexadecimal."""
        ...


class RemoteEngine(SqlEngine):
    """Rows in a table that is read in place. Subclasses know how to reach it."""

    dialect: RemoteDialect

    @abstractmethod
    def _run(self, steps: Sequence[Step], limit: int | None = None) -> tuple[Any, ...]:
        """Return the one row that a stack of projections gives over the table, or over some of its rows.

        Raises only `EngineError` and `DataChanged`.
        """

    @abstractmethod
    def _sum_rows(self, key: str) -> Sums:
        """Compute what identity needs to know about the rows, where they are."""

    def _identify(self, key: str) -> Identity:
        sums = self._sum_rows(key)
        self._check_count(sums.rows)
        return identify(sums, VERSION)

    def _evaluate(self, statement: Statement, spans: Sequence[Span] | None) -> tuple[Any, ...]:
        scan = [statement.scan()] if spans is None else self._shuffled(statement)
        values = self._run([*scan, *statement.steps()])
        self._check_count(values[0])
        return values

    def check_hands_out(self) -> None:
        """Accept: rows of a table can be handed out in the order of the shuffle, as a table has no order of its own."""

    def hand_out(self, span: Span) -> Any:
        """Return some of the shuffled rows as an Arrow table, in the order of the shuffle."""
        names = [f"raw{place}" for place in range(len(self._columns))]
        scan = [f"{self._raw(name)} AS {alias}" for name, alias in zip(self._columns, names, strict=True)]
        rows = self._fetch([*self._placed(scan, names)], span)
        self._check_count(len(rows), span.rows)
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        return as_table(dict(zip(self._columns, map(list, columns), strict=True)))

    @abstractmethod
    def _raw(self, name: str) -> str:
        """Return SQL for a column of the table as it is."""

    @abstractmethod
    def _fetch(self, steps: Sequence[Step], span: Span) -> list[tuple[Any, ...]]:
        """Return the rows whose last column, the place, is in a span; without that column, in its order."""

    def _shuffled(self, statement: Statement) -> list[Step]:
        """Return the statement's scan with a place for every row."""
        return self._placed(statement.scan(), statement.names)

    def _placed(self, scan: Sequence[str], names: Sequence[str]) -> list[Step]:
        """Return a scan with these names, with a place for every row.

        Nothing can be stored beside the table, so every question shuffles again, by the rule of `embedded.dealing`.
        """
        four = f"concat({self.dialect.quote_text(f'{self._seed}:')}, k - k % 4)"
        quarter = f"substr({self.dialect.digest(four)}, CAST(1 + 16 * (k % 4) AS INT), 16)"
        return [
            *self._hashed(scan, names),
            [*names, "row_number() OVER (ORDER BY h) - 1 AS k"],
            [*names, f"row_number() OVER (ORDER BY {quarter}, k) - 1 AS place"],
        ]

    @abstractmethod
    def _hashed(self, scan: Sequence[str], names: Sequence[str]) -> list[Step]:
        """Return projections that add the hash that identifies every row, called h, to a scan with these names."""

    def _check_columns(self, columns: Mapping[str, str]) -> None:
        if list(columns.items()) != list(self._columns.items()):
            raise DataChanged(
                "the table has different columns or types than when it was opened; nothing was answered. Open it "
                "again: different columns are a different dataset, with its own budget"
            )


def as_table(columns: Mapping[str, list[Any]]) -> Any:
    """Return columns of Python values as an Arrow table; values without an Arrow type become text."""
    import pyarrow as pa

    def array(values: list[Any]) -> Any:
        try:
            return pa.array(values)
        except (pa.ArrowException, TypeError, ValueError):
            return pa.array([None if value is None else str(value) for value in values], pa.string())

    return pa.table({name: array(values) for name, values in columns.items()})
