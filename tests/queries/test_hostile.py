"""Hostile expressions get their refusal: at once, in words, and without reaching anything."""

from __future__ import annotations

import logging
import time

import pytest

from afresh.errors import QueryError
from afresh.queries.query import make_query
from queries.hostile import HOSTILE, SCHEMA

CASES = [(kind, text, words) for kind, cases in HOSTILE.items() for text, words in cases]


def test_there_are_many() -> None:
    assert len({text for _, text, _ in CASES}) >= 150


@pytest.mark.parametrize(("kind", "text", "words"), CASES, ids=[f"{kind}: {text[:30]!r}" for kind, text, _ in CASES])
def test_refused(kind: str, text: str, words: str, caplog: pytest.LogCaptureFixture) -> None:
    start = time.process_time()
    with caplog.at_level(logging.DEBUG), pytest.raises(QueryError) as caught:
        make_query(text, SCHEMA)
    assert time.process_time() - start < 5  # the machine may be slow; measured are less than 0.3 s
    assert any(word in str(caught.value) for word in words.split("|")), str(caught.value)
    assert len(str(caught.value)) < 1000
    assert not caplog.records  # sqlglot's own warnings would quote the question
