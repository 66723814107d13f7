"""Questions that are given by one number for every row, such as the losses of a model's predictions.

The number of a row must be a function of that row alone: a model's prediction from the row's features, compared with
the row's label. Nothing but the digest of a question reaches the ledger, and a digest is published in receipts. A
plain hash of per-row losses would be an oracle: whoever guesses the labels could hash the guess and compare. So a
digest is a keyed hash (HMAC-SHA256, the key is the guard's secret seed) of what the analyst passed (predictions, the
name and parameters of the loss) and of the rows' order; never of losses or labels.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.engines.base import Moments

VERSION = "afresh-vector-v1"  # part of every digest; changes when the meaning of a question does
Rows = slice | NDArray[np.int64]
Values = NDArray[np.float64] | NDArray[np.bool_]

# Rows evaluated at once: few enough to stay in the processor's cache, and for BLAS not to call in other threads.
_AT_ONCE = 1 << 13
_LEAF = 1 << 20  # bytes hashed at once: long arrays are hashed by several threads


@dataclass(frozen=True, eq=False, slots=True)
class VectorQuery:
    """A question psi into [0, 1] whose values are computed when they are needed; `binary` ones are booleans."""

    digest: str
    text: str
    values: Callable[[Rows], Values]
    """Psi on some of the rows."""
    binary: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)
    """The scale on which its answer is told."""
    missing: float | None = None

    def moments(self, count: int, rows: NDArray[np.int64] | None = None) -> Moments:
        """The moments over all `count` rows, or over those whose positions are given."""
        size = count if rows is None else len(rows)
        total = squares = 0.0
        for start in range(0, size, _AT_ONCE):
            part = slice(start, min(start + _AT_ONCE, size))
            values = self.values(part if rows is None else rows[part])
            if self.binary:
                total += int(np.count_nonzero(values))
            else:
                total += float(values.sum())
                squares += float(values @ values)
        return Moments(size, total, total if self.binary else squares)


def keyed_digest(seed: str, parts: Sequence[Any], arrays: Sequence[NDArray[Any]] = ()) -> str:
    """The name of a question: a keyed hash of JSON-ready parts and of arrays, each with its type and shape."""
    mac = hmac.new(bytes.fromhex(seed), digestmod="sha256")
    mac.update(json.dumps([VERSION, *parts]).encode())
    for array in arrays:
        mac.update(f"\n{array.dtype.str} {array.shape}\n".encode())
        for leaf in _leaves(array):
            mac.update(leaf)
    return mac.hexdigest()


def _leaves(array: NDArray[Any]) -> list[bytes]:
    """The SHA-256 of every megabyte; hashlib lets go of the interpreter, so threads do help."""
    data = np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")
    pieces = [data[start : start + _LEAF] for start in range(0, len(data), _LEAF)]
    if len(pieces) < 2:
        return [_hash(piece) for piece in pieces]
    with ThreadPoolExecutor(min(len(pieces), 4)) as pool:
        return list(pool.map(_hash, pieces))


def _hash(piece: memoryview) -> bytes:
    return hashlib.sha256(piece).digest()
