"""Postgres and Spark name rows as files do."""

from __future__ import annotations

from typing import Any

from afresh.engines.embedded import EmbeddedEngine
from afresh.engines.opening import open_engine
from engines import nasty


def _plain(identity: Any) -> tuple[str, dict[str, str | None]]:
    """Without digests in row order, which a database does not have."""
    return identity.fingerprint, {column.name: column.unordered for column in identity.columns}


def test_postgres(nasty_url: str) -> None:
    assert _plain(open_engine(nasty_url, "nasty").identity()) == _plain(EmbeddedEngine(nasty.table()).identity())


def test_spark(nasty_frame: Any) -> None:
    assert _plain(open_engine(nasty_frame).identity()) == _plain(EmbeddedEngine(nasty.table()).identity())
