"""Short cuts through long chains give what the plain way gives."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from afresh.errors import BrokenChain
from afresh.ledger import purse, records
from afresh.mechanisms.base import ReadsMany
from afresh.planning.choose import plan

ASKED = (
    '{"again":null,"analyst":"ada","at":"2030-01-01T00:00:00.5+00:00","bounds":[0.0,1.0],"charge":0.25,"coarseness":1.0,'
    '"digest":"d1","guess":null,"kind":"reserved","levels":null,"number":7,"own":true,"row_charge":6e-07,"span":null,'
    '"text":"amount < 3","version":2}'
)
ANSWERED = (
    '{"at":"2030-01-01T00:00:00.5+00:00","high":0.75,"kind":"answered","low":0.25,"number":7,"released":0.5,'
    '"value":0.5,"version":2}'
)
PIECES = [
    *(
        '"',
        "\\",
        ",",
        "{",
        "}",
        "[",
        "]",
        ":",
        "e",
        "E",
        "+",
        "-",
        ".",
        "0",
        "1",
        "9",
        " ",
        "\n",
        "\t",
        "\x00",
        "é",
        "٣",
    ),
    *(
        "null",
        "true",
        "NaN",
        "Infinity",
        "1e999",
        "01",
        "1.",
        '\\"',
        "\\u0041",
        "\\ud800",
        '"version":2',
        '"number":8,',
    ),
    *('"charge":0.0,', '"kind":"answered",', "2030-01-01", "+01:00"),
]


def read(decode: Any, text: str) -> Any:
    try:
        return repr(decode(text))
    except (BrokenChain, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "refused"


@pytest.mark.parametrize("text", [ASKED, ANSWERED])
def test_a_record_is_read_as_json_whatever_it_looks_like(text: str) -> None:
    """Random edits of canonical records: the short cut accepts nothing that JSON refuses, and reads nothing else."""
    chance, accepted = random.Random(3), 0
    for _ in range(20_000):
        edited = text
        for _ in range(chance.randint(1, 2)):
            start = chance.randrange(len(edited) + 1)
            edited = edited[:start] + chance.choice(PIECES) + edited[start + chance.randint(0, 3) :]
        found = read(records.decode, edited)
        accepted += found != "refused"
        assert found == read(records._decode, edited), edited
    assert accepted > 100  # or it shows nothing
    assert records.answers(ANSWERED) == 7
    assert records.answers(ASKED) is None


def test_sums_are_exact() -> None:
    chance = random.Random(5)
    amounts = [chance.random() * 10 ** chance.uniform(-320, 300) for _ in range(500)] + [5e-324, 0.0, 1.7e308]
    total = purse.Sum()
    for amount in amounts:
        total.add(purse.Sum.of(1, amount, amount))
    exact = sum(map(Fraction, amounts), Fraction(0))
    assert Fraction(total.charge, purse._UNIT) == Fraction(total.row_charge, purse._UNIT) == exact
    assert total.answers == len(amounts)


@pytest.mark.parametrize("method", ["stabilized", "calibrated"])
@pytest.mark.parametrize(("rows", "questions"), [(1_000, 10), (10_000, 100), (10_000, 3_000), (1_000_000, 100_000)])
def test_many_intervals_at_once_are_those_one_by_one(method: str, rows: int, questions: int) -> None:
    made = plan(rows, questions, 0.95, method=method).mechanism
    assert isinstance(made, ReadsMany)
    mechanism: Any = made
    assert mechanism.grid is not None
    top = mechanism._transform.top if method == "stabilized" else 1.0
    shares = np.concatenate([np.random.default_rng(1).random(60), np.geomspace(1e-6, 0.1, 20), [0.0, 0.5, 0.96, 0.99]])
    released = np.floor(np.concatenate([shares, 1 - shares]) * top / mechanism.grid) * mechanism.grid
    with np.errstate(all="ignore"):
        value, low, high = mechanism.read_each(released)
    plain = [(mechanism.value(y), *mechanism.interval(y)) for y in released.tolist()]
    assert np.column_stack([value, low, high]) == pytest.approx(np.array(plain), abs=1e-10)
    with np.errstate(all="ignore"):
        off = mechanism.read_each(np.array([-mechanism.grid, mechanism.grid / 3, top + 1, np.nan, np.inf]))
    assert np.isnan(np.array(off)).all()
