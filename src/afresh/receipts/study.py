"""An earlier study over some of the same rows: what it revealed, from its receipt."""

from __future__ import annotations

import os
from pathlib import Path

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.receipts.format import loads
from afresh.receipts.verification import verify


def spent_by(study: object) -> tuple[str, float]:
    """Read the head and the nats spent of an earlier study from its receipt.

    Args:
        study: The receipt as a dict, or the path of its JSON file.

    Returns:
        The head of the study's chain, and the nats it has spent.

    Raises:
        InvalidArgument: It is not a receipt, does not verify, or its method does not account for information.
    """
    study = read_study(study)
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


def read_study(study: object) -> object:
    """Return the receipt of a study, read from its file if a path is given."""
    if not isinstance(study, str | os.PathLike):
        return study
    try:
        return loads(Path(study).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise checks.wrong("study", study, "the receipt of a guard, or its file") from None
