"""Losses and statistics as JSON and back: the name of the class, and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from afresh import checks, losses, statistics
from afresh.errors import InvalidArgument

LOSSES = {name: getattr(losses, name) for name in ("Absolute", "Brier", "Cost", "Log", "Pinball", "Squared", "ZeroOne")}
OF_ROWS = (
    "Correlation",
    "Covariance",
    "GroupMeans",
    "Histogram",
    "Quantile",
    "StandardDeviation",
    "Variance",
    "VectorMean",
)
OF_MODELS = ("AUC", "CalibrationError", "F1", "Precision", "Recall")
STATISTICS = {name: getattr(statistics, name) for name in (*OF_ROWS, *OF_MODELS)}


def to_argument(given: Any) -> Any:
    """Write a loss or a statistic as JSON; a name stays as it is."""
    if isinstance(given, str):
        return given
    kind = type(given).__name__
    if {**LOSSES, **STATISTICS}.get(kind) is not type(given):
        raise InvalidArgument(
            f"{checks.shown(given)} cannot be sent to a service, which runs no code of yours; use one of "
            f"{', '.join([*LOSSES, *STATISTICS])}."
        )
    return {"kind": kind, **{each.name: _plain(getattr(given, each.name)) for each in fields(given)}}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def to_loss(document: Any) -> Any:
    """Read the loss in a document, or its name for `make_loss`; None for the holdout's own loss."""
    if document is None or isinstance(document, str):
        return document
    return _made("loss", document, LOSSES)


def to_statistic(document: Any, names: tuple[str, ...]) -> Any:
    """Read the statistic in a document, which must be one of `names`."""
    return _made("statistic", document, {name: STATISTICS[name] for name in names})


def _made(what: str, document: Any, kinds: Mapping[str, Any]) -> Any:
    must_be = f"an object whose kind is one of {', '.join(kinds)}"
    name = document.get("kind") if isinstance(document, Mapping) else None
    if not isinstance(name, str) or name not in kinds:
        raise checks.wrong(what, document, must_be)
    kind = kinds[name]
    given = {name: value for name, value in document.items() if name != "kind"}
    takes = [each.name for each in fields(kind)]
    if unknown := given.keys() - set(takes):
        raise InvalidArgument(
            f"{kind.__name__} takes {', '.join(takes) or 'nothing'}; got {', '.join(sorted(unknown))}."
        )
    try:
        return kind(**{name: _tupled(value) for name, value in given.items()})
    except TypeError:
        raise InvalidArgument(
            f"{kind.__name__} takes {', '.join(takes)}; got {', '.join(given) or 'nothing'}."
        ) from None


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
