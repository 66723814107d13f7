"""Errors as others meet them."""

import pickle

import pytest

from afresh.errors import AfreshError, BudgetExhausted, InvalidArgument, MissingExtra


@pytest.mark.parametrize(
    "error",
    [
        BudgetExhausted(asked=2, spent=3, questions=4, analyst="ann"),
        BudgetExhausted(asked=2, spent=3, questions=4, message="in other words"),
        MissingExtra("pandas", "frames"),
        InvalidArgument("questions == 0, must be at least 1."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_back_from_other_processes(error: AfreshError) -> None:
    error.add_note("and more")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)
