"""Questions given by one number per row, such as the losses of a model's predictions.

The number of a row must be a function of that row alone: a model's prediction from the row's features, compared with
the row's label. Nothing but the digest of a question reaches the ledger, and a digest is published in receipts. A
plain hash of per-row losses would be an oracle: anyone who guesses the labels could hash the guess and compare. So a
digest is a keyed hash (BLAKE3, the key is derived from the guard's secret seed) of what the analyst passed
(predictions, the name and parameters of the loss), the label's column and the rows' order; never of losses or labels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from afresh.models.threads import for_all, slices
from afresh.moments import Moments, Span, sum_moments

if TYPE_CHECKING:
    from afresh.engines.base import Engine

VERSION = "afresh-vector-v1"  # part of every digest; changes when the meaning of a question does
Rows = slice | NDArray[np.int64]
Values = NDArray[np.float64] | NDArray[np.bool_]

_AT_ONCE = 1 << 18  # rows evaluated at once: few for the processor's cache, many for threads that share Python's lock
_PIECE = 1 << 13
_HASHED = 1 << 21  # bytes hashed at once


@dataclass(frozen=True, eq=False, slots=True)
class VectorQuery:
    """A question psi into [0, 1] whose values are computed when needed; values of two levels are booleans."""

    digest: str
    text: str
    values: Callable[[Rows], Values]
    """Psi on some of the rows."""
    levels: int | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    """The scale on which its answer is reported."""
    missing: float | None = None
    offset: int = 0
    """How many of the analyst's own rows precede the data's; an engine over those has them all, and no spans."""
    alone: bool = False
    """Whether `values` is a user's function, which may not expect to run in other threads."""

    columns: ClassVar[None] = None

    @staticmethod
    def moments_of(engine: Engine, questions: Sequence[VectorQuery], spans: Sequence[Span] | None) -> list[Moments]:
        """Those of several, one after the other."""
        if spans is None:
            return [each.moments(engine.rows) for each in questions]
        from afresh.engines.embedded.rowwise import rows_of_span

        chosen = {span: rows_of_span(engine, span) for span in set(spans)}
        return [
            each.moments(engine.rows, chosen[span] + each.offset) for each, span in zip(questions, spans, strict=True)
        ]

    def moments(self, count: int, rows: NDArray[np.int64] | None = None) -> Moments:
        """The moments over all `count` rows, or over those whose positions are given."""
        parts = slices(count if rows is None else len(rows), _AT_ONCE)
        chosen: list[Rows] = list(parts) if rows is None else [rows[part] for part in parts]
        if self.alone or self.levels == 2:  # booleans are counted sooner than threads wake up
            return sum_moments([self._sum(part) for part in chosen])
        return sum_moments(for_all(self._sum, chosen))

    def _sum(self, rows: Rows) -> Moments:
        with np.errstate(all="ignore"):  # a warning, or an error where warnings are errors, would reveal labels
            values = self.values(rows)
            if self.levels == 2:
                count = int(np.count_nonzero(values))
                return Moments(len(values), count, count)
            return Moments(len(values), float(values.sum()) + 0.0, _sum_of_squares(values))  # 0.0 also for -0.0


def _sum_of_squares(values: NDArray[Any]) -> float:
    """By BLAS, in pieces so short that it calls in no threads of its own."""
    whole = len(values) - len(values) % _PIECE
    pieces, rest = values[:whole].reshape(-1, _PIECE), values[whole:]
    return float(np.vecdot(pieces, pieces).sum() + rest @ rest)


def keyed_digest(seed: str, parts: Sequence[Any], arrays: Sequence[NDArray[Any]] = ()) -> str:
    """The name of a question: a keyed hash of JSON-ready parts and of arrays, each with its type and shape.

    Of an array the keyed hashes of its pieces are hashed, so that threads can share the work.
    """
    key = blake3(bytes.fromhex(seed), derive_key_context=f"{VERSION}: names of questions").digest()
    mac = blake3(json.dumps([VERSION, *parts]).encode(), key=key)
    for array in arrays:
        mac.update(f"\n{array.dtype.str} {array.shape}\n".encode())
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        pieces = [data[part].data for part in slices(len(data), _HASHED)]
        for digest in for_all(lambda piece: blake3(piece, key=key).digest(), pieces):
            mac.update(digest)
    return mac.hexdigest()
