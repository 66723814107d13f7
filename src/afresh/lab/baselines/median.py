"""A stable median of the means of disjoint blocks (Feldman & Steinke, COLT 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from afresh.lab.session import Answers, Floats, Uncertified, Values, chernoff, means


@dataclass(frozen=True)
class StableMedian(Uncertified):
    """The exponential mechanism on a public grid of [0, 1]; a point's score is how unevenly it divides the means.

    One row changes one block, hence a score by at most 1. `slack` is the share of blocks by which the released point's
    rank may be off: the sharpness is chosen to bring all but a 1/k of the mass within it. 0 blocks stands for about 8
    sqrt(k), so that k answers together do not depend much on any block.
    """

    method: ClassVar[str] = "stable-median"

    blocks: int = 0
    points: int = 1001
    slack: float = 0.25

    def start(self, rng: np.random.Generator) -> _Conversation:
        """Deal rows into blocks as they come: they are independent."""
        blocks = self.blocks or max(min(round(8 * math.sqrt(self.questions)), self.rows // 2), 1)
        return _Conversation(self, blocks, rng)


class _Conversation:
    def __init__(self, constants: StableMedian, blocks: int, rng: np.random.Generator) -> None:
        self._constants, self._blocks, self._rng = constants, blocks, rng
        self._grid = np.linspace(0.0, 1.0, constants.points)
        self._sharpness = math.log(constants.points * constants.questions) / (constants.slack * blocks)

    def answer(self, values: Values) -> Answers:
        """Draw once from the exponential mechanism for each question."""
        size = values.shape[1] // self._blocks
        drawn = np.array([self._draw(row[: size * self._blocks]) for row in values])
        # A rank off by the slack is this many deviations of a block's mean: as if there were fewer rows.
        deviations = float(ndtri(0.5 + self._constants.slack))
        level = math.log(2 * self._constants.questions / self._constants.failure)
        return chernoff(drawn, level / (size * self._blocks) + deviations**2 / (2 * size))

    def _draw(self, row: Values) -> float:
        of_blocks = np.sort(means(row.reshape(self._blocks, -1)))
        below, above = of_blocks.searchsorted(self._grid), self._blocks - of_blocks.searchsorted(self._grid, "right")
        score: Floats = -np.maximum(below, above) * self._sharpness
        # Adding Gumbel noise and taking the largest is a draw with probabilities proportional to exp(score).
        return float(self._grid[(score + self._rng.gumbel(size=score.size)).argmax()])
