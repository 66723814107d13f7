"""Finds a ledger's chain for some rows, and other chains that may be about the same rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from afresh.engines.identity import ColumnDigest, Identity
from afresh.errors import BrokenChain, SameRows
from afresh.ledger.journal import Chain, Transaction
from afresh.ledger.known import KeyedIdentity, Match, is_same, match, seal_sketch, unveil
from afresh.ledger.records import DEALING, START, Opened, decode, seal


def search(transaction: Transaction, identity: Identity) -> tuple[Chain | None, Iterator[tuple[Opened, Match]]]:
    """Return the chain of these rows, or else the first records of chains that may have the same rows.

    It reads the records themselves: anything else in the storage could be damaged without the records showing it.
    """
    others = []
    key, sketches = transaction.key(), transaction.sketches()
    for chain in transaction.chains():
        opened = opened_by(transaction, chain)
        sketch = "" if opened.sketch is None else sketches.get(chain.id, "")
        if opened.sketch not in (None, seal_sketch(chain.seed, key, sketch)):
            raise _damaged(chain)
        known = _identity(opened, chain, sketch)
        if is_same(known, chain.seed, identity):
            return chain, iter(())
        others.append((chain.seed, opened, known))
    transaction.check()  # rows whose chain is only hidden must not be reported as never seen
    return None, _alike(others, identity)


def _alike(others: Sequence[tuple[str, Opened, KeyedIdentity]], identity: Identity) -> Iterator[tuple[Opened, Match]]:
    """Give the first records of chains that may have the same rows, as they are compared, which takes longest.

    Such a chain shares columns or most different rows with them, or has as many rows and was begun by a version whose
    hashes may differ.
    """
    for seed, opened, known in others:
        found = match(known, seed, identity)
        if found is None and opened.dealing < DEALING and opened.rows == identity.rows and not opened.simulated:
            found = Match(same=False)  # rows may have been recognized by another rule then
        if found is not None:
            yield opened, found


def opened_by(transaction: Transaction, chain: Chain) -> Opened:
    """Return the first record of a chain, if it is the one the chain was created with."""
    record = transaction.first(chain)
    try:
        if record is None or seal(START, record.text) != record.hash:
            raise BrokenChain
        opened = decode(record.text)
        if not isinstance(opened, Opened) or hashlib.sha256(chain.seed.encode()).hexdigest() != opened.seed_digest:
            raise BrokenChain
    except BrokenChain:
        raise _damaged(chain) from None
    return opened


def _identity(opened: Opened, chain: Chain, sketch: str) -> KeyedIdentity:
    """Return what a chain says about its rows."""
    try:
        names = unveil(chain.seed, opened.names) or ("",) * len(opened.columns)
        columns = [
            ColumnDigest(name, each["unordered"], each["ordered"])
            for name, each in zip(names, opened.columns, strict=True)
        ]
    except (TypeError, KeyError, ValueError):
        raise _damaged(chain) from None
    return KeyedIdentity(opened.rows, opened.data, tuple(columns), sketch)


def _damaged(chain: Chain) -> BrokenChain:
    return BrokenChain(
        f"the ledger is damaged: guard {chain.id} does not begin with the record that was written, so it is "
        "unknown whether your rows are its rows; restore the ledger from a copy. A new one would forget what was spent."
    )


def same_rows(opened: Opened, found: Match) -> SameRows:
    """Return the refusal of rows that look like known ones, or that may be known ones."""
    different = (
        'If these are different rows, say why: new_rows="drawn in March, none was there before". The text is recorded '
        "and shown in receipts. Nothing was charged."
    )
    if not found.columns and not found.rows:
        return SameRows(
            f"this ledger has a dataset of {opened.rows:,} rows, as many as this one, that an earlier afresh opened on "
            f"{opened.at:%Y-%m-%d %H:%M} UTC and recognizes in another way: whether these are the same rows cannot be "
            f"told, and rows have one budget. Its receipts stay valid; to go on with it, use that afresh. {different}"
        )
    shared = "most of its different rows"
    edited = "some dropped, added or repeated (so does a new sample of few kinds of rows)"
    if found.columns:
        shared, edited = f"the column{'s' if len(found.columns) > 1 else ''} {found.words}", "edited"
    who = f" by {opened.analyst}" if opened.analyst else ""
    return SameRows(
        f"this dataset shares {shared} with one of {opened.rows:,} rows that was opened{who} on "
        f"{opened.at:%Y-%m-%d %H:%M} UTC with this ledger: it looks like the same rows, {edited}. Rows have one "
        f"budget; to go on with it, open that dataset as it was. {different}"
    )
