"""A receipt: plan, questions, answers, intervals, charges and the chain of a guard, in one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from afresh.ledger.collector import paused
from afresh.receipts.format import FORMATS, NAME, read_chain, texts
from afresh.version import __version__

if TYPE_CHECKING:
    from afresh.ledger.journal import Sealed


@paused()
def make_receipt(chain: Sequence[Sealed]) -> dict[str, Any]:
    """Make the receipt of a guard with this chain, in the newest format.

    Args:
        chain: All records of the guard, in order.

    Returns:
        A JSON-ready document; `Guard.receipt` makes the same.
    """
    version = max(FORMATS)
    return {
        "format": NAME,
        "version": version,
        "made_by": f"afresh {__version__}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **FORMATS[version].write(read_chain(texts(chain))),
    }
