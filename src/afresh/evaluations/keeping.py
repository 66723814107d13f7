"""The scores of a gate's incumbent, kept next to the ledger's file for its owner only, so that a gate can continue.

They contain guarded scores, like the results that were passed: anyone who can read the ledger can read them.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from afresh.evaluations.candidates import Candidate


def keep(folder: str | None, candidate: Candidate) -> None:
    """Write a candidate's scores, whole or not at all."""
    if folder is None:
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = _path(folder, candidate.digest)
    if os.path.exists(path):
        return
    part = f"{path}.{os.urandom(4).hex()}"  # of several threads, each its own
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        np.savez(file, digest=np.array(candidate.digest), scores=candidate.scores)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def kept(folder: str | None, digest: str) -> tuple[str, NDArray[np.float64]] | None:
    """The whole digest and the scores of a candidate, if they were kept."""
    if folder is None or not os.path.exists(_path(folder, digest)):
        return None
    with np.load(_path(folder, digest), allow_pickle=False) as found:
        return str(found["digest"]), np.asarray(found["scores"], dtype=np.float64)


def let_go(folder: str | None, candidate: Candidate, needed: Collection[str]) -> None:
    """Remove the scores of a candidate that was not accepted, unless it is the incumbent."""
    if folder is not None and candidate.digest not in needed and os.path.exists(_path(folder, candidate.digest)):
        os.remove(_path(folder, candidate.digest))


def _path(folder: str, digest: str) -> str:
    return os.path.join(folder, f"{digest[:16]}.npz")
