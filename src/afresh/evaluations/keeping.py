"""The scores of a gate's current best, kept so that a gate can continue with those that were accepted.

In a folder next to the ledger's file they are for its owner only: they contain guarded scores, like the results that
were passed, and anyone who can read the ledger can read them. Without such a file they last as long as the process.
"""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Keeping:
    """Scores of candidates, by their digests."""

    def __init__(self, folder: str | None) -> None:
        """Keep scores in a folder, which is made when it is needed, or in memory."""
        self._folder = folder
        self._held: dict[str, Floats] = {}

    def keep(self, digest: str, scores: Floats) -> None:
        """Keep a candidate's scores, whole or not at all, in place of others."""
        if self._folder is None:
            self._held[digest] = scores
            return
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = self._path(digest)
        part = f"{path}.{os.urandom(4).hex()}"  # of several threads, each its own
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            np.save(file, scores, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)

    def get(self, digest: str) -> Floats | None:
        """A candidate's scores, if they were kept."""
        if self._folder is None:
            return self._held.get(digest)
        try:
            return np.asarray(np.load(self._path(digest), allow_pickle=False), dtype=np.float64)
        except FileNotFoundError:
            return None

    def drop(self, digest: str) -> None:
        """Forget a candidate that was not accepted."""
        self._held.pop(digest, None)
        if self._folder is not None:
            with suppress(FileNotFoundError):
                os.remove(self._path(digest))

    def _path(self, digest: str) -> str:
        return os.path.join(self._folder or "", f"{digest}.npy")
