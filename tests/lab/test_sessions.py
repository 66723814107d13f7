"""One conformance suite for every mechanism of the lab, then what each one is known for."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import afresh
from afresh.lab.baselines.calibrated_guesses import plan_calibrated_guesses
from afresh.lab.baselines.calibrated_laplace import CalibratedLaplace, plan_calibrated_laplace
from afresh.lab.baselines.fixed_gaussian import plan_fixed_gaussian
from afresh.lab.baselines.fixed_laplace import plan_fixed_laplace
from afresh.lab.baselines.ladder import Ladder
from afresh.lab.baselines.ladder_free import ParameterFreeLadder
from afresh.lab.baselines.laplace import laplace_from_normal, laplace_quantile
from afresh.lab.baselines.median import StableMedian
from afresh.lab.baselines.subsampling import Subsampling
from afresh.lab.baselines.thresholdout import Thresholdout
from afresh.lab.certified import Guessing, InwardTable
from afresh.lab.mechanisms import MECHANISMS
from afresh.lab.population import POPULATIONS, Bit, evaluate
from afresh.mechanisms.base import geometric_mean
from afresh.mechanisms.guess_and_check import GuessAndCheck, make_guess_and_check, pack
from afresh.mechanisms.stabilized import plan_stabilized
from afresh.moments import Moments
from afresh.theory.guess_and_check import History
from afresh.theory.posterior import noise_level, posterior_interval, posterior_level

N, K, FAILURE = 2000, 40, 0.05
each = pytest.mark.parametrize("name", MECHANISMS)


def sample(name: str, seed: int = 3) -> NDArray[np.float64]:
    population = POPULATIONS[name]
    return evaluate([Bit(j) for j in range(K)], population.draw(N, np.random.default_rng(seed)))


def test_every_mechanism_has_a_file_of_its_own() -> None:
    made = [MECHANISMS[name](N, K, FAILURE) for name in MECHANISMS]
    kinds = {type(getattr(m, "mechanism", m)) for m in made}
    assert (
        len({kind.__module__ for kind in kinds}) == len(kinds) == len(MECHANISMS) - 3
    )  # open rows, own ones and an exam are ways to check


@each
@pytest.mark.parametrize("population", ["fair", "p=0.01", "differences"])
def test_values_lie_in_their_intervals_and_fixed_questions_are_covered(name: str, population: str) -> None:
    """Fixed seeds. With fresh ones an interval would miss with probability at most 5 %, for most far less."""
    mechanism = MECHANISMS[name](N, K, FAILURE)
    answers = mechanism.start(np.random.default_rng(1)).answer(sample(population))
    assert answers.value.shape == answers.low.shape == answers.high.shape == (K,)
    assert np.all((answers.low >= 0) & (answers.low <= answers.value))
    assert np.all((answers.value <= answers.high) & (answers.high <= 1))
    truth = POPULATIONS[population].seen(POPULATIONS[population].p)
    if mechanism.certified or name == "empirical":
        assert np.all((answers.low <= truth) & (truth <= answers.high))


@each
def test_a_batch_is_answered_like_its_questions_one_by_one(name: str) -> None:
    mechanism, values = MECHANISMS[name](N, K, FAILURE), sample("p=0.1")
    together = mechanism.start(np.random.default_rng(7)).answer(values)
    session = mechanism.start(np.random.default_rng(7))
    apart = [session.answer(values[i : i + 1]) for i in range(K)]
    assert [a.value[0] for a in apart] == together.value.tolist()
    assert [a.low[0] for a in apart] == pytest.approx(together.low.tolist(), abs=1e-12)
    assert [a.high[0] for a in apart] == pytest.approx(together.high.tolist(), abs=1e-12)


@each
def test_conversations_do_not_share_anything(name: str) -> None:
    mechanism, values = MECHANISMS[name](N, K, FAILURE), sample("fair")
    first = mechanism.start(np.random.default_rng(7)).answer(values)
    mechanism.start(np.random.default_rng(8)).answer(1 - values)
    again = mechanism.start(np.random.default_rng(7)).answer(values)
    assert again.value.tolist() == first.value.tolist()
    assert again.low.tolist() == first.low.tolist()


def test_the_lab_never_shows_a_wider_interval_than_the_guard() -> None:
    mechanism = plan_stabilized(N, K, FAILURE)
    assert mechanism is not None
    table = InwardTable(mechanism)
    released = np.linspace(0, mechanism.release(Moments(1, 1.0, 1.0), 9.0), 60)
    shown = table(released)
    for y, low, high in zip(released, shown.low, shown.high, strict=True):
        real = mechanism.interval(float(y))
        assert real[0] <= low + 1e-12
        assert high <= real[1] + 1e-12
        assert high - low >= (real[1] - real[0]) * 0.985 - 1e-3


# --- Laplace and fixed noise ---------------------------------------------------------------------------------------


def test_laplace_noise_has_the_tails_it_should() -> None:
    from scipy.special import log_ndtr

    for xi in (0.0, 0.1, 1.0, 3.0, 8.0, 30.0):
        x = laplace_from_normal(xi)
        assert -x - math.log(2) == pytest.approx(float(log_ndtr(-xi)), rel=1e-12)  # ln Pr(Lap > x)
        assert laplace_from_normal(-xi) == -x
    assert (1 - math.exp(-laplace_quantile(50, 0.01))) ** 50 == pytest.approx(0.99, rel=1e-12)


def test_the_gaussian_beats_laplace_noise() -> None:
    """Why no planner offers it."""
    from afresh.mechanisms.calibrated import plan_calibrated

    laplace = plan_calibrated_laplace(N, K, FAILURE)
    assert isinstance(laplace, CalibratedLaplace)
    assert laplace.half_width(0.1) > plan_calibrated(N, K, FAILURE).half_width(0.1)
    assert plan_fixed_laplace(N, K, FAILURE).half_width(0.5) > plan_fixed_gaussian(N, K, FAILURE).half_width(0.5)


@pytest.mark.parametrize(
    ("rows", "questions"), [(10**5, 1000), (10**5, 2), (2000, 200), (10**4, 20), (100, 10), (1000, 5000)]
)
def test_no_guard_misses_a_narrower_promise(rows: int, questions: int) -> None:
    """Certified mechanisms that a guard does not offer never beat the one that it chooses."""
    chosen = geometric_mean(afresh.plan(rows, questions).half_width)
    for planner in (plan_fixed_gaussian, plan_fixed_laplace, plan_calibrated_laplace):
        assert geometric_mean(planner(rows, questions, 0.05).half_width) >= chosen


def test_fixed_gaussian_is_section_nine() -> None:
    m = plan_fixed_gaussian(10**5, 1000, FAILURE)
    level = posterior_level(m.rows, m.information, m.failure - m.noise_failure)
    noise = noise_level(m.questions, m.noise_failure)
    for v in (0.0, 0.01, 0.5, 1.0):
        expected = posterior_interval(v, m.scale, m.rows, level, noise, m.grid / 2)
        assert m.interval(v) == pytest.approx(expected, rel=1e-12)
    assert m.half_width(0.1) == pytest.approx(0.0460, abs=5e-4)  # printed in section 9, one s for each mean
    assert m.half_width(0.01) == pytest.approx(0.0238, abs=1e-3)


# --- Baselines -----------------------------------------------------------------------------------------------------


def test_thresholdout_keeps_to_the_training_rows_until_they_disagree() -> None:
    holdout = Thresholdout(N, K, FAILURE, tolerance=1e-6).start(np.random.default_rng(1))
    training, held = np.array([0.5, 0.5, 0.9]), np.array([0.52, 0.6, 0.5])
    assert holdout.choose(training, held) == pytest.approx([0.5, 0.6, 0.5], abs=1e-3)


def test_thresholdout_noise_is_as_published() -> None:
    """Scales by the mean of |x| over 40,000 draws, good to 2.5 % (5 deviations, failure 6e-7 each)."""
    s, count = 0.01, 40_000
    drawn = Thresholdout(N, K, FAILURE, threshold=-10.0, tolerance=s).start(np.random.default_rng(2))
    answers = drawn.choose(np.zeros(count), np.ones(count)) - 1  # always over the threshold
    assert np.abs(answers).mean() == pytest.approx(s, rel=0.025)
    assert np.median(np.abs(answers)) == pytest.approx(s * math.log(2), rel=0.04)
    # Lap(2s) anew after each crossing, Lap(4s) a question: crossed where gap = T with probability 1/2, and where
    # gap = T + 8s with that of Lap(2) + Lap(4) > 8.
    edge = Thresholdout(N, K, FAILURE, threshold=0.04, tolerance=s).start(np.random.default_rng(3))
    reference = np.random.default_rng(4)
    beyond = np.mean(reference.laplace(scale=2, size=10**6) + reference.laplace(scale=4, size=10**6) < -8)
    crossed = 0
    for _ in range(count):
        fresh = Thresholdout(N, K, FAILURE, threshold=0.12, tolerance=s).start(edge._rng)
        crossed += fresh.choose(np.zeros(1), np.full(1, 0.04))[0] != 0
    assert crossed / count == pytest.approx(beyond, abs=5 * math.sqrt(beyond / count))


def test_ladder_moves_by_whole_steps() -> None:
    values = np.repeat(np.array([[0.50], [0.52], [0.56], [0.40], [0.57], [0.61]]), 100, axis=1)
    board = Ladder(100, 10, FAILURE, step=0.05).start(np.random.default_rng(1))
    assert board.answer(values).value == pytest.approx([0.5, 0.5, 0.55, 0.55, 0.55, 0.6])


def test_parameter_free_ladder_asks_for_a_paired_improvement() -> None:
    rng = np.random.default_rng(1)
    base = (rng.random(1000) < 0.5).astype(np.uint8)
    few, many = base.copy(), base.copy()
    few[np.flatnonzero(base == 0)[:2]] = 1  # two rows won and one lost: better by .001, sd .055, over sqrt(n) .0017
    few[np.flatnonzero(base == 1)[:1]] = 0
    many[np.flatnonzero(base == 0)[:9]] = 1
    shown = ParameterFreeLadder(1000, 10, FAILURE).start(rng).answer(np.stack([base, few, many, base])).value
    assert shown == pytest.approx([base.mean(), base.mean(), many.mean(), many.mean()])


def test_stable_median_draws_near_the_median_of_block_means() -> None:
    mechanism = StableMedian(N, K, FAILURE, blocks=40)
    rows = np.repeat(np.linspace(0.1, 0.9, 40), 50)[None, :]
    drawn = np.concatenate([mechanism.start(np.random.default_rng(i)).answer(rows).value for i in range(200)])
    assert np.all(np.abs(drawn - 0.5) <= 0.8 * 0.25 + 0.03)  # a rank off by a quarter; each fails with 1/k/1001
    assert abs(drawn.mean() - 0.5) < 0.03


def test_subsampling_noise_is_calibrated_to_the_variance() -> None:
    mechanism = Subsampling(N, 400, FAILURE, votes=500)
    rows = np.zeros((400, N), dtype=np.uint8)
    rows[:, : N // 10] = 1
    value = mechanism.start(np.random.default_rng(5)).answer(rows).value
    assert value.std() == pytest.approx(math.sqrt(0.1 * 0.9 / 500), rel=0.2)  # 5.7 deviations of a sd of 400


# --- Guess and check -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("planner", [make_guess_and_check, plan_calibrated_guesses])
def test_guess_and_check_replays_from_its_records(planner: Callable[[int, int, float], GuessAndCheck]) -> None:
    mechanism = replace(planner(N, K, FAILURE), reach=1.0)
    conversation = Guessing(mechanism, np.random.default_rng(3))
    answers = conversation.answer(sample("fair"))
    assert 3 < conversation.history.failures < K
    assert conversation.history.asked == K
    told = np.array(mechanism.replay(conversation.records))
    assert told.T.tolist() == [answers.value.tolist(), answers.low.tolist(), answers.high.tolist()]


@given(st.floats(0, 1), st.integers(0, 30))
def test_claims_grow_with_failures_and_hold_their_guess(guess: float, failures: int) -> None:
    mechanism = make_guess_and_check(N, K, FAILURE)
    before, after = History(failures, failures, 3.0 * failures), History(failures + 1, failures + 1, 3.0 * failures + 3)
    low, high, bins = mechanism.claim(guess, before)
    wider = mechanism.claim(guess, after)
    assert wider[0] <= low <= guess <= high <= wider[1]
    assert 1 <= wider[2] <= bins
    record = mechanism.check(guess, guess, (low, high, bins), before)
    assert record.bin is None  # a check mean that agrees passes
    assert mechanism.interval(pack(record, before)) == (low, high)


def test_a_guess_of_the_users_own() -> None:
    mechanism = make_guess_and_check(10_000, 100, FAILURE)
    claim = mechanism.user_claim(0.30, 0.05)
    assert claim[:2] == pytest.approx((0.25, 0.35))
    assert claim[2] == 20
    assert mechanism.check(0.302, 0.3, claim, History()).bin is None
    failed = mechanism.check(0.345, 0.3, claim, History())
    assert failed.bin == 6
    low, high = mechanism.interval(pack(failed, History()))
    assert low < 0.3 < 0.35 < high
    assert mechanism.user_claim(0.0, 0.0)[2] == 1000
