"""Plans as JSON and back, with every constant: a client reads from a plan what the guard would."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from afresh.ledger.base import Limits
from afresh.planning.plan import Plan


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Write everything that defines a plan, and its description."""
    return {**plan.to_dict(), "in_words": plan.in_words, "limits": asdict(plan.limits)}


def plan_from_json(document: Any) -> Plan:
    """Read the same plan back."""
    return Plan.thaw(Limits(**document["limits"]))
