"""What was revealed outside a guard, converted into charges its certificate admits.

Each mechanism states what it admits. `calibrated` charges the KL stability of every answer (section 2 of
docs/guarantees.md), so it admits everything that has one: differential privacy, a mean with Gaussian noise.
`stabilized` requires more of every answer (section 10): among outside releases only means with fixed Gaussian noise
qualify, if they are charged no more than one of its own answers. `split` and `guess-and-check` promise nothing about
rows that anything else has revealed information about, and admit nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from afresh import checks
from afresh.errors import InvalidArgument

if TYPE_CHECKING:
    from afresh.ledger import Outside
    from afresh.planning.plan import Plan

KINDS = {"kl", "zcdp", "pure_dp", "noise_sd", "study"}


def convert(plan: Plan, revealed: str, basis: dict[str, float | None], rows: int | None, count: int) -> Outside:
    """Return the charges for something revealed: `basis` names one of `KINDS` and gives its value."""
    from afresh.ledger import Outside

    given = {name: value for name, value in basis.items() if value is not None}
    if len(given) != 1 or not given.keys() <= KINDS:
        raise InvalidArgument(
            f"state with exactly one of {', '.join(sorted(KINDS))} how the release was protected; got "
            f"{', '.join(given) or 'none'}. An exact number, or (eps, delta)-privacy with delta > 0, bounds no "
            "information at all and cannot be charged: ask other rows instead."
        )
    ((kind, value),) = given.items()
    value = checks.number(kind, value, "a positive number, from 1e-100 to 1e100", least=1e-100, most=1e100)
    m = plan.rows if rows is None else checks.whole("rows", rows, 1, plan.rows, ", those of the data")
    count = checks.whole("count", count, 1)
    charges = plan.mechanism.charge_outside(kind, value, m, count)
    return Outside(revealed, {kind: value, "rows": float(m), "count": float(count)}, *charges)
