"""How known data is recognized: what a ledger keeps of an identity, keyed with a secret, and how it is matched.

Only keyed digests are stored, and names of columns are encrypted: someone who reads a receipt, or a ledger without its
seed, cannot test guesses about rows, nor see the columns that a service hides.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass

from afresh.engines.identity import ColumnDigest, Identity
from afresh.engines.identity.records import ENOUGH_VALUES
from afresh.engines.identity.sketch import in_common


@dataclass(frozen=True)
class KeyedIdentity:
    """An identity whose digests are keyed."""

    rows: int
    fingerprint: str
    columns: tuple[ColumnDigest, ...]
    sketch: str
    """As it is: the ledger's own key made it."""

    @property
    def stored(self) -> list[dict[str, str | None]]:
        """The columns as a record keeps them, without their names."""
        return [{"unordered": column.unordered, "ordered": column.ordered} for column in self.columns]


@dataclass(frozen=True)
class Match:
    """How data matches known data: as the same table, by columns, each with its name here and there, or by rows."""

    same: bool
    columns: tuple[tuple[str, str], ...] = ()
    rows: bool = False

    @property
    def words(self) -> str:
        """Name the columns that match: `age`, `y` (there `label`)."""
        return ", ".join(
            repr(here) if there in (here, "") else f"{here!r} (there {there!r})" for here, there in self.columns
        )


def keyed(seed: str, identity: Identity) -> KeyedIdentity:
    """Return an identity as a ledger keeps it: every digest becomes its HMAC with the seed; names stay, for `veil`."""
    columns = tuple(
        ColumnDigest(one.name, _keyed(seed, "values", one.unordered), _keyed(seed, "order", one.ordered))
        for one in identity.columns
    )
    fingerprint = _keyed(seed, "rows", identity.fingerprint)
    assert fingerprint is not None
    return KeyedIdentity(identity.rows, fingerprint, columns, identity.sketch)


def is_same(known: KeyedIdentity, seed: str, identity: Identity) -> bool:
    """Whether data is known data, keyed with the seed, by its fingerprint."""
    return hmac.compare_digest(_keyed(seed, "rows", identity.fingerprint) or "", known.fingerprint)


def match(known: KeyedIdentity, seed: str, identity: Identity) -> Match | None:
    """Match data with known data, keyed with the seed; None if they share nothing that identifies rows."""
    if is_same(known, seed, identity):
        return Match(same=True)
    here = keyed(seed, identity)
    values = {one.unordered: one.name for one in reversed(known.columns) if one.unordered is not None}
    order = {one.ordered: one.name for one in reversed(known.columns) if one.ordered is not None}
    found = []
    for one in here.columns:
        there = values.get(one.unordered or "", order.get(one.ordered or ""))
        if there is not None:
            found.append((one.name, there))
    if found:
        return Match(same=False, columns=tuple(found))
    # Unrelated tables may have a few rows in common, such as two booleans; then names tell them apart.
    named = _names(here) == _names(known)
    return Match(same=False, rows=True) if in_common(here.sketch, known.sketch, 1 if named else ENOUGH_VALUES) else None


def seal_sketch(seed: str, key: str, sketch: str) -> str:
    """Return what shows that a guard has the sketch it was opened with, and the ledger the key that made it."""
    return hmac.digest(seed.encode(), f"sketch:{key}:{sketch}".encode(), "sha256").hex()


_BLOCK = 256  # bytes: lengths say little about names


def veil(seed: str, names: Sequence[str]) -> str:
    """Encrypt the names of a guard's columns. A seed does so once, so no part of its stream is used twice."""
    text = json.dumps(list(names)).encode()
    return _mixed(seed, text + b" " * (-len(text) % _BLOCK)).hex()


def unveil(seed: str, veiled: str) -> tuple[str, ...]:
    """Return the names that `veil` encrypted; none if the record is from before names were encrypted."""
    return tuple(map(str, json.loads(_mixed(seed, bytes.fromhex(veiled))))) if veiled else ()


def _mixed(seed: str, text: bytes) -> bytes:
    stream = hashlib.shake_256(f"names:{seed}".encode()).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, stream, strict=True))


def plain(fingerprint: str, rows: int) -> Identity:
    """Return the identity of rows known only by name."""
    return Identity(rows, fingerprint, ())


def _names(identity: KeyedIdentity) -> list[str]:
    return sorted(column.name.lower() for column in identity.columns)


def _keyed(seed: str, role: str, digest: str | None) -> str | None:
    if digest is None:
        return None
    return hmac.digest(seed.encode(), f"{role}:{digest}".encode(), "sha256").hex()
