import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

import afresh
from afresh.errors import ImpossibleWidth, InvalidArgument
from afresh.mechanisms.base import geometric_mean
from afresh.mechanisms.calibrated import Calibrated
from afresh.mechanisms.registry import PLANNERS, TUNED
from afresh.mechanisms.stabilized import Stabilized
from afresh.planning.choose import WORTH_EXPECTING
from afresh.planning.plan import Plan
from afresh.planning.ways import least_promise, promised_at_half, tuned
from examples import examples
from oracle import calibrated as calibrated_oracle
from oracle import stabilized as stabilized_oracle

MEANS = (0.5, 0.1, 0.01)
CELLS = [
    (10**4, 100),
    (10**4, 1000),
    (10**5, 100),
    (10**5, 1000),
    (10**5, 10**4),
    (10**6, 1000),
    (10**6, 10**4),
]
# docs/guarantees.md, sections 8 and 10.
CALIBRATED_95 = [
    (0.1390, 0.0850, 0.0347),
    (0.2481, 0.1588, 0.0881),
    (0.0447, 0.0269, 0.0091),
    (0.0832, 0.0503, 0.0181),
    (0.1522, 0.0935, 0.0397),
    (0.0265, 0.0159, 0.0053),
    (0.0492, 0.0296, 0.0101),
]
STABILIZED_95 = [
    (0.0922, 0.0554, 0.0188),
    (0.1729, 0.1042, 0.0433),
    (0.0290, 0.0174, 0.0058),
    (0.0553, 0.0332, 0.0111),
    (0.1042, 0.0626, 0.0217),
    (0.0173, 0.0104, 0.0034),
    (0.0327, 0.0196, 0.0065),
]
STABILIZED_99 = [
    (0.1038, 0.0624, 0.0217),
    (0.1946, 0.1174, 0.0504),
    (0.0326, 0.0196, 0.0065),
    (0.0617, 0.0370, 0.0125),
    (0.1171, 0.0704, 0.0246),
    (0.0193, 0.0116, 0.0038),
    (0.0368, 0.0221, 0.0073),
]
FIGURES = [
    *((cell, "calibrated", 0.95, row) for cell, row in zip(CELLS, CALIBRATED_95, strict=True)),
    *((cell, "stabilized", 0.95, row) for cell, row in zip(CELLS, STABILIZED_95, strict=True)),
    *((cell, "stabilized", 0.99, row) for cell, row in zip(CELLS, STABILIZED_99, strict=True)),
]


def check_calibrated(m: Calibrated, widths: list[float]) -> None:
    """No narrower than the formulas justify, and not much wider."""
    for mean, width in zip(MEANS, widths, strict=True):
        justified = calibrated_oracle.half_width(
            mean, m.rows, m.questions, m.failure, m.noise_failure, m.t, m.T, m.grid
        )
        assert justified * (1 - 1e-9) <= width <= justified * 1.005


def check_stabilized(m: Stabilized) -> None:
    """The constants satisfy every hypothesis of Theorem T, H is its bound, and both ends are its ends."""
    n, k = m.rows, m.questions
    information = stabilized_oracle.information(n, k, m.s, m.v0)
    qb = stabilized_oracle.qb(n, information, m.v0)
    assert stabilized_oracle.constant_B(m.c - 1, qb) <= m.B * (1 + 1e-12)
    assert stabilized_oracle.star_margin(m.c, m.B, m.A, m.theta, qb) > 0
    assert m.lam >= 1 / math.sqrt(m.v0)
    H = stabilized_oracle.H(m.s, m.lam, information, m.c, m.B, m.A, m.theta, k, m.failure)
    assert H <= m.H <= H * (1 + 1.1e-4)  # a ten-thousandth is kept for numbers
    for mean in MEANS:
        y = stabilized_oracle.theta(mean, m.v0)
        low, high = m.interval(y)
        reach, little = H + m.grid / 2, 0.005 * (high - low)
        for end, inside, e in ((low, low + little, e_plus), (1 - high, 1 - high + little, mirrored_e_plus)):
            target = y - reach if e is e_plus else stabilized_oracle.theta(1.0, m.v0) - y - reach
            assert end == 0 or e(end, n, m.lam, m.v0) <= target + 1e-12
            assert e(inside, n, m.lam, m.v0) > target


