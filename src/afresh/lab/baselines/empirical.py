"""The plain mean of the sample: what everybody reports, and what adaptive questions make wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afresh.lab.session import Answers, Uncertified, Values, means


@dataclass(frozen=True)
class Empirical(Uncertified):
    """mu itself, with the interval of questions fixed in advance."""

    method: ClassVar[str] = "empirical"

    def start(self, rng: np.random.Generator) -> Empirical:
        """Start a conversation, which remembers nothing."""
        return self

    def answer(self, values: Values) -> Answers:
        """The means."""
        return self.claim(means(values))
