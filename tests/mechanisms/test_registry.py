"""Every mechanism that a guard can run says all that the rest of the code needs to know of it."""

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import InvalidArgument
from afresh.guard.outside import KINDS
from afresh.mechanisms import names, registry
from afresh.mechanisms.base import DrawsSeveral, FollowsDeviation, Heard, Mechanism, at_levels
from afresh.moments import Moments
from afresh.planning.plan import Plan
from afresh.statistics import Correlation, Covariance, GroupMeans, Variance

SHARED = {
    *(
        "__init__",
        "base",
        "deviations",
        "fresh",
        "ghost",
        "names",
        "parts",
        "planned_checks",
        "registry",
        "scale",
        "symbols",
        "tasks",
    )
}
BROKEN: dict[str, dict[str, float]] = {
    "stabilized": {"H": 0.01},
    "symmetrized": {"D": 0.5},
    "settled": {"D": 0.5},
    "calibrated": {"noise_failure": 0.05},
    "rounds": {"rows": 49},
    "checked": {"rows": 4},
}
each = pytest.mark.parametrize("name", registry.PLANNERS)


def planned(name: str) -> Any:
    mechanism = registry.PLANNERS[name](20_000, 50, 0.05, None)
    assert mechanism is not None
    return mechanism


def test_one_file_a_mechanism() -> None:
    files = {path.stem for path in Path(registry.__file__).parent.glob("*.py")} - SHARED
    assert {name.replace("-", "_") for name in registry.MECHANISMS} == files
    assert {kind.__module__.rsplit(".", 1)[1] for kind in registry.MECHANISMS.values()} == files


def test_help_knows_the_methods_by_name() -> None:
    assert tuple(registry.PLANNERS) == names.OFFERED
    kinds = {name: registry.MECHANISMS[name] for name in names.OFFERED}
    assert tuple(name for name, kind in kinds.items() if not kind.promised) == names.EXPECTED
    assert tuple(name for name, kind in kinds.items() if kind.checks_guesses) == names.GUESSING
    assert tuple(name for name, kind in kinds.items() if kind.symbols) == names.CLAIMING
    assert {name: kind.method for name, kind in registry.MECHANISMS.items()} == {n: n for n in registry.MECHANISMS}


def test_a_plan_chooses_among_promises() -> None:
    assert list(registry.PROMISING) == [name for name in registry.PLANNERS if registry.MECHANISMS[name].promised]
    assert afresh.plan(20_000, 50).method in registry.PROMISING


@each
def test_it_says_in_words_what_it_promises(name: str) -> None:
    mechanism = planned(name)
    assert bool(mechanism.proviso) is not mechanism.promised
    assert mechanism.advice.startswith(name)
    assert ("nats" in mechanism.accounted) is (mechanism.information is not None)
    shown = str(Plan(mechanism).details)
    assert mechanism.accounted in " ".join(shown.split())
    assert mechanism.proviso in shown


@each
def test_it_takes_a_guess_or_refuses_one(name: str) -> None:
    frame = pd.DataFrame({"x": np.arange(2000) % 10})
    with afresh.open(frame, 20, method=name, simulation_seed=1, made_up=True) as guard:
        if registry.MECHANISMS[name].checks_guesses:
            assert guard.ask("x < 5", guess=(0.5, 0.1)).confirmed
        else:
            with pytest.raises(InvalidArgument, match=r"guess"):
                guard.ask("x < 5", guess=(0.5, 0.1))
    assert (name in registry.GUESSING) is registry.MECHANISMS[name].checks_guesses


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


def hear_shifted(mechanism: Any, differ: float) -> Heard:
    """What is heard of psi = (d + 1)/2, of d = 1 and -1 on as many rows."""
    n, mechanism = mechanism.batch or mechanism.rows, at_levels(mechanism, 3)
    noise: Any = [0.0] * mechanism.draws if isinstance(mechanism, DrawsSeveral) else 0.0
    released = mechanism.release(Moments(n, n / 2, n * (1 + differ) / 4), noise)
    return Heard(mechanism, 1, released, mechanism.value(released), *mechanism.interval(released, levels=3))


