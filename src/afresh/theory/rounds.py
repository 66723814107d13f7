"""Rounds: fresh rows for every batch of questions, and shares of the failure probability (section 14).

A question of round t is chosen after earlier answers, not after its own rows. Given the past, the round's rows are
fresh, so an interval at a share alpha misses with probability alpha, and shares that never sum to more than beta make
all intervals hold at once. Sizes and shares may follow the past; both are fixed before the round's rows are opened.
"""

from __future__ import annotations

from afresh.errors import InvalidArgument

FINAL_LOOK = 0.1
"""The part of a question's share that is kept for the final look, if there is to be one."""


def capped_share(failure: float, questions: int) -> float:
    """beta/k: at most k questions in all, however they fall into rounds."""
    _check_failure(failure)
    if not questions >= 1:
        raise InvalidArgument(f"questions == {questions}, must be >= 1.")
    return failure / questions


def round_share(failure: float, round_: int, expected: int) -> float:
    """beta K/((t+K)(t+K-1)) for round t = 1, 2, ...: sums to beta for ever. At t = K it costs ln 4 more than beta/K."""
    _check_failure(failure)
    if not (round_ >= 1 and expected >= 1):
        raise InvalidArgument(f"round {round_} of about {expected} expected: both must be >= 1.")
    return failure * expected / ((round_ + expected) * (round_ + expected - 1))


def batch_share(share: float, batch: int) -> float:
    """A round's share, split evenly over the questions of its batch, which are known before its rows are opened."""
    if not batch >= 1:
        raise InvalidArgument(f"batch == {batch}, must be >= 1.")
    return share / batch


def looks(share: float, kept: float = FINAL_LOOK) -> tuple[float, float]:
    """A question's share now, and what is kept for the final look; the two intervals then hold together."""
    if not 0 <= kept < 1:
        raise InvalidArgument(f"kept == {kept}, must be in [0, 1).")
    return share * (1 - kept), share * kept


def final_look_rows(rows: int, opened_before: int, exposed_elsewhere: int = 0) -> int:
    """The rows that a round's question may use at the end: all except those opened or exposed before its round.

    The number is known when the question is asked, so an interval for a fixed number of rows is right. Nothing may be
    asked after the final look.
    """
    left = rows - opened_before - exposed_elsewhere
    if not (rows >= 1 and opened_before >= 0 and exposed_elsewhere >= 0 and left >= 0):
        raise InvalidArgument(
            f"{opened_before} and {exposed_elsewhere} of {rows} rows were opened: they cannot be more than there are."
        )
    return left


def equal_rounds(rows: int, rounds: int) -> int:
    """The rows per round, if all rounds get the same number."""
    if not 1 <= rounds <= rows:
        raise InvalidArgument(f"rounds == {rounds}, must be between 1 and the {rows} rows.")
    return rows // rounds


def _check_failure(failure: float) -> None:
    if not 0 < failure < 1:
        raise InvalidArgument(f"failure == {failure}, must be in (0, 1).")
