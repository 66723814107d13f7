"""What was revealed outside of a guard, converted into charges its certificate admits.

`calibrated` charges the KL stability of every answer (section 2 of docs/guarantees.md), and so admits everything that
has one: differential privacy, a mean with Gaussian noise. `stabilized` needs more of every answer than that
(section 10): of foreign releases only means with fixed Gaussian noise have it, of no larger charge than an answer of
its own. `split` promises nothing about rows of which something is known, and admits nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.theory.composition import from_pure_dp, from_zcdp, on_some_rows
from afresh.theory.stability import fixed_gaussian_charge
from afresh.theory.stabilized import row_share, stabilized_charge

if TYPE_CHECKING:
    from afresh.ledger import Outside
    from afresh.planning.plan import Plan

_STABILITIES: dict[str, Callable[[float], float]] = {
    "kl": lambda eps: eps,
    "zcdp": from_zcdp,
    "pure_dp": from_pure_dp,
}
KINDS = {*_STABILITIES, "noise_sd", "study"}


def convert(plan: Plan, revealed: str, basis: dict[str, float | None], rows: int | None, count: int) -> Outside:
    """The charges of something revealed: `basis` names one of `KINDS` and gives its value.

    The value of a study is the nats it spent, which is what its rows' stability adds up to, however many they are.
    """
    given = {name: value for name, value in basis.items() if value is not None}
    if len(given) != 1 or not given.keys() <= KINDS:
        raise InvalidArgument(
            f"say with exactly one of {', '.join(sorted(KINDS))} how what was revealed was protected, got "
            f"{', '.join(given) or 'none'}. An exact number, or (eps, delta)-privacy with delta > 0, bounds no "
            "information at all and cannot be charged: ask other rows instead."
        )
    ((kind, value),) = given.items()
    value = checks.number(kind, value, "a positive number, from 1e-100 to 1e100", least=1e-100, most=1e100)
    m = plan.rows if rows is None else checks.whole("rows", rows, 1, plan.rows, ", those of the data")
    count = checks.whole("count", count, 1)
    return _converted(plan, revealed, kind, value, m, count)


def _converted(plan: Plan, revealed: str, kind: str, value: float, m: int, count: int) -> Outside:
    from afresh.ledger import Outside

    words = {kind: value, "rows": float(m), "count": float(count)}
    if plan.method == "calibrated" and kind == "study":
        return Outside(revealed, words, charge=value * count)
    if plan.method == "calibrated":
        stability = fixed_gaussian_charge(value, m) if kind == "noise_sd" else _STABILITIES[kind](value)
        return Outside(revealed, words, charge=count * plan.rows * on_some_rows(stability, m, plan.rows))
    if plan.method == "stabilized" and kind == "noise_sd":
        return _fixed_noise(plan, revealed, words, value, m, count)
    raise InvalidArgument(
        f"the certificate of method={plan.method!r} cannot account for this"
        + (
            ": it bounds more than the stability of its answers, which other releases do not have. Means with Gaussian "
            "noise can be charged to it (noise_sd=); for anything else, open data with method='calibrated'."
            if plan.method == "stabilized"
            else ", because it needs rows of which nothing is known; open data with method='calibrated'."
        )
    )


def _fixed_noise(plan: Plan, revealed: str, words: dict[str, float], sd: float, rows: int, count: int) -> Outside:
    """Plain fixed noise is Theta with the floor v0 = 1/4, where Theta(m) = m (section 10, unequal answers)."""
    from afresh.ledger import Outside

    if not (rows - 1) / 4 > 1:
        raise InvalidArgument(f"rows == {rows}, must be more than 5 for a mean with noise to be charged.")
    charge = stabilized_charge(rows, 0.25, sd)
    if charge > plan.charge:
        least = math.sqrt(stabilized_charge(rows, 0.25, 1.0) / plan.charge)
        raise InvalidArgument(
            f"noise_sd == {sd}: the plan admits no answer of a larger charge than its own, {plan.charge:.4g} nats, and "
            f"this is {charge:.4g}; the noise would have to be at least {least * 1.001:.4g}."  # rounded up
        )
    row = row_share(rows, 0.25, charge)
    return Outside(revealed, words, charge=count * charge, row_charge=count * row, answers=count)


def spent_by(study: object) -> tuple[str, float]:
    """The head and the nats of an earlier study, from its receipt: the document, or the path of its file."""
    from afresh.receipts import verify
    from afresh.receipts.format import loads

    if isinstance(study, str | os.PathLike):
        try:
            study = loads(Path(study).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise checks.wrong("study", study, "the receipt of a guard, or its file") from None
    outcome = verify(study)
    assert isinstance(study, dict)
    if not outcome.passed:
        raise InvalidArgument("the receipt of the study does not verify; see `afresh verify`.")
    if study["plan"]["information"] is None:
        raise InvalidArgument(
            f"the study was answered by method={study['plan']['method']!r}, whose answers bound no information about "
            "all rows; it cannot be charged."
        )
    return outcome.head, float(study["spent"]["information"])
