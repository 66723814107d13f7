"""Predictions on their way to a service."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from afresh import checks
from afresh.client.desk import RemoteDesk
from afresh.errors import InvalidArgument
from afresh.models.predictions import Predicted


class Sent(Predicted):
    """Predictions that were made here."""

    def __init__(self, name: str | None, kind: str, values: Any) -> None:
        """`kind` is the model's default name."""
        super().__init__(name or kind, "", lambda: (values, None))
        self.given, self.kind = name, kind


def send(desk: RemoteDesk, path: str, predicted: Sequence[Any], **options: Any) -> Any:
    """Send predictions to a door, as one array or as JSON, and return its answer. None arguments are left out."""
    desk.check_open()
    names = [each.given for each in predicted]
    if any(name is None for name in names) and not all(name is None for name in names):
        names = [each.given or each.kind for each in predicted]
    told = {**options, "kinds": [each.kind for each in predicted]}
    told["names"] = names if names and names[0] is not None else None
    told = {name: value for name, value in told.items() if value is not None}
    arrays = [_as_array(each.values) for each in predicted]
    plain = all(each.dtype.kind in "biuf" and each.ndim in (1, 2) for each in arrays)
    if plain and len({(each.dtype.str, each.shape) for each in arrays}) == 1:
        out = io.BytesIO()
        np.save(out, np.stack(arrays), allow_pickle=False)
        return desk.connection.send(path, out.getvalue(), "application/x-npy", **told)
    body = {"predictions": [_listed(each.values) for each in predicted], **told}
    return desk.connection.post(path, body)


def _as_array(values: Any) -> Any:
    try:
        if np.ma.is_masked(values):
            raise InvalidArgument("some predictions are masked; there must be one per row.")
        return np.asarray(values)
    except (ValueError, TypeError):
        return np.asarray(None)


def _listed(values: Any) -> Any:
    if hasattr(values, "tolist"):
        return values.tolist()
    if isinstance(values, str) or checks.iterated(values) is None:
        kind = type(values).__name__
        raise InvalidArgument(
            f"predictions of type {kind} are not an array; pass an array or a list with one prediction per row."
        )
    return json.loads(json.dumps(list(values), default=lambda each: each.item()))