@each
def test_a_difference_is_read_from_its_answers(name: str) -> None:
    """Of models that disagree on a tenth of the rows, one as often better as the other."""
    mechanism = planned(name)
    if mechanism.pairs == "shifted":
        if name == "checked":  # a guess through noise; its difference is tested with models
            assert 0 < mechanism.difference_width(0.1) < mechanism.difference_width(0.5) < 2 * mechanism.half_width(0.5)
            return
        heard = [hear_shifted(mechanism, 0.1)]
    else:
        shares = (0.1, 0.5) if mechanism.pairs == "squares" else (0.05, 0.05)
        heard = [hear(mechanism, number, share) for number, share in enumerate(shares, 1)]
    value, (low, high) = mechanism.difference(*heard)
    assert -1 <= low < 0 < high <= 1
    assert low <= value <= high
    assert value == pytest.approx(0, abs=0.02)
    assert mechanism.disagreement(*heard) == pytest.approx(0.1, abs=0.02)
    assert mechanism.difference_width(0.1) == pytest.approx((high - low) / 2, rel=0.1)


@each
def test_the_interval_of_a_number_follows_its_deviation_and_not_its_range(name: str) -> None:
    """Of every method, without a hint: 100,000 rows, 1,000 questions, a deviation of .05 and of .5 of the range."""
    mechanism = registry.PLANNERS[name](100_000, 1000, 0.05, None)
    assert mechanism is not None
    number = at_levels(mechanism, None)
    assert isinstance(number, FollowsDeviation)
    assert number.deviation_width(0.5, 0.05) < 0.6 * number.deviation_width(0.5, 0.5)


def test_so_does_that_of_a_budget_without_end_and_of_a_plan_for_a_deviation() -> None:
    for mechanism in (
        registry.planner_without_end(100_000, 0.05),
        registry.planner_for_deviation(100_000, 1000, 0.05, 0.05),
    ):
        assert mechanism is not None
        number = at_levels(mechanism, None)
        assert isinstance(number, FollowsDeviation)
        assert number.deviation_width(0.5, 0.05) < 0.6 * number.deviation_width(0.5, 0.5)


WAYS: list[dict[str, Any]] = [*({"method": name} for name in registry.PLANNERS), {"open": 0.5}, {"questions": None}]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, *way.items())))
def test_so_do_group_means_differences_and_covariances(way: dict[str, Any]) -> None:
    """By every way that a guard can ask: 100,000 rows, deviations of .05 and of .5; all hold the truth as well.

    Correlations are made of covariances and variances. Each interval misses with at most .05, all seeds are fixed.
    """
    random, rows = np.random.default_rng(8), 100_000
    near = np.clip(random.normal(0.5, 0.05, rows), 0, 1)
    pairs = {"near": (near, np.clip(near + random.normal(0, 0.03, rows), 0, 1))}
    pairs["far"] = tuple(random.integers(0, 2, (2, rows)) * 1.0)
    frame = pd.DataFrame({"inside": random.random(rows) < 0.5})
    for name, both in pairs.items():
        frame[name], frame[f"{name}_too"] = both
    with afresh.open(frame, **{"questions": 200, **way}, simulation_seed=3, made_up=True) as guard:
        widths = {name: widths_of(guard, frame, name) for name in pairs}
    for what, width in widths["near"].items():
        assert width < 0.7 * widths["far"][what], what


