"""Evaluations: dealt once, scored and compared, and closed about the guarded part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import AfreshError, BudgetExhausted, DataError, InvalidArgument, PlanMismatch
from afresh.receipts import verify

N = 2000
RNG = np.random.default_rng(19)
IDS = [f"item-{i}" for i in range(N)]
ITEMS: list[dict[str, Any]] = [{"id": id, "prompt": f"say {id}", "tags": ["x", id]} for id in IDS]
FAIR = dict(zip(IDS, (RNG.random(N) < 0.6).astype(float).tolist(), strict=True))
GOOD = {id: max(score, float(RNG.random() < 0.5)) for id, score in FAIR.items()}
GRADED = {id: float(x) for id, x in zip(IDS, RNG.beta(6, 2, N), strict=True)}


def opened(items: Any = None, **options: Any) -> afresh.Evaluation:
    return afresh.evaluation(
        ITEMS if items is None else items, **{"ledger": ":memory:", "questions": 40, "exam": None, **options}
    )


def test_the_same_items_are_one_evaluation_in_any_order_and_form(tmp_path: Path) -> None:
    shuffled = [ITEMS[i] for i in RNG.permutation(N)]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, shuffled)))
    forms = [ITEMS, shuffled, tmp_path / "items.jsonl", pd.DataFrame(ITEMS)]
    found = []
    for form in forms:
        with opened(form, ledger=None) as evaluation:
            found.append([item["id"] for item in evaluation.open_items()])
            evaluation.score(FAIR, name="fair")
            assert evaluation.budget.spent == 1
            assert (evaluation.items, evaluation.open, evaluation.guarded) == (N, N // 2, N // 5)
            assert "600 are kept for the exam" in str(evaluation)
    assert found[0] == found[1] == found[2] == found[3]
    with opened(ITEMS, ledger=None) as evaluation:
        assert evaluation.open_items()[0] in ITEMS  # as they were passed, tags and all


def test_other_ledgers_deal_otherwise_and_evenly() -> None:
    one, two = ({item["id"] for item in opened().open_items()} for _ in range(2))
    assert len(one) == len(two) == N // 2
    assert 400 < len(one & two) < 600  # hypergeometric: 500 with deviation 11
    halves = [int(id.removeprefix("item-")) < N // 2 for id in one]
    assert 400 < sum(halves) < 600  # not by position


def test_scores_and_comparisons_hold_and_repeat_for_free() -> None:
    with opened() as evaluation:
        found = evaluation.score(GOOD, name="good")
        assert found.low <= 0.8 <= found.high
        assert found.confirmed
        assert abs(found.open_score - 0.8) < 0.06
        again = evaluation.score(GOOD, name="good")
        assert (again.value, again.charged) == (found.value, 0)
        told = evaluation.compare(FAIR, GOOD, names=["fair", "good"])
        assert told.better == "B"
        assert told.low <= 0.2 <= told.high
        assert str(told).startswith("good is better than fair by 0.")
        back = evaluation.compare(GOOD, FAIR, names=["good", "fair"])
        assert (back.better, back.charged) == ("A", 0)
        assert back.low == -told.high
        same = evaluation.compare(GOOD, dict(GOOD), names=["good", "twin"])
        assert str(same).startswith("cannot tell")
        assert "do not report" in same.verdict
        assert json.loads(same.to_json())["better"] is None
        assert evaluation.score(GRADED, name="graded").high - found.low < 0.3
        assert "in the population the 2,000 items were drawn from" in found.covers
        outcome = verify(json.dumps(evaluation.guard.receipt()))
        assert outcome.passed, str(outcome)


def test_the_exam_is_taken_once_and_tells_the_number_to_publish() -> None:
    with opened() as evaluation:
        kept = [id for id, exam in zip(evaluation.dealt.ids, evaluation.dealt.exam, strict=True) if exam]
        assert len(kept) == 600
        without = {id: score for id, score in GOOD.items() if id not in kept}
        assert evaluation.score(without, name="good").charged == 1  # nobody needs the exam's items before
        with pytest.raises(InvalidArgument, match="600 of the exam have no score"):
            evaluation.exam(without)
        found = evaluation.exam(GOOD, FAIR)
        assert found.score.value == pytest.approx(np.mean([GOOD[id] for id in kept]))
        assert found.score.low <= 0.8 <= found.score.high
        assert found.score.interval.half_width < 0.05
        assert found.gain is not None
        assert found.gain.better == "B"
        assert found.gain.low <= 0.2 <= found.gain.high
        assert str(found).startswith("final scores between 0.7")
        assert "final is better than start by 0.1" in found.verdict
        assert evaluation.exam(GOOD, FAIR).score.value == found.score.value
        with pytest.raises(BudgetExhausted):
            evaluation.exam(FAIR, GOOD)
        assert evaluation.budget.spent == 1
        assert json.loads(found.to_json())["gain"]["better"] == "B"
        outcome = verify(json.dumps(evaluation.guard.receipt()))
        assert outcome.passed, str(outcome)
    with opened(exam=0) as evaluation, pytest.raises(InvalidArgument, match="without an exam"):
        evaluation.exam(GOOD)


def test_what_is_left_out_is_as_the_plan_has_it() -> None:
    with opened(ledger=None, open=0.3, exam=0.2) as evaluation:
        evaluation.open_items()
    for options in ({}, {"open": 0.3}, {"exam": 0.2}, {"must_exist": True}):
        with afresh.evaluation(ITEMS, **options) as evaluation:
            assert (evaluation.open, evaluation.guarded) == (600, 1000)
    for wrong in ({"open": 0.5}, {"exam": 0.3}, {"open": 0.3, "exam": 0.3}):
        with pytest.raises(PlanMismatch):
            afresh.evaluation(ITEMS, **wrong)  # type: ignore[arg-type]
    for argument, value in (("open", 1.0), ("open", 0), ("exam", 1), ("exam", -0.1), ("exam", "some")):
        with pytest.raises(InvalidArgument, match=argument):
            opened(**{argument: value})
    with pytest.raises(InvalidArgument):
        opened(open=0.7, exam=0.3)


def test_a_candidate_without_a_name_is_charged_every_time() -> None:
    with opened() as evaluation:
        assert [evaluation.score(FAIR).charged for _ in range(2)] == [1, 1]


def test_what_is_free_does_not_depend_on_guarded_scores() -> None:
    """A free repeat, a charge, the limits that are used: all alike, whatever the guarded scores are."""
    with opened() as evaluation:
        mine = {item["id"] for item in evaluation.open_items()}
        other = {id: score if id in mine else 1 - score for id, score in FAIR.items()}
        odd = {id: score if id in mine else 0.5 for id, score in FAIR.items()}
        first = evaluation.score(FAIR, name="one")
        assert evaluation.score(other, name="one").charged == 0
        assert evaluation.score(other, name="one").value == first.value
        assert evaluation.score(FAIR, name="two").charged == 1  # though its scores are those of "one"
        assert evaluation.score(odd, name="odd").high < 0.5  # a guarded half is no pass
        nan = {id: score if id in mine else float("nan") for id, score in FAIR.items()}
        assert evaluation.score(nan, name="nan").charged == 1


def told(evaluation: afresh.Evaluation, results: Any) -> str:
    before = evaluation.budget.spent
    with pytest.raises(AfreshError) as refused:
        evaluation.score(results, name="wrong")
    assert evaluation.budget.spent == before
    return str(refused.value)


def test_what_does_not_fit_is_refused_and_names_open_ids_only() -> None:
    with opened() as evaluation:
        mine = [item["id"] for item in evaluation.open_items()]
        theirs = [id for id, guarded in zip(evaluation.dealt.ids, evaluation.dealt.guarded, strict=True) if guarded]

        def without(*left: str) -> Mapping[str, float]:
            return {id: score for id, score in FAIR.items() if id not in left}

        assert repr(mine[0]) in (said := told(evaluation, without(mine[0], theirs[0])))
        assert "1 of the guarded part have no score" in said
        assert not any(repr(id) in said for id in theirs)
        said = told(evaluation, {**FAIR, "another": 1.0})
        assert "1 scores belong to no item" in said
        assert "another" not in said
        rows = [{"id": id, "score": score} for id, score in FAIR.items()]
        said = told(evaluation, [*rows, {"id": mine[3], "score": 1}, {"id": theirs[3], "score": 1}])
        assert f"1 of the open part ({mine[3]!r}) and 1 of the guarded part have two scores for one trial" in said
        for wrong in (1.5, -0.1, float("nan"), "high"):
            assert f"the score of item {mine[5]!r} is" in told(evaluation, {**FAIR, mine[5]: wrong})
        assert "0 if a candidate failed" in told(evaluation, {})


def test_trials_are_averaged_by_item() -> None:
    with opened() as evaluation:
        mine = evaluation.open_scores({id: [score, 1.0, 0.0, 1.0] for id, score in FAIR.items()})
        assert mine == {id: (FAIR[id] + 2) / 4 for id in mine}


def test_open_scores_need_no_guarded_ones_and_are_free() -> None:
    with opened() as evaluation:
        ids = [item["id"] for item in evaluation.open_items()]
        assert evaluation.open_scores({id: FAIR[id] for id in ids}) == {id: FAIR[id] for id in ids}
        with pytest.raises(InvalidArgument, match="1 of the open part"):
            evaluation.open_scores({id: FAIR[id] for id in ids[1:]})
        assert evaluation.budget.spent == 0
        assert evaluation.guard.desk.ledger.find(evaluation.guard.desk.engine.identity()).fixed  # type: ignore[union-attr]


def test_the_plan_is_fixed_once_something_was_seen() -> None:
    with opened(ledger=None) as evaluation:
        evaluation.open_items()
    with pytest.raises(PlanMismatch):
        opened(ledger=None, open=0.3)
    with afresh.evaluation(ITEMS) as evaluation:
        assert evaluation.guard.plan.questions == 40


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([{"id": "a"}, {"id": "a"}], "appear twice"),
        ([{"name": "a"}], "has no 'id'"),
        ([], "there are no items"),
        (["a", "b"], "2 rows"),
        (3, "items =="),
        ({"id": "a"}, "items =="),
        ([None], "not a mapping"),
        ("nowhere.jsonl", "there is no file"),
    ],
)
def test_items_that_are_none(items: Any, says: str) -> None:
    with pytest.raises((DataError, InvalidArgument), match=says):
        opened(items)


def test_ids_alone_are_items_and_other_names_of_ids_are_found() -> None:
    with opened(list(range(100))) as evaluation:
        assert evaluation.score(dict.fromkeys(range(100), 1), name="all").value == 1
    items = [{"question_id": i, "question": f"{i}?"} for i in range(100)]
    with opened(items, id="question_id") as evaluation:
        rows = [{"question_id": i, "score": i % 2} for i in range(100)]
        assert evaluation.score(rows, name="half").charged == 1
        assert evaluation.score(pd.DataFrame(rows), name="half").charged == 0


def test_another_analyst_shares_the_budget() -> None:
    with opened() as evaluation:
        ann = evaluation.for_analyst("ann")
        evaluation.guard.divide({"ann": 1})
        ann.score(FAIR, name="fair")
        with pytest.raises(AfreshError, match="ann"):
            ann.score(GOOD, name="good")
        assert repr(evaluation).startswith("Evaluation(2,000 items, 1,000 open")
