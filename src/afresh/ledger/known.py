"""Whose rows they are: data that a ledger knows again, though it keeps nothing but keyed hashes of them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class ColumnDigest(Protocol):
    """Hashes of one column's values: in whatever order, and in the order of the rows; None where they say little."""

    @property
    def name(self) -> str:
        """The column's name."""
        ...

    @property
    def unordered(self) -> str | None:
        """A hash of its values, whatever their order."""
        ...

    @property
    def ordered(self) -> str | None:
        """A hash of its values in the order of the rows."""
        ...


class Identity(Protocol):
    """What an engine says about its rows."""

    @property
    def rows(self) -> int:
        """How many there are."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of all rows, whatever their order."""
        ...

    @property
    def columns(self) -> Sequence[ColumnDigest]:
        """Hashes of single columns."""
        ...


@dataclass(frozen=True, slots=True)
class PlainIdentity:
    """An identity without columns."""

    fingerprint: str
    rows: int
    columns: tuple[ColumnDigest, ...] = ()


def keyed_name(seed: str, identity: Identity) -> str:
    """The name of the rows that may be published."""
    return _keyed(seed, "rows", identity.fingerprint)


def keyed_columns(seed: str, identity: Identity) -> list[Mapping[str, str | None]]:
    """The keyed hashes of columns."""
    return [
        {
            "name": column.name,
            "unordered": None if column.unordered is None else _keyed(seed, "column", column.unordered),
            "ordered": None if column.ordered is None else _keyed(seed, "ordered", column.ordered),
        }
        for column in identity.columns
    ]


def shared_columns(seed: str, known: Sequence[Mapping[str, str | None]], identity: Identity) -> list[str]:
    """The columns of `identity` whose values are those of a known column, by their names now."""
    have = {(kind, column[kind]) for column in known for kind in ("unordered", "ordered") if column[kind] is not None}
    return [
        str(column["name"])
        for column in keyed_columns(seed, identity)
        if any((kind, column[kind]) in have for kind in ("unordered", "ordered"))
    ]


def _keyed(seed: str, purpose: str, text: str) -> str:
    return hmac.new(bytes.fromhex(seed), f"afresh {purpose}\n{text}".encode(), hashlib.sha256).hexdigest()
