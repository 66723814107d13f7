"""What a worker has answered lately, so that a repeat in the same words is quick. Only the ledger is authoritative."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from afresh.results.answer import Answer

MOST = 20_000
"""Questions and answers together: memory stays bounded, whatever the size of batches."""


class Repeats:
    """The latest questions, by their words, with their answers."""

    def __init__(self, most: int = MOST) -> None:
        """None yet."""
        self._most, self._size = most, 0
        self._known: OrderedDict[bytes, Sequence[Answer]] = OrderedDict()

    def get(self, name: bytes) -> Sequence[Answer]:
        """Its answers; none if they are not kept."""
        return self._known.get(name, ())

    def keep(self, name: bytes, answers: Sequence[Answer]) -> None:
        """Remember a question, and forget the oldest ones."""
        self._size -= 1 + len(self._known.pop(name)) if name in self._known else 0
        self._known[name] = answers
        self._size += 1 + len(answers)
        while self._size > self._most:
            _, oldest = self._known.popitem(last=False)
            self._size -= 1 + len(oldest)


def name_of(dataset: str, question: Any) -> bytes:
    """A short name of a question in its very words."""
    return hashlib.blake2b(json.dumps([dataset, question]).encode(errors="surrogatepass"), digest_size=16).digest()
