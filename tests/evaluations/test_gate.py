"""A gate: what it accepts is an improvement, it goes on after a restart, and says beforehand what it can notice."""

from __future__ import annotations

import json
import multiprocessing
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import binom

import afresh
from afresh.errors import BudgetExhausted, FewItems, InvalidArgument
from afresh.evaluations.gate import predicted, smallest_gain
from afresh.mechanisms.planned_checks import plan_open_rows
from afresh.mechanisms.tasks import Claim
from afresh.moments import Moments
from afresh.receipts import verify
from afresh.receipts.page import as_markdown
from afresh.theory.binomial import sign_test
from afresh.theory.checked import node_level
from afresh.theory.exact import lower_limit
from afresh.theory.paired import better
from afresh.theory.symbols import Trail

N = 6000
RNG = np.random.default_rng(7)
IDS = [f"q{i}" for i in range(N)]
BASE = dict(zip(IDS, (RNG.random(N) < 0.6).astype(int).tolist(), strict=True))


def edited(scores: dict[str, int], gain: float, loss: float, seed: int) -> dict[str, int]:
    """An edit that mends a share of failures and breaks a share of passes."""
    rng = np.random.default_rng(seed)
    return {id: int(rng.random() >= loss) if s else int(rng.random() < gain) for id, s in scores.items()}


BETTER = edited(BASE, 0.25, 0.03, 1)
BEST = edited(BETTER, 0.3, 0.02, 2)
WORSE = edited(BASE, 0.03, 0.1, 3)


def opened(**options: Any) -> afresh.Evaluation:
    return afresh.evaluation(IDS, **{"ledger": ":memory:", "questions": 40, "exam": 0, **options})


def test_only_improvements_pass_and_become_the_incumbent() -> None:
    with opened() as evaluation:
        gate = evaluation.gate(BASE)
        assert not gate.propose(WORSE, "worse")
        assert gate.incumbent == "baseline"
        found = gate.propose(BETTER, "better")
        assert found
        assert str(found).startswith("accepted: better is better than baseline\n")
        assert gate.incumbent == "better"
        rejected = gate.propose(BASE, "back")
        assert not rejected
        assert "do not report this as an improvement" in rejected.verdict
        assert gate.propose(BEST, "best").incumbent == "better"
        assert gate.accepted == ["better", "best"]
        assert evaluation.budget.spent == 4
        assert json.loads(found.to_json())["accepted"] is True
        receipt = evaluation.guard.receipt()
        outcome = verify(json.dumps(receipt))
        assert outcome.passed, str(outcome)
        lines = as_markdown(receipt).split("Claims, challenges and contests")[1].splitlines()
        said = [line.split("|")[2].strip() for line in lines if "`gate: " in line]
        assert said == ["failed", "passed", "failed", "passed"]  # and no number
        assert "by the rule" not in as_markdown(receipt)
        assert [each.said for each in evaluation.guard.transcript] == said


def test_a_proposal_again_is_free_and_says_the_same() -> None:
    with opened() as evaluation:
        gate = evaluation.gate(BASE)
        for results, name in ((WORSE, "worse"), (BETTER, "better")):
            first, again = (gate.propose(results, name) for _ in range(2))
            assert (again.accepted, again.charged) == (first.accepted, 0)
            assert again.incumbent == "baseline"


def other_where_guarded(evaluation: afresh.Evaluation, results: dict[str, int], score: int) -> dict[str, int]:
    """The same open scores, and others elsewhere."""
    mine = {item["id"] for item in evaluation.open_items()}
    return {id: each if id in mine else score for id, each in results.items()}


def test_a_verdict_is_about_the_results_that_were_proposed_first() -> None:
    """Which results those are may not show, for a free answer that told would be an answer about guarded items."""
    with opened() as evaluation:
        gate = evaluation.gate(BASE)
        assert gate.propose(BETTER, "better")
        never = other_where_guarded(evaluation, BETTER, 0)
        for results in (BETTER, never):
            again = gate.propose(results, "better")
            assert again.charged == 0
            assert again.verdict == "accepted: better, as first proposed, is better than baseline"
            assert "Those given now were not read" in " ".join(str(again).split())
        assert gate.propose(never, "never").charged == 1
        assert gate.accepted == ["better"]
        scored, repeat = (evaluation.score(results, name="scored") for results in (BETTER, never))
        assert (repeat.interval, repeat.charged) == (scored.interval, 0)
        assert "not read" not in str(scored)
        assert "Those given now were not read" in " ".join(str(repeat).split())


