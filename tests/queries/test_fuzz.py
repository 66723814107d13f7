"""The fuzzer, for a few thousand texts; `queries.fuzz` says how to run it longer."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

from queries.fuzz import Arena, texts


def test_random_texts(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    for text in islice(texts(random.Random(2018)), 3000):
        arena.throw(text)
    arena.finish()
    assert set(arena.counts) == {"refused", "answered"}
    assert min(arena.counts.values()) > 600  # neither side is starved
