"""Plans as JSON and back, with every constant: a client reads from it what the guard would."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from afresh.ledger.base import Limits
from afresh.planning.plan import Plan


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """All that makes a plan, and what it says of itself."""
    return {**plan.to_dict(), "in_words": plan.in_words, "limits": asdict(plan.limits)}


def plan_from_json(document: Any) -> Plan:
    """The same plan."""
    return Plan.thaw(Limits(**document["limits"]))
