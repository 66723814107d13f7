"""The record of what rows that only release symbols have released: symbols, and the path before each."""

from __future__ import annotations

import math
from collections.abc import Mapping

from afresh.errors import InvalidArgument
from afresh.mechanisms.scale import BY_SUM, values_of
from afresh.theory.exact import VALUES
from afresh.theory.symbols import Trail

EXAM = 3.0
"""The task of an exam's answer: not a symbol, but exact moments of rows that are kept for it."""


def after(released: Mapping[str, float]) -> Trail:
    """The path after a symbol was released."""
    trail = path_before(released)
    match released["task"]:
        case 0.0:
            if released["first"] < 0:
                return trail.quiet()
            nats = math.log(released["cells"])
            if VALUES[int(released["values"])] not in BY_SUM:
                width = released["last"] - released["first"]
                nats += math.log(width * (width + 1))
            return trail.event(nats)
        case 1.0:
            return trail.quiet() if released["passed"] == released["expected"] else trail.event()
        case 2.0:
            if released["winner"] < 0:
                return trail.quiet()
            return trail.event(math.log(released["candidates"]) + math.log(max(released["bins"], 1.0)))
    raise InvalidArgument("this is not a symbol of a checked answer")


def path_before(released: Mapping[str, float]) -> Trail:
    """The path before a symbol, as it was recorded."""
    if not isinstance(released, Mapping):
        raise InvalidArgument("this is not a symbol of a checked answer")
    return Trail(int(released["steps"]), int(released["events"]), float(released["nats"]))


_KEYS = {
    0.0: {"values", "guess", "deviation", "low", "high", "cells", "first", "last"},
    1.0: {"low", "high", "expected", "passed"},
    2.0: {"values", "candidates", "incumbent", "winner", "bins", "bin"},
}


def check_symbol(released: Mapping[str, float], levels: int | None, *, grouped: bool = False) -> None:
    """Refuse what no question with so many levels releases; where numbers may be `grouped`, with a rough share."""
    task = released["task"]
    of_group = {"share"} & set(released) if grouped and task == 0 and levels is None else set()
    if set(released) != _KEYS[task] | {"task", "steps", "events", "nats"} | of_group:
        raise InvalidArgument("this is not a symbol of a checked answer")
    whole = {"values", "cells", "first", "last", "candidates", "winner", "bins", "bin", "steps", "events"}
    good = all(float(released[name]).is_integer() for name in whole & set(released))
    if task == 0:
        first, last, cells = released["first"], released["last"], released["cells"]
        good &= 0 <= released["low"] <= released["guess"] <= released["high"] <= 1 and cells >= 1
        good &= 0 < released.get("share", 1.0) <= 1
        values = VALUES[int(released["values"])] if released["values"] >= 0 else None
        good &= values in (values_of(levels, unequal=False), values_of(levels, unequal=True))
        if first < 0:
            good &= (first, last) == (-1, -1)
        else:
            good &= 0 <= first < last <= cells and (values not in BY_SUM or last == first + 1)
    elif task == 1:
        good &= 0 <= released["low"] <= released["high"] <= 1
        good &= {released["expected"], released["passed"]} <= {0.0, 1.0}
    else:
        m, winner, count, place = (released[name] for name in ("candidates", "winner", "bins", "bin"))
        values = VALUES[int(released["values"])] if released["values"] >= 0 else None
        good &= values in (values_of(levels, unequal=False), values_of(levels, unequal=True))
        good &= m >= 1 and -1 <= winner < m and count >= 0 and released["incumbent"] in (0.0, 1.0)
        good &= 0 <= place < count if winner >= 0 and count else place == -1
        good &= winner >= 0 or released["incumbent"] == 1
    if not good:
        raise InvalidArgument("this is not a symbol of a checked answer")


def path_of(trail: Trail) -> dict[str, float]:
    """The path in the form that a record holds."""
    return {"steps": float(trail.steps), "events": float(trail.events), "nats": trail.nats}
