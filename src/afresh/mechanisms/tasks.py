"""What can be asked, besides a mean, of rows that only release symbols: a claim, passed or not, and a contest.

A task is public and fixed before the rows are looked at. Its outcome is one symbol of the tree of section 15.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """The mean lies in [low, high], on [0, 1]: it passes or it does not, and nothing else is released."""

    low: float
    high: float
    expected: bool = True
    """Whether a pass is the rule, as for a claim, or the exception, as for a challenge; the other outcome costs."""
    signs: bool = False
    """For a difference above 0: whether rows are alike, so that the exact sign test may decide."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Which of several candidates has the smallest mean loss, if it beats the incumbent.

    Its moments are those of the candidates' losses, followed by those of (incumbent's loss - candidate's + 1)/2.
    """

    candidates: int
    bins: int = 0
    """The number of bins for releasing the winner's score; 0 if it is not released."""
    incumbent: bool = False
    """Whether there is an incumbent to beat; otherwise there is always a winner."""
    signs: bool = False


Task = Claim | Contest
