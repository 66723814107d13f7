"""A receipt: plan, questions, answers, intervals, charges and the chain of a guard, in one JSON document.

Format, version 1. `chain.records` holds the ledger's records verbatim, from the first to the last, and `chain.head` the
hash they lead to; everything else in a receipt is there to be read, and follows from them. A later version may add
fields; it removes none and changes the meaning of none, so that old receipts verify forever.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from afresh.ledger.account import Account
from afresh.reading import record_of

if TYPE_CHECKING:
    from afresh.ledger.journal import Sealed
    from afresh.plan import Plan

FORMAT, VERSION = "afresh receipt", 1


def make_receipt(plan: Plan, chain: Sequence[Sealed]) -> dict[str, Any]:
    """The receipt of a guard with this plan and this chain."""
    from afresh import __version__

    account = Account()
    for sealed in chain:
        account.read(*sealed)
    opened = account.opened
    assert opened is not None
    spent = account.spent()
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"afresh {__version__}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {"fingerprint": opened.fingerprint, "rows": opened.rows},
        "simulated": opened.simulated,
        "plan": {
            "method": plan.method,
            "rows": plan.rows,
            "questions": plan.questions,
            "answers": plan.answers,
            "confidence": plan.confidence,
            "information": plan.information,
            "constants": plan.parameters,
        },
        "opened_at": opened.at.isoformat(),
        "spent": {"answers": spent.answers, "information": spent.information, "outside": spent.outside},
        "answers": [record_of(plan, entry).to_dict() for entry in account.entries],
        "outside": [
            {"what": each.text, "basis": dict(each.basis), "charge": each.charge, "at": each.at.isoformat()}
            for each in account.charged
        ],
        "shares": dict(account.shares),
        "chain": {"head": account.head, "length": account.length, "records": [sealed.text for sealed in chain]},
    }