def test_a_name_is_one_candidate() -> None:
    with opened() as evaluation:
        gate = evaluation.gate(BASE)
        gate.propose(WORSE, "worse")
        for name in ("worse", "baseline"):
            with pytest.raises(InvalidArgument, match=f"knows '{name}' with other scores.* another name"):
                gate.propose(BETTER, name)
        with pytest.raises(InvalidArgument, match="another name"):
            evaluation.gate(BETTER)
        assert evaluation.budget.spent == 1


@pytest.mark.parametrize("accepted", [False, True])
@pytest.mark.parametrize("place", [":memory:", "book.sqlite"])
def test_nothing_replaces_the_scores_of_the_incumbent(tmp_path: Path, place: str, accepted: bool) -> None:
    """They are those that were judged, whatever is passed under its name."""
    ledger = place if place == ":memory:" else tmp_path / place
    with opened(ledger=ledger) as evaluation:
        assert bool(evaluation.gate(BASE).propose(BETTER if accepted else WORSE, "first")) == accepted
        own, name = (BETTER, "first") if accepted else (BASE, "baseline")
        poor = other_where_guarded(evaluation, own, 0)
        gate = evaluation.gate(poor, name=name)
        assert not gate.propose(edited(own, 0.0, 0.05, 9), "better than that alone")
        for kept in tmp_path.glob("book.sqlite.gates/*/*.npy"):
            np.save(kept, np.zeros(N))  # not what was judged, so it counts as lost
    if place == "book.sqlite":  # nothing was kept, so what is passed must be the same
        with opened(ledger=ledger) as evaluation:
            with pytest.raises(InvalidArgument, match="other scores than these; pass the results that were judged"):
                evaluation.gate(poor, name=name)
            assert evaluation.gate(own, name=name).propose(edited(own, 0.3, 0.02, 5), "more")


def test_an_exam_is_about_the_scores_it_was_taken_with() -> None:
    """Nothing is certified from the exam's items afterwards, so that other scores may be refused."""
    with opened(exam=0.3) as evaluation:
        other = dict.fromkeys(BETTER, 1) | {item["id"]: BETTER[item["id"]] for item in evaluation.open_items()}
        taken = evaluation.exam(BETTER, BASE, names=("final", "start"))
        assert evaluation.exam(BETTER, BASE, names=("final", "start")).verdict == taken.verdict
        with pytest.raises(BudgetExhausted, match="the exam has been taken"):
            evaluation.exam(other, BASE, names=("final", "start"))


def test_a_margin_must_be_exceeded() -> None:
    with opened() as evaluation:
        gate = evaluation.gate(BASE, margin=0.05)
        slightly = edited(BASE, 0.15, 0.03, 4)  # by .042
        assert not gate.propose(slightly, "slightly")
        assert gate.propose(BEST, "best")
        assert "by more than 0.05" in gate.propose(BEST, "best").verdict


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    ledger = tmp_path / "book.sqlite"
    with opened(ledger=ledger) as evaluation:
        assert evaluation.gate(BASE).propose(BETTER, "better")
        assert not evaluation.gate(BASE).propose(WORSE, "worse")
    kept = list(tmp_path.glob("book.sqlite.gates/*/*.npy"))
    assert len(kept) == 2  # the first incumbent, and the one in force
    assert all(each.stat().st_mode & 0o077 == 0 for each in kept)
    with opened(ledger=ledger) as evaluation:
        for gate in (evaluation.gate(), evaluation.gate(BASE), evaluation.gate(BETTER, name="better")):
            assert gate.incumbent == "better"
            assert not gate.propose(BASE, "base again")
        assert evaluation.budget.spent == 3
        with pytest.raises(InvalidArgument, match="the incumbent of this gate is 'better'"):
            evaluation.gate(WORSE, name="worse")
    for each in kept:
        each.unlink()
    with opened(ledger=ledger) as evaluation:
        with pytest.raises(InvalidArgument, match="pass its results"):
            evaluation.gate()
        assert evaluation.gate(BETTER, name="better").propose(BEST, "best")


def test_another_gate_of_the_same_evaluation_sees_the_incumbent(tmp_path: Path) -> None:
    with opened(ledger=tmp_path / "book.sqlite") as evaluation:
        one, two = evaluation.gate(BASE), evaluation.gate(BASE)
        assert one.propose(BETTER, "better")
        assert two.propose(BEST, "best").incumbent == "better"
        assert one.incumbent == "best"


def _propose_at_once(place: str, seed: int, together: Any, told: Any) -> None:
    """Propose over the baseline in step with the others: all know the incumbent before anybody asks."""
    first = [True]

    def ask(*arguments: Any) -> Any:
        if first.pop() if first else False:
            together.wait(60)
        return answer(*arguments)

    with opened(ledger=place) as evaluation:
        answer = evaluation.guard.desk.answer
        setattr(evaluation.guard.desk, "answer", ask)  # noqa: B010 - the type has no such setter
        found = evaluation.gate(BASE).propose(edited(BASE, 0.3 + 0.05 * seed, 0.02, seed), f"candidate {seed}")
    told.put((f"candidate {seed}", found.accepted, found.incumbent, found.charged))