def e_plus(p: float, n: int, tilt: float, v0: float) -> float:
    return stabilized_oracle.e_plus(p, n, tilt, v0) if p > 0 else 0.0


def mirrored_e_plus(p: float, n: int, tilt: float, v0: float) -> float:
    """Theta(1) - e_-(1 - p), which is what the upper end compares."""
    if p <= 0:
        return 0.0
    return stabilized_oracle.theta(1.0, v0) - stabilized_oracle.e_minus(1 - p, n, tilt, v0)


@pytest.mark.parametrize(("cell", "method", "confidence", "figures"), FIGURES)
def test_half_widths_match_the_figures_and_the_formulas(
    cell: tuple[int, int], method: str, confidence: float, figures: tuple[float, ...]
) -> None:
    plan = afresh.plan(*cell, confidence, method=method)
    widths = [plan.half_width(mean) for mean in MEANS]
    assert math.prod(w / f for w, f in zip(widths, figures, strict=True)) ** (1 / 3) <= 1.01
    assert all(w <= f * 1.06 for w, f in zip(widths, figures, strict=True))
    if isinstance(plan.mechanism, Calibrated):
        check_calibrated(plan.mechanism, widths)
    else:
        assert isinstance(plan.mechanism, Stabilized)
        check_stabilized(plan.mechanism)


SIZES = ((10**5, 1000), (10**5, 2), (2000, 200), (10**4, 20), (100, 10), (1000, 5000))


@pytest.mark.parametrize(("rows", "questions"), SIZES)
def test_expected_widths_are_the_default_where_they_are_much_narrower(rows: int, questions: int) -> None:
    """1.4 times, by the geometric mean; more answers than questions, and promise=True, leave them out."""
    promised = afresh.plan(rows, questions, promise=True)
    checked = afresh.plan(rows, questions, method="checked")
    wider = geometric_mean(promised.half_width) / geometric_mean(checked.half_width)
    chosen = afresh.plan(rows, questions)
    assert chosen.method == ("checked" if wider >= WORTH_EXPECTING else promised.method)
    assert promised.mechanism.promised
    if chosen.method == "checked":
        assert "expected" in chosen.advice
        assert "promise=True" in chosen.advice
        assert " promises ±" in chosen.advice
        assert "widths are expected" in chosen.in_words
        assert afresh.plan(rows, questions, answers=questions + 1).mechanism.promised


@pytest.mark.parametrize(
    ("rows", "questions", "failure"), [(10**4, 100, 0.05), (10**5, 10**4, 0.05), (10**6, 100, 1e-4)]
)
def test_one_promise_tells_what_all_of_them_are_at_least(rows: int, questions: int, failure: float) -> None:
    """So that not all need planning: symmetrized is the narrowest at one half, and none is below what follows."""
    at_half = promised_at_half(rows, questions, failure)
    assert at_half is not None
    for name in TUNED:
        usual = PLANNERS[name](rows, questions, failure)
        near_half = tuned({name: PLANNERS[name]}, (0.5,))[name](rows, questions, failure)
        assert usual is not None is not near_half
        assert near_half.half_width(0.5) >= at_half * (1 - 1e-9)
        assert geometric_mean(usual.half_width) >= least_promise(at_half)


def test_the_narrowest_promise_is_so_by_the_geometric_mean() -> None:
    for rows, questions in SIZES:
        plan = afresh.plan(rows, questions, promise=True)
        certified = {
            name: math.prod(m.half_width.values())
            for name, m in plan.methods.items()
            if m.certified and m.promised and m.half_width
        }
        assert certified[plan.method] == min(certified.values())


def test_comparison_has_every_method_and_the_reference_lines() -> None:
    methods = afresh.plan(10**5, 1000).methods
    promised = [name for name, m in methods.items() if m.certified and m.promised]
    assert promised == ["stabilized", "symmetrized", "settled", "calibrated", "rounds"]
    reference = {name: m.half_width for name, m in methods.items() if not m.certified}
    assert reference["jung"] is not None
    assert reference["jung"][0.5] == pytest.approx(0.135, abs=5e-4)
    assert reference["paper"] is not None
    assert reference["paper"][0.5] == pytest.approx(1.40, abs=5e-3)
    assert methods["rounds"].half_width is not None
    side = 0.05 / 1000 / 2  # and 100 rows of its own, for each question
    exact = (beta.ppf(1 - side, 51, 50) - beta.ppf(side, 50, 51)) / 2
    assert methods["rounds"].half_width[0.5] == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("method", [None, "stabilized", "calibrated", "rounds"])
