"""Every mechanism that a guard can run says all that the rest of the code needs to know of it."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import afresh
from afresh.errors import InvalidArgument
from afresh.guard.outside import KINDS
from afresh.mechanisms import registry
from afresh.mechanisms.base import Heard, Mechanism
from afresh.moments import Moments
from afresh.planning.plan import Plan

SHARED = {"__init__", "base", "parts", "registry"}
BROKEN: dict[str, dict[str, float]] = {
    "stabilized": {"H": 0.01},
    "calibrated": {"noise_failure": 0.05},
    "split": {"rows": 49},
    "guess-and-check": {"rows": 4},
}
each = pytest.mark.parametrize("name", registry.MECHANISMS)


def planned(name: str) -> Any:
    mechanism = registry.PLANNERS[name](20_000, 50, 0.05, None)
    assert mechanism is not None
    return mechanism


def test_one_file_a_mechanism() -> None:
    files = {path.stem for path in Path(registry.__file__).parent.glob("*.py")} - SHARED
    assert {name.replace("-", "_") for name in registry.MECHANISMS} == files
    assert {kind.__module__.rsplit(".", 1)[1] for kind in registry.MECHANISMS.values()} == files


def test_a_plan_chooses_among_promises() -> None:
    assert list(registry.PROMISING) == [name for name, kind in registry.MECHANISMS.items() if kind.promised]
    assert afresh.plan(20_000, 50).method in registry.PROMISING


@each
def test_it_has_a_line_in_every_comparison(name: str) -> None:
    kind = registry.MECHANISMS[name]
    assert kind.about
    assert kind.unavailable
    line = afresh.plan(20_000, 50).methods[name]
    assert (line.name, line.about, line.promised) == (name, kind.about, kind.promised)


@each
def test_its_constants_are_kept_and_carry_its_certificate(name: str) -> None:
    mechanism = planned(name)
    assert type(mechanism) is registry.MECHANISMS[name]
    assert Plan.thaw(Plan(mechanism).limits).mechanism == mechanism
    assert mechanism.problems() == []
    assert replace(mechanism, **BROKEN[name]).problems() != []


@each
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_revealed_elsewhere_is_charged_or_refused(name: str, kind: str) -> None:
    mechanism = planned(name)
    try:
        charges = mechanism.charge_outside(kind, 0.3, 20_000, 2)
    except InvalidArgument as refused:
        assert repr(name) in str(refused)  # noqa: PT017 - either is right
        assert "method='calibrated'" in str(refused)  # noqa: PT017
    else:
        assert mechanism.information is not None
        assert 0 < charges.charge < math.inf
        assert charges.charge == pytest.approx(2 * mechanism.charge_outside(kind, 0.3, 20_000, 1).charge)


@each
def test_a_difference_is_read_from_two_answers(name: str) -> None:
    """Of models that disagree on a tenth of the rows, one as often better as the other."""
    mechanism = planned(name)
    shares = (0.1, 0.5) if mechanism.squares else (0.05, 0.05)
    heard = [hear(mechanism, number, share) for number, share in enumerate(shares, 1)]
    value, (low, high) = mechanism.difference(*heard)
    assert -1 <= low < 0 < high <= 1
    assert low <= value <= high
    assert value == pytest.approx(0, abs=0.02)
    assert mechanism.disagreement(heard[0].value, heard[1].value) == pytest.approx(0.1, abs=0.02)
    assert mechanism.difference_width(0.1) == pytest.approx((high - low) / 2, rel=0.1)


def hear(mechanism: Mechanism, number: int, share: float) -> Heard:
    """An answer that reads about `share`, without noise."""
    n = mechanism.rows
    whole = Moments(n, share * n, share * n)
    released = mechanism.release((whole, whole) if len(mechanism.blocks(1)) == 2 else whole, 0.0)
    if callable(released):  # made once it is known what came before
        released = released([])
    return Heard(mechanism, number, released, mechanism.value(released), *mechanism.interval(released))