def test_two_processes_that_propose_at_once_are_judged_one_after_the_other(tmp_path: Path) -> None:
    """Both beat the baseline. The one that is recorded second must beat the first, and is told so."""
    place, spawn = str(tmp_path / "book.sqlite"), multiprocessing.get_context("spawn")
    with opened(ledger=place) as evaluation:
        evaluation.open_items()  # the plan is fixed
    together, told = spawn.Barrier(2), spawn.Queue()
    running = [spawn.Process(target=_propose_at_once, args=(place, seed, together, told)) for seed in (1, 2)]
    for each in running:
        each.start()
    found = [told.get(timeout=120) for _ in running]
    for each in running:
        each.join(60)
    with opened(ledger=place) as evaluation:
        gate = evaluation.gate()
        accepted = gate.accepted
        assert evaluation.budget.spent == 3  # one of them was judged twice
        assert verify(json.dumps(evaluation.guard.receipt())).passed
    assert sorted(charged for *_, charged in found) == [1, 2]
    assert {name for name, passed, *_ in found if passed} == set(accepted)
    chain = {name: incumbent for name, _, incumbent, _ in found}
    assert chain[accepted[0]] == "baseline"
    assert {*chain.values()} == {"baseline", accepted[0]}


def test_a_gate_needs_an_incumbent_and_a_good_margin() -> None:
    with opened() as evaluation:
        with pytest.raises(InvalidArgument, match="first incumbent"):
            evaluation.gate()
        for wrong in (-0.1, 1.0, "much"):
            with pytest.raises(InvalidArgument, match="margin"):
                evaluation.gate(BASE, margin=wrong)  # type: ignore[arg-type]
        gate = evaluation.gate(BASE)
        with pytest.raises(InvalidArgument, match="name"):
            gate.propose(BETTER, "")
        with pytest.raises(InvalidArgument, match="do not fit"):
            gate.propose({}, "nothing")
        assert evaluation.budget.spent == 0


def test_nothing_is_kept_of_what_could_not_be_proposed(tmp_path: Path) -> None:
    with opened(ledger=tmp_path / "book.sqlite", questions=1) as evaluation:
        gate = evaluation.gate(BASE)
        assert not gate.propose(WORSE, "worse")
        with pytest.raises(BudgetExhausted):
            gate.propose(BETTER, "better")
    assert len(list(tmp_path.glob("book.sqlite.gates/*/*.npy"))) == 1  # the incumbent's


def test_overfitting_the_open_part_passes_nothing() -> None:
    with opened() as evaluation:
        gate = evaluation.gate(BASE)
        mine = {item["id"] for item in evaluation.open_items()}
        learnt = {id: 1 if id in mine else score for id, score in BASE.items()}
        assert gate.chance(learnt) > 0.9  # all that the open part can say
        assert not gate.propose(learnt, "learnt by heart")
        assert gate.chance(BASE) < 0.01


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_a_predicted_chance_is_how_often_a_proposal_passes(margin: float) -> None:
    """For true gains of all sizes. Of 400 predictions or more, a frequency is off by .15 with a probability of 3e-8."""
    rng, level = np.random.default_rng(5), 6.0
    found = []
    for gain in rng.uniform(-0.05, 0.3, 6000):
        open_, guarded = (rng.choice([1, -1, 0], n, p=[0.16 + gain / 2, 0.16 - gain / 2, 0.68]) for n in (150, 350))
        passed = better(350, int((guarded > 0).sum()), int((guarded < 0).sum()), level, margin)
        found.append((predicted(open_.astype(np.float64), 350, level, margin), passed))
    chances, passes = np.array(found).T
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        here = (chances >= low) & (chances <= low + 0.2)
        assert here.sum() >= 400
        assert abs(passes[here].mean() - chances[here].mean()) < 0.15


def test_what_it_detects_is_what_it_accepts() -> None:
    """An improvement as large as `detects` says is accepted about nine times in ten; failure probability 1e-9."""
    n, level, differ = 3000, 9.0, 0.2
    gain = smallest_gain(n, level, differ)
    rng = np.random.default_rng(3)
    better, worse, _ = rng.multinomial(n, [(differ + gain) / 2, (differ - gain) / 2, 1 - differ], 1000).T
    passed = int((sign_test(better, worse) >= level).sum())
    assert binom.cdf(passed, 1000, 0.85) > 1e-9
    assert binom.sf(passed, 1000, 0.97) > 1e-9
    margin = 0.03
    gain = smallest_gain(n, level, differ, margin) + margin
    better, worse, _ = rng.multinomial(n, [(differ + gain) / 2, (differ - gain) / 2, 1 - differ], 1000).T
    limits = lower_limit("three-valued", n, better - worse, better + worse, level)
    assert binom.cdf(int((limits > margin).sum()), 1000, 0.8) > 1e-9