def widths_of(guard: afresh.Guard, frame: pd.DataFrame, x: str) -> dict[str, float]:
    one: dict[str, Any] = {"bounds": (0, 1), "missing": 0}
    both: dict[str, Any] = {"missing_x": 0, "missing_y": 0}
    y = f"{x}_too"
    inside = frame[frame.inside]
    by: Any = guard.measure(GroupMeans(x, "inside", [True, False], **one))
    found: dict[str, Any] = {
        "mean": (guard.ask(x, **one), frame[x].mean()),
        "within a group": (guard.ask(x, where="inside", **one), inside[x].mean()),
        "by groups": (by["True"], inside[x].mean()),
        "difference": (guard.ask(f"{x} - {y}", bounds=(-1, 1), missing=0), (frame[x] - frame[y]).mean()),
        "variance": (guard.measure(Variance(x, (0, 1), where="inside", missing=0)), inside[x].var(ddof=0)),
        "covariance": (guard.measure(Covariance(x, y, (0, 1), (0, 1), **both)), frame[x].cov(frame[y], ddof=0)),
        "correlation": (guard.measure(Correlation(x, y, (0, 1), (0, 1), **both)), frame[x].corr(frame[y])),
    }
    for answer, sample in found.values():
        assert answer.low <= sample <= answer.high
    # A variance of a deviation of .5 is known from the mean, and a correlation has no scale.
    return {what: each.interval.half_width for what, (each, _) in found.items() if what[:3] not in ("var", "cor")}


ROOT = Path(afresh.__file__).parent
# Where a mechanism may be named: its own room, its theory, and the lab, which draws pictures of chosen ones. The format
# of receipts is written down for ever, with the constants that every method had then.
AT_HOME = ("mechanisms", "theory", "lab")
WRITTEN_DOWN = "receipts/format.py"
OTHER_SPLITS = "evaluations/helm.py"  # of a benchmark, into items to train and to test on: a field of HELM's files


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and texts of a module that run, be it a part of an f-string; no docstring does."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                said = field == "body" and isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                if said:
                    child.value = ast.Constant(0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def known(path: Path) -> list[str]:
    """Where a module knows a mechanism: by its name in a text that runs, or by its file in an import."""
    tree = ast.parse(path.read_text())
    modules = {kind.__module__ for kind in registry.MECHANISMS.values()}
    found = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in modules]
    # `split` and `checked` are words too, so they count only where they stand alone or after method=; `rounds` is an
    # argument as well.
    alone = "|".join(rf"^{name}$" for name in registry.MECHANISMS if name != "rounds")
    named = "|".join([alone, *(rf"method ?=+ ?['\"]?{name}\b" for name in registry.MECHANISMS)])
    rare = "|".join(rf"\b{name}\b" for name in registry.MECHANISMS if name not in ("rounds", "split", "checked"))
    found += [line for line, text in strings(tree) if re.search(f"{named}|{rare}", text)]
    return [f"{path.relative_to(ROOT)}:{line}" for line in found]


def test_no_other_room_knows_a_mechanism_by_name() -> None:
    outside = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in AT_HOME]
    places = {path.relative_to(ROOT).as_posix(): known(path) for path in outside}
    assert {place for place, lines in places.items() if lines} == {WRITTEN_DOWN, OTHER_SPLITS}


@pytest.mark.parametrize(
    "text",
    [
        "from afresh.mechanisms.split import Split",
        "if plan.method == 'split': pass",
        "f'open it with method={x!r}, or method=\\'split\\''",
        "hint = f'use calibrated for {x}'",
        "def f(method='stabilized'): pass",
    ],
)
def test_such_knowledge_is_found(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.py").write_text(f'"""Like calibrated."""\n{text}\n')
    assert known(tmp_path / "a.py") == ["a.py:2"]


def hear(mechanism: Mechanism, number: int, share: float) -> Heard:
    """An answer that reads about `share`, without noise."""
    n = mechanism.rows
    whole = Moments(n, share * n, share * n)
    noise = [0.0] * mechanism.draws if isinstance(mechanism, DrawsSeveral) else 0.0
    released = mechanism.release((whole, whole) if len(mechanism.spans(1, None)) == 2 else whole, noise)
    if callable(released):  # made once it is known what came before
        released = released([])
    return Heard(mechanism, number, released, mechanism.value(released), *mechanism.interval(released))
