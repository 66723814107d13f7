"""Chance of a test's own: the noise and deals of guards in its process come from a seed made of the test's name.

Guards draw from the operating system, so a test that asserts what an answer says would fail now and then, and nobody
could repeat it. With `AFRESH_CHANCE=7` every test gets other noise and other deals; with `AFRESH_CHANCE=system` those
of the operating system. Processes that a test starts or forks always draw from the operating system.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from afresh.guard import noise
from afresh.ledger import ledger

WHICH = os.environ.get("AFRESH_CHANCE", "0")
DRAWING = (noise, ledger)  # the modules that draw what answers depend on: noise, and the seed by which rows are dealt
_stream = random.Random()


def use_streams() -> None:
    """From now on, modules draw from the stream of whichever test runs."""
    if WHICH != "system":
        drawn = SimpleNamespace(
            randbits=lambda bits: _stream.getrandbits(bits), token_hex=lambda size: _stream.randbytes(size).hex()
        )
        _replace(drawn)
        os.register_at_fork(after_in_child=lambda: _replace(secrets))


def _replace(source: object) -> None:
    for module in DRAWING:
        vars(module)["secrets"] = source


@contextmanager
def stream(name: str) -> Iterator[None]:
    """Draw from the stream of this name, then from where the one before was left."""
    before = _stream.getstate()
    _stream.seed(f"{WHICH} {name}")
    try:
        yield
    finally:
        _stream.setstate(before)
