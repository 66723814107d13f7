"""A whole earlier study, charged through its receipt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.receipts import verify


def receipt(method: str) -> dict[str, Any]:
    path = Path(__file__).with_name("samples") / f"version1-{method}.json"
    document: dict[str, Any] = json.loads(path.read_text())
    return document


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(20_000) % 10})


@pytest.mark.parametrize("method", ["stabilized", "calibrated"])
def test_is_charged_what_it_spent(frame: pd.DataFrame, method: str, tmp_path: Path) -> None:
    study = receipt(method)
    (tmp_path / "receipt.json").write_text(json.dumps(study))
    with afresh.open(frame, 1000, method="calibrated") as guard:
        budget = guard.charge("the study of 2025", study=study)
        again = guard.charge("the study of 2025", study=tmp_path / "receipt.json")
        assert budget.spent_information == pytest.approx(study["spent"]["information"])
        assert again.spent_information == budget.spent_information
        assert budget.left < 1000
        assert budget.spent == 0
        own = guard.receipt()
    assert verify(own).passed
    assert study["chain"]["head"] in own["outside"][0]["what"]


def test_that_does_not_fit_is_refused_and_not_recorded(frame: pd.DataFrame) -> None:
    with afresh.open(frame, 2, method="calibrated") as guard:
        with pytest.raises(BudgetExhausted, match="do not hold"):
            guard.charge("the study of 2025", pure_dp=3.0)
        assert guard.budget.spent_information == 0


def test_that_bounds_nothing_is_refused(frame: pd.DataFrame) -> None:
    with afresh.open(frame, 10, method="calibrated") as guard:
        with pytest.raises(InvalidArgument, match="bound no information"):
            guard.charge("a study", study=receipt("split"))
        forged = receipt("stabilized")
        forged["spent"]["information"] = 0.0
        with pytest.raises(InvalidArgument, match="does not verify"):
            guard.charge("a study", study=forged)
        with pytest.raises(InvalidArgument, match="must be the receipt"):
            guard.charge("a study", study="nowhere.json")
        with pytest.raises(InvalidArgument, match="exactly one of"):
            guard.charge("an exact mean")


@pytest.mark.parametrize("method", ["stabilized", "rounds"])
def test_other_certificates_refuse_it(frame: pd.DataFrame, method: str) -> None:
    with afresh.open(frame, 10, method=method) as guard, pytest.raises(InvalidArgument, match="cannot account"):
        guard.charge("a study", study=receipt("calibrated"))