def test_questions_from_rows_and_width(method: str | None) -> None:
    plan = afresh.plan(rows=20_000, width=0.08, method=method)
    assert plan.rows == 20_000
    assert plan.half_width() <= 0.08
    # A few more would no longer fit (the optimiser is good to about a thousandth of the width).
    more = afresh.plan(20_000, plan.questions + 1 + plan.questions // 50, method=plan.method)
    assert more.half_width() > 0.08


@pytest.mark.parametrize("method", [None, "stabilized", "calibrated", "rounds"])
def test_rows_from_questions_and_width(method: str | None) -> None:
    plan = afresh.plan(questions=50, width=0.02, mean=0.1, method=method)
    assert plan.questions == 50
    assert plan.half_width(0.1) <= 0.02
    fewer = afresh.plan(int(plan.rows * 0.99), 50, method=plan.method)
    assert fewer.half_width(0.1) > 0.02


def test_solving_takes_the_best_method_for_the_width() -> None:
    best = afresh.plan(questions=1000, width=0.05).rows
    assert best == min(
        afresh.plan(questions=1000, width=0.05, method=m).rows
        for m in ("stabilized", "symmetrized", "calibrated", "rounds")
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 19, "questions": 5}, r"rows == 19, must be at least 20"),
        ({"rows": 100, "questions": 0}, r"questions == 0, must be at least 1"),
        ({"rows": 100, "questions": 5, "confidence": 1.0}, r"confidence == 1.0, must be a number in \(0, 1\)"),
        ({"rows": 100, "questions": 5, "confidence": 0}, r"confidence == 0, must be a number in \(0, 1\)"),
        ({"rows": 100, "questions": 5, "confidence": math.nan}, r"confidence == nan"),
        ({"rows": 100.5, "questions": 5}, r"rows == 100.5, must be a whole number"),
        (
            {"rows": 100, "questions": 5, "method": "magic"},
            r"must be one of stabilized, symmetrized, ",
        ),
        ({"rows": 100}, r"two of rows, questions and width"),
        ({"rows": 100, "questions": 5, "width": 0.1, "method": "stabilized"}, r"exactly one of rows and questions"),
        ({"rows": 100, "questions": 5, "width": 0.1}, r"even if all are asked in one round; the narrowest is ±0.133"),
        ({"rows": 100, "questions": 5, "rounds": 0}, r"rounds == 0, must be at least 1"),
        ({"rows": 100, "questions": 5, "rounds": 2, "method": "calibrated"}, r"'calibrated' has no rounds"),
        ({"rows": 100, "width": 0.7}, r"width == 0.7, must be a number in \(0, 0.5\)"),
        ({"rows": 30, "questions": 50, "method": "rounds"}, r"rounds cannot answer 50 questions from 30 rows"),
    ],
)
def test_impossible_requests(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        afresh.plan(**arguments)  # type: ignore[arg-type]


def test_unreachable_width_says_what_is_possible() -> None:
    with pytest.raises(ImpossibleWidth, match=r"the narrowest is ±0.1\d\d"):
        afresh.plan(rows=50, width=0.01)
    with pytest.raises(ImpossibleWidth, match="more than 10,000,000,000 rows"):
        afresh.plan(questions=10**6, width=1e-6)


@examples(0.25)
@given(
    st.floats(math.log(20), math.log(10**7)).map(lambda x: round(math.exp(x))),
    st.floats(0, math.log(10**6)).map(lambda x: round(math.exp(x))),
    st.sampled_from([0.5, 0.9, 0.95, 0.999, 1 - 1e-6]),
)
def test_any_possible_request_gives_a_coherent_plan(rows: int, questions: int, confidence: float) -> None:
    plan = afresh.plan(rows, questions, confidence)
    assert plan.confidence == pytest.approx(confidence, abs=1e-15)
    for mean in (0.0, 0.003, 0.5, 1.0):
        assert 0 < plan.half_width(mean) <= 0.5
    assert Plan.thaw(plan.limits) == plan
    assert json.loads(json.dumps(plan.to_dict()))["method"] == plan.method


def test_more_confidence_rows_or_fewer_questions_never_hurt_much() -> None:
    def width(rows: int, questions: int, confidence: float) -> float:
        plan = afresh.plan(rows, questions, confidence)
        return geometric_mean(plan.half_width)  # what a plan is chosen by; the methods differ at one half

    base = width(30_000, 300, 0.95)
    assert width(60_000, 300, 0.95) < base < width(15_000, 300, 0.95)
    assert width(30_000, 150, 0.95) < base < width(30_000, 600, 0.95)
    assert width(30_000, 300, 0.9) < base < width(30_000, 300, 0.99)


def test_typical_means_choose_method_and_constants() -> None:
    """Rare means are for stabilized, means near one half for symmetrized, all of them for settled; the rule is one."""
    usual, middle, rare = (afresh.plan(10**5, 1000, typical=means, promise=True) for means in (None, 0.5, [0.01, 0.02]))
    assert (usual.method, middle.method, rare.method) == ("settled", "symmetrized", "stabilized")
    assert middle.half_width(0.5) < 0.0379 * 1.01
    assert rare.half_width(0.01) <= usual.half_width(0.01)
    for means, plan in (((0.5,), middle), ((0.01, 0.02), rare)):
        names = ("stabilized", "symmetrized", "settled")
        others = [afresh.plan(10**5, 1000, typical=means, method=name) for name in names]
        assert geometric_mean(plan.half_width, means) == min(geometric_mean(p.half_width, means) for p in others)
    for bad in (2.0, [], [0.5, -1], "half", math.nan):
        with pytest.raises(InvalidArgument, match=r"typical == .*number from 0 to 1"):
            afresh.plan(10**5, 1000, typical=bad)  # type: ignore[arg-type]


def test_advice_says_which_promise_is_narrowest_and_where_another_is() -> None:
    usual = afresh.plan(10**5, 1000, promise=True).advice
    assert "Over the means 0.5, 0.1 and 0.01 they are the narrowest promise" in usual
    forced = afresh.plan(10**5, 10**4, method="symmetrized").advice
    assert "Over the means 0.5, 0.1 and 0.01 settled promises ±0.046" in forced[: forced.index(" on average")]
    fewer = afresh.plan(10**4, 1000, promise=True).advice
    assert "symmetrized promises ±0.12" in fewer
    assert "typical=0.5" in fewer


def test_a_public_disagreement_is_followed_by_one_method() -> None:
    """500 comparisons of 100,000 rows, with room for all to differ on the same rows."""
    for share, target in ((0.1, 0.0213), (0.05, 0.0155), (0.02, 0.0106)):
        mechanism: Any = afresh.plan(10**5, 500, disagreement=share).mechanism
        finer = mechanism.coarser(mechanism.noise_following(share))
        assert finer.difference_width(share) <= target
        assert finer.charge == mechanism.charge
        assert 500 * finer.row_charge <= mechanism.row_share
    with pytest.raises(InvalidArgument, match="only with method='symmetrized'"):
        afresh.plan(10**5, 500, disagreement=0.1, method="stabilized")
    with pytest.raises(InvalidArgument, match="disagreement == 0"):
        afresh.plan(10**5, 500, disagreement=0)


def test_a_plan_is_frozen_and_shows_itself() -> None:
    plan = afresh.plan(10**5, 1000, promise=True)
    with pytest.raises(AttributeError):
        plan.mechanism = None  # type: ignore[assignment,misc]
    text, page = str(plan.details), plan._repr_html_()
    for part in ("1,000 questions about 100,000 rows", "settled *", "calibrated", "jung", "nats"):
        assert part in text
        assert part in page


def test_the_plan_advises() -> None:
    assert "can promise no width" in afresh.plan(100_000, 1000, promise=True).advice
    few = afresh.plan(100_000, 3)
    assert few.method == "rounds"
    assert "suits only a few questions" in few.advice
    assert "narrower" not in few.advice
    assert "would be narrower" in afresh.plan(100_000, 1000, method="rounds").advice
    guessed = afresh.plan(100_000, 1000, method="checked").advice
    assert "not how wide" in guessed
    assert " promises ±0.039" in guessed
