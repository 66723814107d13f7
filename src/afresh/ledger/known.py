"""Whether data is known: what a ledger keeps of an identity, keyed with a secret, and how it is recognized.

Only keyed digests are stored: whoever reads a ledger without its seed, or a receipt, cannot test guesses about rows.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import asdict, dataclass

from afresh.engines.identity import ColumnDigest, Identity


@dataclass(frozen=True)
class KeyedIdentity:
    """An identity whose digests are keyed."""

    rows: int
    fingerprint: str
    columns: tuple[ColumnDigest, ...]

    @property
    def stored(self) -> list[dict[str, str | None]]:
        """The columns as a record keeps them."""
        return [asdict(column) for column in self.columns]


@dataclass(frozen=True)
class Match:
    """How data meet known ones: as the same, or by columns, each with the name it has here and the one it had there."""

    same: bool
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> str:
        """The columns that match, in words: `age`, `y` (there `label`)."""
        return ", ".join(repr(here) if here == there else f"{here!r} (there {there!r})" for here, there in self.columns)


def keyed(seed: str, identity: Identity) -> KeyedIdentity:
    """An identity as a ledger keeps it: every digest is its HMAC with the seed, names stay."""
    columns = tuple(
        ColumnDigest(one.name, _keyed(seed, "values", one.unordered), _keyed(seed, "order", one.ordered))
        for one in identity.columns
    )
    fingerprint = _keyed(seed, "rows", identity.fingerprint)
    assert fingerprint is not None
    return KeyedIdentity(identity.rows, fingerprint, columns)


def match(known: KeyedIdentity, seed: str, identity: Identity) -> Match | None:
    """How a dataset matches a known one, keyed with the seed; None if they have nothing distinctive in common."""
    here = keyed(seed, identity)
    if hmac.compare_digest(here.fingerprint, known.fingerprint):
        return Match(same=True)
    values = {one.unordered: one.name for one in reversed(known.columns) if one.unordered is not None}
    order = {one.ordered: one.name for one in reversed(known.columns) if one.ordered is not None}
    found = []
    for one in here.columns:
        there = values.get(one.unordered or "") or order.get(one.ordered or "")
        if there is not None:
            found.append((one.name, there))
    return Match(same=False, columns=tuple(found)) if found else None


def plain(fingerprint: str, rows: int) -> Identity:
    """Rows known only by name."""
    return Identity(rows, fingerprint, ())


def _keyed(seed: str, role: str, digest: str | None) -> str | None:
    if digest is None:
        return None
    return hmac.new(seed.encode(), f"{role}:{digest}".encode(), hashlib.sha256).hexdigest()
