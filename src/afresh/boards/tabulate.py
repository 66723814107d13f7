"""From what a ledger says about a board to its table."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from afresh.boards.record import Recorded, Target
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
    graph = recorded.graph(target)
    order = graph.constraints.solve()
    standings = []
    for (name, i), places in zip(graph.places.items(), order.places, strict=True):
        told = standing(recorded, name, graph.values.get(name), float(order.low[i]), float(order.high[i]))
        standings.append(replace(told, tier=int(order.tiers[i]), places=places))
    if reveal == "improvements" and not final:  # the leader first, then earlier ones; the rest as they came
        led = {name: -place for place, name in enumerate(recorded.led)}
        standings.sort(key=lambda each: (each.tier or 0, led.get(each.name, 1)))
    else:
        standings.sort(key=lambda each: (each.tier or 0, math.inf if each.value is None else each.value))
    others = [elsewhere(recorded, name) for name in recorded.submissions if name not in graph.places]
    return BoardTable(
        board=recorded.board,
        loss=recorded.loss or (loss.words if loss is not None else ""),
        bounds=recorded.bounds if loss is None else loss.bounds,
        confidence=confidence,
        entries=tuple(standings),
        others=tuple(others),
        separated=order.separated,
        reveal=reveal,
        final=final,
        consistent=order.consistent,
        covers=covers,
        simulated=simulated,
    )


def standing(recorded: Recorded, name: str, value: float | None, low: float | None, high: float | None) -> Standing:
    """An entry, without a place yet; if it has no value, its interval is not shown."""
    entered = recorded.submissions[name]
    low, high = (None, None) if value is None else (low, high)
    return Standing(name, entered.entrant, None, None, value, low, high, entered.at.isoformat(), entered.round)


def elsewhere(recorded: Recorded, name: str) -> Standing:
    """An entry that is not in the shown table: it was compared on other rows."""
    return standing(recorded, name, *recorded.last.get(name, (None, None, None)))


def standing_now(recorded: Recorded, name: str) -> tuple[Standing | None, int]:
    """The standing of one entry in a long table, and the number of entries, without building the whole table."""
    graph = recorded.graph()
    count, i = len(graph.places), graph.places.get(name)
    if i is None:
        return None, count
    relation, (low, high) = graph.constraints.relation(), graph.constraints.around_zero()
    found = standing(recorded, name, graph.values.get(name), float(low[i]), float(high[i]))
    places = 1 + int(relation.better(i).sum()), count - int(relation.worse(i).sum())
    return replace(found, tier=int(relation.tiers()[i]), places=places), count