def test_it_says_beforehand_what_it_can_notice_and_what_would_be_enough() -> None:
    with opened() as evaluation:
        gate = evaluation.gate(BASE)
        assert 0.03 < gate.detects() < 0.05
        assert gate.detects(disagreement=0.06) < gate.detects() < gate.detects(proposals=30, acceptances=10)
        assert gate.detects(disagreement=0.001) == 1.0
        assert "milestones" in str(gate)
    ids = [f"q{i}" for i in range(500)]
    with afresh.evaluation(ids, ledger=":memory:") as evaluation:
        with pytest.warns(FewItems, match="too few items.* about 2,[0-9]00 items would be enough, and you have 500"):
            gate = evaluation.gate(dict.fromkeys(ids, 1))
        assert gate.detects() > 0.1
        assert evaluation.budget.spent == 0
    with afresh.evaluation([f"q{i}" for i in range(4000)], ledger=":memory:") as evaluation, warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluation.gate(dict.fromkeys([f"q{i}" for i in range(4000)], 1))


def test_it_warns_of_too_few_items_only_if_the_first_proposal_had_too_few(tmp_path: Path) -> None:
    """Surprises make a gate less sensitive, but no number of items would have been more than enough at its start."""
    ids = [f"q{i}" for i in range(4000)]
    for _ in range(2):  # the second time it continues with a gate that detects less than is useful
        with afresh.evaluation(ids, ledger=tmp_path / "ledger.sqlite") as evaluation, warnings.catch_warnings():
            warnings.simplefilter("error")
            gate = evaluation.gate(dict.fromkeys(ids, 0))
            seen = {item["id"] for item in evaluation.open_items()}
            for step in range(8):  # better on open items alone: the gate expects a pass, and rejects
                overfitted = {each: int(each in seen and int(each[1:]) % 9 != step) for each in ids}
                assert not gate.propose(overfitted, name=f"overfitted {step}").accepted
            assert gate.detects() > 0.1 > gate.detects(proposals=0)
            assert not gate.too_few
            assert "too few" not in gate.advice


@pytest.mark.parametrize("margin", [0.0, 0.1])
@pytest.mark.parametrize("graded", [False, True])
def test_the_certificate_exactly_on_small_worlds(margin: float, graded: bool) -> None:
    """Every sample of a small world, every level: a candidate that is no improvement passes with at most e^-L.

    Brute force over all counts of 12 items, for all three-point laws of the gain with a mean of exactly the margin; the
    graded world has the gains -1/2, 0, 1 so that bets on numbers decide.
    """
    n, worst = 12, 0.0
    plan = plan_open_rows(2 * n, 3, 0.4, share=0.5)
    assert plan is not None
    values = np.array([-0.5, 0.0, 1.0]) if graded else np.array([-1.0, 0.0, 1.0])
    counts = np.array([(i, n - i - j, j) for i in range(n + 1) for j in range(n + 1 - i)])
    gains = counts @ values
    squares = counts @ values**2
    alpha = np.exp(-node_level(plan.checking, Trail()))
    passed = []
    for total, square in zip(gains, squares, strict=True):
        shifted = Moments(n, (total + n) / 2, (square + 2 * total + n) / 4)
        task = Claim(0.5 + margin / 2, 1.0, expected=False, signs=True)
        settle = plan.release((Moments(n, n / 2, n / 4), shifted), 0.0, task=task, levels=None if graded else 3)
        passed.append(bool(settle(())["passed"]))
    assert any(passed)
    ways = gammaln(n + 1) - gammaln(counts + 1).sum(1)
    for up in np.linspace(0.001, 1, 60):
        down = (up * values[2] - margin) / -values[0]
        if down >= 0 and up + down <= 1:
            law = np.array([down, 1 - up - down, up])
            with np.errstate(divide="ignore"):
                logs = np.where(counts > 0, counts * np.log(np.maximum(law, 1e-300)), 0.0).sum(1)
            chance = np.exp(ways + logs)
            assert abs(chance.sum() - 1) < 1e-9
            worst = max(worst, float(chance[np.array(passed)].sum()))
    assert worst <= alpha
    assert worst > 1e-4 * alpha  # the world is not trivial
