"""Uploaded predictions: JSON, CSV, Parquet, Arrow or npy; in row order, or by row id.

Nothing is unpickled. CSV, Parquet and Arrow are decoded in a process of their own, with little memory and time.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh import checks
from afresh.errors import InvalidArgument, TooLarge
from afresh.models.predictions import Made
from afresh.server.decode import CSV, decoded

NPY, ARROW = "application/x-npy", "application/vnd.apache.arrow.file"
STREAM, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"
FORMATS = (CSV, NPY, ARROW, STREAM, PARQUET)
_OPTIONS = ("loss", "precision", "names", "kinds", "statistic", "by", "between", "challenge", "incumbent", "bins")
_KNOWN = (*_OPTIONS, "disagreement", "among", "binned")
_JSON = 1_000_000  # bytes: nothing else runs while JSON is read, unlike other formats
_LONGEST = 200  # the most characters in a name


@dataclass(frozen=True)
class Submission:
    """Predictions of one or several models, and what is asked about them."""

    models: list[Any]
    names: list[str] | None
    options: Mapping[str, Any]
    digest: str
    """The digest of the whole request, to recognize a repeat."""


def read_submission(
    body: bytes, media: str, query: Mapping[str, str], rows: int, places: Mapping[str, int] | None, id: str | None
) -> Submission:
    """Read what was uploaded, or raise an error that quotes nothing else."""
    kind = media.partition(";")[0].strip().lower()
    options = _options(query)
    if kind == "application/json":
        names, columns, ids = _from_json(body, options)
    elif kind == NPY:
        names, columns, ids = None, _from_npy(body), None
    elif kind in FORMATS:
        table = decoded(body, kind, rows)
        ids = table.pop(id, None) if id is not None else None
        names, columns = list(table), list(table.values())
    else:
        raise InvalidArgument(
            f"Content-Type == {checks.shown(media)}, must be application/json or one of {', '.join(FORMATS)}."
        )
    if not columns:
        raise InvalidArgument("there are no predictions.")
    if ids is not None:
        order = _order(ids, rows, places)
        columns = [_ordered(each, order) for each in columns]
    given = options.pop("names", None)
    names = _texts("names", given, len(columns)) if given is not None else names
    if names is not None:
        names = _texts("names", names, len(columns))
    kinds = _texts("kinds", options.pop("kinds", None) or ["predictions"] * len(columns), len(columns))
    models = [Made(kind, each) for kind, each in zip(kinds, columns, strict=True)]
    digest = hashlib.blake2b(body)
    digest.update(json.dumps([kind, sorted(query.items())]).encode(errors="surrogatepass"))
    return Submission(models, names, options, digest.hexdigest())


def _options(query: Mapping[str, str]) -> dict[str, Any]:
    """The options after `?` in the address; values are JSON or strings."""
    found: dict[str, Any] = {}
    for name, value in query.items():
        if name not in _KNOWN:
            raise InvalidArgument(f"unknown option {checks.shown(name)}; the options are {', '.join(_KNOWN)}.")
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):
            found[name] = value
    return found


def _from_json(body: bytes, options: dict[str, Any]) -> tuple[list[str] | None, list[Any], Any]:
    if len(body) > _JSON:
        others = ", ".join(FORMATS)
        raise TooLarge(f"predictions in JSON may have at most {_JSON:,} bytes; send more as one of {others}.")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidArgument("the body cannot be read as JSON in UTF-8.") from None
    if not isinstance(document, dict) or "predictions" not in document:
        raise InvalidArgument('the body must be an object such as {"predictions": {"my model": [0, 1]}}.')
    predictions, ids = document.pop("predictions"), document.pop("ids", None)
    if unknown := document.keys() - set(_KNOWN):
        raise InvalidArgument(
            f"unknown key {checks.shown(min(unknown))}; the keys are predictions, ids, {', '.join(_KNOWN)}."
        )
    options |= document
    if ids is not None and not isinstance(ids, list):
        raise checks.wrong("ids", ids, "a list with the id of each prediction's row")
    if isinstance(predictions, dict):
        return list(predictions), list(predictions.values()), ids
    if not isinstance(predictions, list):
        raise checks.wrong("predictions", predictions, "lists by the names of models, or a list of lists")
    return None, predictions, ids


def _from_npy(body: bytes) -> list[Any]:
    """An array whose first axis is the models, or the array of a single model."""
    try:
        _check_length(body)
        array = np.load(io.BytesIO(body), allow_pickle=False)
    except (ValueError, OSError, EOFError, MemoryError, SyntaxError, TypeError):
        raise InvalidArgument(
            "the body is not an array in npy format, version 1 or 2, without Python objects (allow_pickle=False)."
        ) from None
    if not isinstance(array, np.ndarray):
        raise InvalidArgument("the body is a zip of arrays; send one array in npy format.")
    if array.ndim not in (1, 2, 3) or array.dtype.kind not in "biufU":
        raise InvalidArgument(f"an array of shape {array.shape} and type {array.dtype} has no predictions.")
    return [array] if array.ndim == 1 else list(array)


def _check_length(body: bytes) -> None:
    """Refuse an array that claims to be larger than it is: memory is reserved for the claimed size."""
    reader = io.BytesIO(body)
    version = np.lib.format.read_magic(reader)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("another version")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read(reader)
    if kind.hasobject or math.prod(shape) * kind.itemsize != len(body) - reader.tell():
        raise ValueError("objects, or another length")


def _order(ids: Any, rows: int, places: Mapping[str, int] | None) -> list[int]:
    """For every row, the position of its prediction."""
    if places is None:
        raise InvalidArgument("this holdout has no id column: send one prediction per row, in row order.")
    given = [str(each) for each in ids]
    if len(given) != rows:
        raise InvalidArgument(f"there are {rows:,} rows and {len(given):,} ids; there must be one per row.")
    found = [places.get(each, -1) for each in given]
    if -1 in found:
        raise InvalidArgument(f"there is no row with the id {checks.shown(given[found.index(-1)])}.")
    if len(set(found)) < rows:
        raise InvalidArgument("an id appears twice; give one prediction per row.")
    order = [0] * rows
    for place, row in enumerate(found):
        order[row] = place
    return order


def _ordered(column: Any, order: list[int]) -> Any:
    if not hasattr(column, "__len__") or len(column) != len(order):
        raise InvalidArgument(f"there are {len(order):,} ids; there must be equally many predictions.")
    return column[np.asarray(order)] if isinstance(column, np.ndarray) else [column[place] for place in order]


def _texts(what: str, given: Any, count: int) -> list[str]:
    if not isinstance(given, list) or len(given) != count:
        raise checks.wrong(what, given, f"a list of {count} strings, one per model")
    for each in given:
        if len(checks.text(what, each, "words")) > _LONGEST:
            raise checks.wrong(what, each, f"at most {_LONGEST} characters")
    return given
