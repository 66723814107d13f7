"""Standard normal noise: from OS entropy for every real answer, from a seed in simulations only."""

from __future__ import annotations

import secrets
from typing import Protocol


class Noise(Protocol):
    """Draws noise for the answer with this number; `which` selects a draw if the answer needs several."""

    def __call__(self, number: int, which: int = 0) -> float:
        """Draw a standard normal number."""
        ...


def from_entropy(number: int, which: int = 0) -> float:
    """Make a fresh N(0, 1) draw. The number is ignored: nothing may predict or repeat the draw."""
    bits = secrets.randbits(64)
    return _normal(bits)


def from_seed(seed: int) -> Noise:
    """Return reproducible noise, one stream per answer number. It is predictable, hence for simulations only."""

    def draw(number: int, which: int = 0) -> float:
        import hashlib

        further = f" {which}" if which else ""
        digest = hashlib.sha256(f"afresh simulation {seed} {number}{further}".encode()).digest()
        return _normal(int.from_bytes(digest[:8], "big"))

    return draw


def _normal(bits: int) -> float:
    """Turn 64 uniform bits into N(0, 1): a sign and 63 bits of |xi|'s tail probability, so no tail is cut short."""
    from afresh.theory.special import ndtri

    tail = ((bits >> 1) + 0.5) / 2**64  # in (0, 1/2)
    size = -ndtri(tail)
    return size if bits & 1 else -size
