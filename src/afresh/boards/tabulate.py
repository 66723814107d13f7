"""From what a ledger says about a board to its table."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from afresh.boards.record import Recorded, Target, solved
from afresh.boards.table import BoardTable, Standing

if TYPE_CHECKING:
    from afresh.boards.rules import Reveal
    from afresh.losses import Loss


def table_of(
    recorded: Recorded,
    reveal: Reveal,
    loss: Loss | None,
    confidence: float,
    *,
    covers: str = "",
    target: Target | None = None,
    simulated: bool = False,
) -> BoardTable:
    """The table that follows from what was recorded."""
    final = target is None and recorded.final is not None
    found = solved(recorded, target)
    order, places = found.order, found.order.places
    improvements = reveal == "improvements" and not final
    standings, others = [], []
    listed = {each.name for each in recorded.challenges if each.passed} | set(list(recorded.submissions)[:1])
    for i, name in enumerate(found.names):
        submission, value = recorded.submissions[name], found.values[i]
        told = Standing(
            name=name,
            entrant=submission.entrant,
            tier=int(order.tiers[i]),
            places=places[i],
            value=value,
            low=None if value is None else float(order.low[i]),
            high=None if value is None else float(order.high[i]),
            submitted=submission.at.isoformat(),
            round=submission.round,
        )
        if improvements and name not in listed:
            others.append(replace(told, tier=None, places=None))
        else:
            standings.append(told)
    if improvements:  # places among those that are listed: a chain
        count = len(standings)
        chain = sorted(standings, key=lambda each: -_accepted(recorded, each.name))
        standings = [replace(each, tier=i, places=(i, i)) for i, each in enumerate(chain, 1)]
        separated = count * (count - 1) // 2
    else:
        standings.sort(key=lambda each: (each.tier or 0, math.inf if each.value is None else each.value))
        separated = order.separated
    others += [_elsewhere(recorded, name) for name in recorded.submissions if name not in set(found.names)]
    return BoardTable(
        board=recorded.board,
        loss=recorded.loss or (loss.words if loss is not None else ""),
        bounds=recorded.bounds if loss is None else loss.bounds,
        confidence=confidence,
        entries=tuple(standings),
        others=tuple(others),
        separated=separated,
        reveal=reveal,
        final=final,
        consistent=order.consistent,
        covers=covers,
        simulated=simulated,
    )


def _accepted(recorded: Recorded, name: str) -> int:
    """After how many challenges it was accepted; 0 of the first entry."""
    return next((i for i, each in enumerate(recorded.challenges, 1) if each.name == name and each.passed), 0)


def _elsewhere(recorded: Recorded, name: str) -> Standing:
    """An entry of an earlier round, or of none that is shown."""
    submission = recorded.submissions[name]
    last = next((each.number for each in reversed(recorded.scores) if each.name == name), None)
    value, low, high = (None, None, None) if last is None else last
    at = submission.at.isoformat()
    return Standing(name, submission.entrant, None, None, value, low, high, at, submission.round)
