"""Analysts of rows that release only symbols: they learn from passes and failures, and try to game a gate.

Each holds one conversation with the guarded rows of a plan and returns whether anything certified is false, as the lab
counts misses. `python -m afresh.lab.claiming` prints how often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from afresh.lab.coverage import clopper_pearson, markdown
from afresh.mechanisms.checked import Checked
from afresh.mechanisms.planned_checks import plan_open_rows
from afresh.mechanisms.tasks import Claim, Contest, Task
from afresh.moments import Moments
from afresh.theory.checked import node_level
from afresh.theory.exact import lower_limit

DIFFER = 0.05  # the share of rows on which a challenger differs from the incumbent


class Talk:
    """One conversation: everything that was released, in order."""

    def __init__(self, mechanism: Checked) -> None:
        """Start with nothing released."""
        self.mechanism, self.records = mechanism, list[Any]()

    def ask(self, guarded: Any, task: Task | None = None, **options: Any) -> dict[str, float]:
        """Release the next symbol, from the moments of the guarded rows."""
        n = self.mechanism.guessing
        guessed = Moments(n, n / 2, n / 4)
        released: dict[str, float] = self.mechanism.release((guessed, guarded), 0.0, task=task, **options)(self.records)
        self.records.append(released)
        return released


def _learning_signs(mechanism: Checked, rng: np.random.Generator) -> bool:
    """Learn from passes and failures on which side of 1/2 each fair column lies, and claim that their vote is right.

    Half of its claims fail, on purpose. The truth of the vote of an odd number of fair columns is 1/2.
    """
    talk, n = Talk(mechanism), mechanism.guarded
    columns = (mechanism.questions - 5) // 2 * 2 + 1
    votes, wrong = np.zeros(n), False
    for _ in range(columns):
        bits = rng.integers(0, 2, n)
        hits = float(bits.sum())
        nats = node_level(mechanism.checking, mechanism.trail(talk.records))
        least = float(lower_limit("two-valued", n, n / 2, n / 2, nats))  # passes if half of the rows or more are hits
        passed = talk.ask(_moments(n, hits), Claim(least * (1 - 1e-9), 1.0), levels=2)["passed"]
        votes += (2 * bits - 1) * (1 if passed else -1)
    right = float((votes > 0).sum())
    while len(talk.records) < mechanism.questions:
        wrong |= bool(talk.ask(_moments(n, right), Claim(0.5 + 1e-9, 1.0), levels=2)["passed"])
    return wrong


def _failing_on_purpose(mechanism: Checked, rng: np.random.Generator) -> bool:
    """Make every other claim fail, and in between claim something that is only just false."""
    talk, n = Talk(mechanism), mechanism.guarded
    wrong = False
    while len(talk.records) + 2 <= mechanism.questions:
        talk.ask(_moments(n, float(rng.binomial(n, 0.5))), Claim(0.9, 1.0), levels=2)
        truth = float(rng.uniform(0.05, 0.95))
        hits = float(rng.binomial(n, truth))
        side = rng.integers(2)
        ends = (truth + 1e-6, 1.0) if side else (0.0, truth - 1e-6)
        wrong |= bool(talk.ask(_moments(n, hits), Claim(*ends), levels=2)["passed"])
    return wrong


def _near_ties(mechanism: Checked, rng: np.random.Generator) -> bool:
    """Game the gate with challengers that are exactly as good as the incumbent: accepting any of them is a miss."""
    talk, n = Talk(mechanism), mechanism.guarded
    wrong = False
    while len(talk.records) < mechanism.questions:
        better, worse, _ = rng.multinomial(n, [DIFFER / 2, DIFFER / 2, 1 - DIFFER])
        task = Claim(0.5, 1.0, expected=False, signs=bool(len(talk.records) % 2))
        wrong |= bool(talk.ask(difference_of(n, better, worse), task, levels=3)["passed"])
    return wrong


def _tied_contests(mechanism: Checked, rng: np.random.Generator) -> bool:
    """Hold contests of ten candidates that are all as good as the incumbent, with the winner's value in forty bins."""
    talk, n = Talk(mechanism), mechanism.guarded
    wrong, many = False, 10
    while len(talk.records) < mechanism.questions:
        incumbent = float(len(talk.records) % 2)
        losses = rng.binomial(n, 0.3, many).astype(float)
        gains = [difference_of(n, *rng.multinomial(n, [DIFFER / 2, DIFFER / 2, 1 - DIFFER])[:2]) for _ in range(many)]
        own = [_moments(n, each) for each in losses] + (gains if incumbent else [])
        released = talk.ask(own, Contest(many, 40, bool(incumbent)), levels=2)
        low, high = mechanism.interval(released)
        wrong |= not low <= 0.3 <= high or bool(incumbent and released["winner"] >= 0)
    return wrong


ANALYSTS: dict[str, Callable[[Checked, np.random.Generator], bool]] = {
    "learning-signs": _learning_signs,
    "failing-on-purpose": _failing_on_purpose,
    "near-ties": _near_ties,
    "tied-contests": _tied_contests,
}


def misses(analyst: str, rows: int, questions: int, failure: float, repeats: int, seed: int = 2018) -> int:
    """Count the conversations in which something certified was false.

    Args:
        analyst: A name of `ANALYSTS`.
        rows: The number of rows: half of them open, half guarded.
        questions: The number of questions in every conversation.
        failure: The probability with which anything certified may be false.
        repeats: The number of conversations.
        seed: The seed of everything random.

    Returns:
        The number with a miss.
    """
    mechanism = plan_open_rows(rows, questions, failure, share=0.5)
    assert mechanism is not None
    return sum(ANALYSTS[analyst](mechanism, np.random.default_rng([seed, i])) for i in range(repeats))


HEADER = ("analyst", "n", "k", "confidence", "conversations", "with a miss", "coverage at least")


def table(cells: Sequence[tuple[int, int, float, int]]) -> str:
    """Format every analyst at every size as Markdown.

    Args:
        cells: Rows, questions, failure probability and repeats of each.

    Returns:
        A table with a line for each analyst and size.
    """
    lines = []
    for name in ANALYSTS:
        for rows, questions, failure, repeats in cells:
            missed = misses(name, rows, questions, failure, repeats)
            low, _ = clopper_pearson(repeats - missed, repeats)
            numbers = f"{rows:,}", f"{questions:,}", f"{1 - failure:.0%}", f"{repeats:,}", f"{missed:,}", f"{low:.3f}"
            lines.append((name, *numbers))
    return markdown(HEADER, lines)


def _moments(n: int, hits: float) -> Moments:
    return Moments(n, hits, hits)


def difference_of(n: int, better: int, worse: int) -> Moments:
    """Compute the moments of (d + 1)/2, with this many better and worse rows.

    Args:
        n: The number of rows.
        better: The number of rows with d = 1.
        worse: The number of rows with d = -1.

    Returns:
        The moments a comparison is made from.
    """
    halves = n - better - worse
    return Moments(n, better + halves / 2, better + halves / 4)


if __name__ == "__main__":
    print(table([(2000, 200, 0.05, 100), (2000, 200, 0.5, 100)]))
