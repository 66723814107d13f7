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
    places, improvements = order.places, reveal == "improvements" and not final
    accepted = {each.name: place for place, each in enumerate(recorded.challenges, 1) if each.passed}
    accepted |= dict.fromkeys(list(recorded.submissions)[:1], 0)
    standings, others = [], []
    for name, i in graph.places.items():
        told = standing(recorded, name, graph.values.get(name), float(order.low[i]), float(order.high[i]))
        if improvements and name not in accepted:
            others.append(told)
        else:
            standings.append(replace(told, tier=int(order.tiers[i]), places=places[i]))
    if improvements:  # places among those that are listed: a chain
        count = len(standings)
        chain = sorted(standings, key=lambda each: -accepted[each.name])
        standings = [replace(each, tier=i, places=(i, i)) for i, each in enumerate(chain, 1)]
        separated = count * (count - 1) // 2
    else:
        standings.sort(key=lambda each: (each.tier or 0, math.inf if each.value is None else each.value))
        separated = order.separated
    others += [elsewhere(recorded, name) for name in recorded.submissions if name not in graph.places]
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


def standing(recorded: Recorded, name: str, value: float | None, low: float | None, high: float | None) -> Standing:
    """An entry, without a place yet; if it has no value, its interval is not shown."""
    entered = recorded.submissions[name]
    low, high = (None, None) if value is None else (low, high)
    return Standing(name, entered.entrant, None, None, value, low, high, entered.at.isoformat(), entered.round)


def elsewhere(recorded: Recorded, name: str) -> Standing:
    """An entry that is not in the shown table: it is from an earlier round."""
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
