"""A worker's recent answers, so that a repeat in the same words is quick. Only the ledger is authoritative."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from afresh.results.answer import Answer

MOST = 20_000
"""The most questions and answers kept, counted together: memory stays bounded, whatever the size of batches."""


class Again(list[Answer]):
    """Answers as a repeat reports them."""

    text: bytes | None = None
    """The same as a document, once it has been written."""


class _Kept:
    """The answers to a question, and how they were last reported: at most repeats the budget has not changed."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = answers
        self._left: tuple[int, Any] | None = None
        self._told = Again()

    def again(self, left: int, ahead: Any) -> Again:
        if self._left != (left, ahead):
            free: dict[str, Any] = {"charged": 0, "charged_information": 0, "fixes": None, "left": left, "ahead": ahead}
            self._left, self._told = (left, ahead), Again(replace(each, **free) for each in self.answers)
        return self._told


class Repeats:
    """The latest questions, by their words, with their answers."""

    def __init__(self, most: int = MOST) -> None:
        """Start with none."""
        self._most, self._size = most, 0
        self._known: OrderedDict[bytes, _Kept] = OrderedDict()

    def get(self, name: bytes) -> _Kept | None:
        """The answers to a question, if they are kept."""
        return self._known.get(name)

    def keep(self, name: bytes, answers: Sequence[Answer]) -> None:
        """Remember a question, and forget the oldest ones."""
        self._size -= 1 + len(self._known.pop(name).answers) if name in self._known else 0
        self._known[name] = _Kept(answers)
        self._size += 1 + len(answers)
        while self._size > self._most:
            _, oldest = self._known.popitem(last=False)
            self._size -= 1 + len(oldest.answers)


def name_of(dataset: str, question: Any) -> bytes:
    """The digest of a question in its exact words."""
    return hashlib.blake2b(json.dumps([dataset, question]).encode(errors="surrogatepass")).digest()
