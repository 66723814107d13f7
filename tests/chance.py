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
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from afresh.guard import noise
from afresh.ledger import ledger

WHICH = os.environ.get("AFRESH_CHANCE", "0")
DRAWING = (noise, ledger)  # the modules that draw what answers depend on: noise, and the seed by which rows are dealt
_stream = random.Random()
_imported: dict[ModuleType | None, list[Any]] = {}
Generator = random.Random | np.random.Generator


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
def stream(name: str, module: ModuleType | None = None) -> Iterator[None]:
    """Draw from the stream of this name, then from where the one before was left.

    The module's own generators begin as they were imported: what a test draws does not depend on the tests before it.
    """
    sources = [_stream, *_generators(module)]
    before = [_state(each) for each in sources]
    _stream.seed(f"{WHICH} {name}")
    for source, state in zip(sources[1:], _imported.setdefault(module, before[1:]), strict=True):
        _put_back(source, state)
    try:
        yield
    finally:
        for source, state in zip(sources, before, strict=True):
            _put_back(source, state)


def _generators(module: ModuleType | None) -> list[Generator]:
    return [each for each in vars(module).values() if isinstance(each, Generator)] if module else []


def _state(generator: Generator) -> Any:
    return generator.getstate() if isinstance(generator, random.Random) else generator.bit_generator.state


def _put_back(generator: Generator, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.bit_generator.state = state
