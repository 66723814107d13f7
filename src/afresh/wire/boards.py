"""The rules of a board as JSON and back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from afresh.boards.rules import Rules
from afresh.errors import ServiceError


def rules_to_json(rules: Rules) -> dict[str, Any]:
    """Write the rules, with lengths of time in seconds."""
    return {
        "reveal": rules.reveal,
        "against": rules.against,
        "limit": rules.limit,
        "per": None if rules.per is None else rules.per.total_seconds(),
        "every": None if rules.every is None else rules.every.total_seconds(),
    }


def rules_from_json(document: Any) -> Rules:
    """Read what `rules_to_json` wrote."""
    try:
        lengths = {key: None if document[key] is None else timedelta(seconds=document[key]) for key in ("per", "every")}
        return Rules(document["reveal"], document["against"], document["limit"], **lengths)
    except (KeyError, TypeError, ValueError):
        raise ServiceError("the service sent a board that this afresh cannot read; update afresh.") from None
