"""Choosing a plan: the narrowest method for given rows, questions or width, before any data is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from types import EllipsisType

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.mechanisms.base import TYPICAL_MEANS, Mechanism, geometric_mean
from afresh.mechanisms.names import EXPECTED
from afresh.mechanisms.registry import (
    ENDLESS,
    FOLLOWING,
    FOR_NUMBERS,
    IN_ROUNDS,
    MECHANISMS,
    PLANNERS,
    PROMISING,
    WITH_OPEN_ROWS,
    Planner,
    planner_for,
    planner_for_deviation,
    planner_with_open,
    planner_without_end,
)
from afresh.planning.plan import Plan
from afresh.planning.request import check_deviation, check_parts, complement
from afresh.planning.solve import fewest_rows, most_questions, most_rounds
from afresh.planning.ways import (
    largest_share,
    least_promise,
    narrowest_share,
    planner_with_best_share,
    promised_at_half,
    tuned,
)

FEWEST_ROWS = 20


def plan(
    rows: int | None = None,
    questions: int | EllipsisType | None = ...,
    confidence: float = 0.95,
    *,
    answers: int | None = None,
    width: float | None = None,
    mean: float = 0.5,
    method: str | None = None,
    rounds: int | None = None,
    typical: float | Sequence[float] | None = None,
    disagreement: float | None = None,
    open: float | None = None,
    exam: float | None = None,
    development: int | None = None,
    promise: bool = False,
    deviation: float | None = None,
) -> Plan:
    """Make a plan from any two of rows, questions and width, before you touch the data.

    Without a width, the plan uses the method and constants with the smallest geometric mean of guaranteed half-widths
    at the `typical` means (0.5, 0.1 and 0.01 by default). With a width, it uses the method that needs the fewest rows
    or allows the most questions. With rows, questions and a width, it plans as many rounds of questions as keep the
    width.

    Args:
        rows: The number of rows in the dataset, at least 20.
        questions: The most answers at full price; None for a budget that never runs out, whose answers are a little
            wider and slowly grow wider still.
        confidence: The probability that all intervals hold at once.
        answers: The most answers if some are coarser and cheaper; more than `questions` makes all answers a little
            wider.
        width: The half-width you need, instead of `rows` or `questions`; below 0.5, on the scale [0, 1].
        mean: The mean that `width` refers to; intervals are widest at 0.5.
        method: The name of a method to use, whatever its widths.
        rounds: The number of rounds you will ask in, each on fresh rows. Questions asked together, for example in one
            `ask_many`, form one round. With rows, questions and width, the plan finds the most rounds.
        typical: The mean or means you expect answers to have, as shares of the range between the bounds. All intervals
            hold whatever the means are; they are narrowest near these. The default with a width is `mean`; with a
            disagreement it is 0.5.
        disagreement: The share of rows on which the compared models will disagree, where features are public. A
            comparison then costs one answer, and its noise follows how often the two really disagree.
        open: The share of rows the analyst will hold; answers are guessed from these and confirmed on the others.
            True finds the share: with rows, questions and width, the largest that keeps the width; otherwise the one
            with the narrowest answers, also where the rows or the questions are still to be found.
        exam: The share of rows kept for a few final questions (`Guard.exam`).
        development: Instead of `open`, the number of development rows of the analyst's own (`afresh.holdout(X, y,
            open=(X_dev, y_dev))`); all `rows` except the exam's then confirm.
        promise: Use only methods that promise their widths in advance, not methods whose widths are expected.
        deviation: The standard deviation you expect numbers to have, as a share of the range between their bounds.
            Noise follows each number's own standard deviation anyway; the plan then allows for values down to this one.

    Returns:
        The plan, with a comparison of all methods in `methods` and the reasons for the choice in `advice`.

    Raises:
        InvalidArgument: Too few or too many of rows, questions and width were given, or a value is out of range.
        ImpossibleWidth: No method reaches the width under these limits.
    """
    failure = complement(checks.confidence(confidence))
    if open is True and rows is not None and questions is not None and questions is not ...:
        open, width = _solved_share(rows, questions, failure, width, mean, exam), None
    if questions is None:
        clash: dict[str, object] = {"answers": answers, "width": width, "rounds": rounds, "disagreement": disagreement}
        clash |= {"open": open, "exam": exam, "development": development, "deviation": deviation}
        return _endless(rows, failure, None if method == ENDLESS else method, typical, clash)
    if questions is ...:
        questions = None
    if deviation is not None:
        clash = {"answers": answers, "width": width, "rounds": rounds, "disagreement": disagreement, "open": open}
        clash |= {"typical": typical, "exam": exam, "development": development}
        clash["method"] = None if method == FOR_NUMBERS else method
        return _deviating(rows, questions, failure, check_deviation(deviation), clash)
    planners = _following(_planners(method, rounds, open, exam, development, mean), method, disagreement)
    if disagreement is not None and typical is None:
        typical = 0.5
    means = TYPICAL_MEANS if typical is None else checks.means("typical", typical)
    promise = checks.flag("promise", promise)
    if promise and not all(MECHANISMS[name].promised for name in planners):
        raise InvalidArgument(
            f"promise == True, but {' and '.join(planners)} promises no width; leave one of them out."
        )
    if rows is not None:
        rows = checks.whole("rows", rows, FEWEST_ROWS)
    if questions is not None:
        questions = checks.whole("questions", questions, 1)
        if rounds is not None and rounds > questions:
            raise InvalidArgument(f"rounds == {rounds}, but questions == {questions}; each round needs at least one.")
    if answers is not None:
        if questions is None:
            raise InvalidArgument("answers= needs questions= and must be at least as large.")
        answers = checks.whole("answers", answers, questions)
    if width is None:
        if rows is None or questions is None:
            raise InvalidArgument("give two of rows, questions and width.")
        if planners is PROMISING and not promise and means == TYPICAL_MEANS and answers in (None, questions):
            expected = _clearly_expected(rows, questions, failure)
            if expected is not None:
                return Plan(expected)
        narrowest = _narrowest(tuned(planners, means), rows, questions, failure, answers, means)
        return Plan(narrowest if promise or planners is not PROMISING else default(narrowest, answers, means))
    must_be = "a number in (0, 0.5), since ±0.5 says nothing"
    width, mean = checks.number("width", width, must_be, above=0, below=0.5), checks.share("mean", mean)
    if rows is not None and questions is not None and rounds is None and method in (None, IN_ROUNDS):
        return Plan(most_rounds(rows, questions, width, mean, failure))
    planners = tuned(planners, (mean,) if typical is None else means)
    if (rows is None) == (questions is None):
        raise InvalidArgument("with a width, give exactly one of rows and questions.")
    if rows is not None:
        return Plan(most_questions(planners, rows, width, mean, failure))
    assert questions is not None
    return Plan(fewest_rows(planners, questions, width, mean, failure, FEWEST_ROWS, answers))


def _endless(
    rows: int | None, failure: float, method: str | None, typical: object, clash: Mapping[str, object]
) -> Plan:
    """The plan for a budget that never runs out, which needs rows and nothing else."""
    if rows is None:
        raise InvalidArgument("questions == None is a budget that never runs out; a plan for it needs rows.")
    for name, value in {"method": method, **clash}.items():
        if value is not None:
            raise InvalidArgument(
                f"questions == None is a budget that never runs out, which has no {name} to choose; omit {name}= or "
                "give a number of questions."
            )
    means = TYPICAL_MEANS if typical is None else checks.means("typical", typical)
    rows = checks.whole("rows", rows, FEWEST_ROWS)
    made = planner_without_end(rows, failure, means)
    if made is None:
        raise InvalidArgument(
            f"{rows:,} rows are too few for a budget that never runs out; give a number of questions, or more rows."
        )
    return Plan(made)


def _deviating(
    rows: int | None, questions: int | None, failure: float, deviation: float, clash: Mapping[str, object]
) -> Plan:
    """The plan for numbers with roughly this standard deviation."""
    for name, value in clash.items():
        if value is not None:
            raise InvalidArgument(f"deviation == {deviation:g} leaves no {name} to choose; leave one of them out.")
    if rows is None or questions is None:
        raise InvalidArgument("a plan with a deviation needs rows and questions.")
    rows, questions = checks.whole("rows", rows, FEWEST_ROWS), checks.whole("questions", questions, 1)
    made = planner_for_deviation(rows, questions, failure, deviation)
    if made is None:
        raise InvalidArgument(
            f"{rows:,} rows are too few for {questions:,} answers by {FOR_NUMBERS}; use more rows or fewer questions."
        )
    return Plan(made)


def _solved_share(
    rows: int, questions: int, failure: float, width: float | None, mean: float, exam: float | None
) -> float | None:
    """The share of rows to open, where the planner is to find it."""
    rows, questions = checks.whole("rows", rows, FEWEST_ROWS), checks.whole("questions", questions, 1)
    if width is not None:
        return largest_share(rows, questions, failure, width, mean, exam)
    return narrowest_share(rows, questions, failure, mean, exam)


WORTH_EXPECTING = 1.4


def _clearly_expected(rows: int, questions: int, failure: float) -> Mechanism | None:
    """What `default` will find, if one promise alone shows that no other comes near it."""
    at_half = promised_at_half(rows, questions, failure)
    if at_half is None:
        return None
    (name,) = EXPECTED
    expected = PLANNERS[name](rows, questions, failure, None)
    if expected is None or geometric_mean(expected.half_width) * WORTH_EXPECTING > least_promise(at_half):
        return None
    return expected


def default(narrowest: Mechanism, answers: int | None, typical: tuple[float, ...] = TYPICAL_MEANS) -> Mechanism:
    """The narrowest promise, or a method whose *expected* widths are at least 1.4 times narrower.

    The planner compares geometric means of half-widths at the typical means. promise=True insists on a promise.
    """
    found, promised = narrowest, _yardstick(narrowest, typical)
    for name, planner in PLANNERS.items():
        if not MECHANISMS[name].promised:
            expected = planner(narrowest.rows, narrowest.questions, narrowest.failure, answers)
            if expected is not None and _yardstick(expected, typical) * WORTH_EXPECTING <= promised:
                found = expected
    return found


def _planners(
    method: str | None,
    rounds: int | None,
    open: float | None,
    exam: float | None,
    development: int | None,
    mean: float = 0.5,
) -> Mapping[str, Planner]:
    """The planners to choose from: the named one, the one with rounds or open rows, or all that promise widths."""
    share, kept = check_parts(open, exam)
    if development is not None:
        development = checks.whole("development", development, 1)
    if open is not None or exam is not None or development is not None:
        if open is not None and development is not None:
            raise InvalidArgument("open= is either a share of these rows or development rows of your own, not both.")
        if rounds is not None or method not in (None, WITH_OPEN_ROWS):
            name, value, what = ("exam", exam, "exam") if open is None else ("open", open, "open rows")
            other = f"method={method!r}" if rounds is None else f"rounds={rounds!r}"
            instead = "" if rounds is None or open is not None else ": keep rows for a last round, which does the same"
            raise InvalidArgument(f"{name} == {value}, but {other} has no {what}; leave one of them out{instead}.")
        if share is True:  # rows or questions are yet to be found, and the share with them
            return {WITH_OPEN_ROWS: planner_with_best_share(mean, kept)}
        return {WITH_OPEN_ROWS: planner_with_open(share, kept, development)}
    if rounds is None:
        return PROMISING if method is None else {method: PLANNERS[checks.one_of("method", method, PLANNERS)]}
    rounds = checks.whole("rounds", rounds, 1)
    if method not in (None, IN_ROUNDS):
        raise InvalidArgument(f"rounds == {rounds}, but method={method!r} has no rounds; leave one of them out.")
    return {IN_ROUNDS: planner_for(rounds)}


def _following(
    planners: Mapping[str, Planner], method: str | None, disagreement: float | None
) -> Mapping[str, Planner]:
    """The planners whose comparisons follow a public disagreement, if one is given."""
    if disagreement is None:
        return planners
    share = checks.number("disagreement", disagreement, "a share of rows, above 0 and at most 1", above=0, most=1)
    found = {name: partial(p, disagreement=share) for name, p in planners.items() if name in FOLLOWING}  # type: ignore[call-arg] # those in FOLLOWING take it
    if not found:
        those = " or ".join(f"method={name!r}" for name in FOLLOWING)
        raise InvalidArgument(f"disagreement == {share:g} works only with {those}; leave one of the two out.")
    return found


def _narrowest(
    planners: Mapping[str, Planner],
    rows: int,
    questions: int,
    failure: float,
    answers: int | None,
    typical: tuple[float, ...],
) -> Mechanism:
    found = [m for p in planners.values() if (m := p(rows, questions, failure, answers)) is not None]
    if not found:
        why = " and ".join(MECHANISMS[name].unavailable for name in planners)
        able = [f"method={name!r}" for name, p in PROMISING.items() if p(rows, questions, failure, answers) is not None]
        raise InvalidArgument(
            f"{', '.join(planners)} cannot answer {questions:,} questions from {rows:,} rows ({why}); use "
            f"{', '.join([*able, 'more rows'])} or fewer questions."
        )
    return min(found, key=lambda m: _yardstick(m, typical))


@lru_cache(maxsize=256)  # pure, and most of the time spent planning
def _yardstick(mechanism: Mechanism, typical: tuple[float, ...]) -> float:
    return geometric_mean(mechanism.half_width, typical)
