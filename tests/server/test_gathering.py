"""Questions of many requests, put to a desk by one thread: each keeps what it would have alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from afresh.errors import AfreshError, BudgetExhausted, EngineError, Frozen, TimedOut, TooMany
from afresh.results.answer import Answer
from afresh.server.asking import Asking
from afresh.server.config import Limits, read_config
from afresh.server.house import House
from afresh.server.metrics import Metrics
from afresh.server.tokens import Caller
from server.running import write_data

ANN = Caller("ann", "analyst", ("*",))
CONFIG = 'state = "state"\n[datasets.customers]\ndata = "customers.parquet"\nquestions = 40\nallow_wide = true'


class Crowd:
    """Many who ask at once."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        write_data(folder, 500)
        place = folder / "afresh.toml"
        place.write_text(CONFIG)
        self.house = House(replace(read_config(place), tick=0, limits=limits))
        self.served = self.house.served["customers"]
        self.asking = Asking(self.house, Metrics())
        self.groups: list[int] = []
        self._reserve = self.served.guard.desk.ledger.reserve_each
        self.served.guard.desk.ledger.reserve_each = self._counted  # type: ignore[method-assign]

    def _counted(self, terms: Any, wishes: Sequence[Any]) -> None:
        self.groups.append(len(wishes))
        self._reserve(terms, wishes)

    async def ask(self, words: str, caller: Caller = ANN) -> Answer:
        """As the door does it."""
        guard = self.served.guard.for_analyst(caller.name)
        asked = guard.checked([words])

        def alone() -> Awaitable[Any]:
            return self.asking.ask(
                self.served, caller, words, lambda: guard.ask_checked(asked), lambda: 1, lambda found: found[0].charged
            )

        (answer,) = await self.asking.answer(self.served, caller, words, asked, alone)
        return answer

    def all(self, *asked: tuple[str, Caller]) -> list[Any]:
        """What becomes of questions that are asked in the same moment."""

        async def run() -> list[Any]:
            return await asyncio.gather(*(self.ask(*each) for each in asked), return_exceptions=True)

        return asyncio.run(run())

    def fail(self, which: Callable[[Sequence[Any]], bool]) -> None:
        """Let scans of such queries fail."""
        engine = self.served.guard.desk.engine
        moments = engine.moments

        def failing(queries: Sequence[Any], spans: Any = None) -> Any:
            if which(queries):
                raise EngineError("the engine failed")
            return moments(queries, spans)

        engine.moments = failing  # type: ignore[method-assign]

    @property
    def spent(self) -> int:
        """How many answers were paid for."""
        desk = self.served.guard.desk
        return desk.ledger.spent(desk.terms).answers


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    found = Crowd(tmp_path, Limits(scans=16))
    yield found
    found.asking.close()
    found.house.close()


def under(count: int, caller: Caller = ANN) -> list[tuple[str, Caller]]:
    return [(f"tenure < {number}", caller) for number in range(1, count + 1)]


def test_those_who_ask_together_share_their_commits(crowd: Crowd) -> None:
    found = crowd.all(*under(10))
    assert crowd.groups == [10]
    assert [each.charged for each in found] == [1] * 10
    assert [each.question for each in found] == [f"tenure < {number}" for number in range(1, 11)]
    again = crowd.all(*under(10))
    assert [(each.value, each.charged) for each in again] == [(each.value, 0) for each in found]
    assert crowd.spent == 10


def test_a_group_has_as_many_as_the_limit_says(crowd: Crowd) -> None:
    crowd.all(*under(20))
    assert crowd.groups == [16, 4]


def test_of_two_who_ask_the_same_one_pays(crowd: Crowd) -> None:
    bob = replace(ANN, name="bob")
    first, second = crowd.all(("churned", ANN), ("churned", bob))
    assert (first.value, first.interval) == (second.value, second.interval)
    assert sorted((first.charged, second.charged)) == [0, 1]
    assert crowd.spent == 1


def test_each_has_its_own_share(crowd: Crowd) -> None:
    crowd.served.guard.divide({"bob": 1})
    bob = replace(ANN, name="bob")
    found = crowd.all(*under(2), ("churned", bob), ("NOT churned AND tenure < 9", bob))
    assert [isinstance(each, BudgetExhausted) for each in found] == [False, False, False, True]
    assert crowd.spent == 3


def test_each_has_the_cap_of_its_token(crowd: Crowd) -> None:
    capped = crowd.house.tokens.find(crowd.house.tokens.new("cat", cap=2))
    found = crowd.all(*under(3), *under(5, capped))
    assert [isinstance(each, BudgetExhausted) for each in found[:3]] == [False] * 3
    # Those of the first three that the token asks as well are free to it: what was counted for them is given back.
    (token,) = crowd.house.tokens.all()
    assert token["spent"] == sum(each.charged for each in found[3:] if isinstance(each, Answer))
    assert token["spent"] <= 2
    assert crowd.spent == sum(each.charged for each in found if isinstance(each, Answer))


def test_whoever_fails_fails_alone_and_keeps_what_was_paid(crowd: Crowd) -> None:
    crowd.fail(lambda queries: any("< 3" in query.text for query in queries))
    found = crowd.all(*under(5))
    assert isinstance(found[2], EngineError)
    others = [each for place, each in enumerate(found) if place != 2]
    assert [each.charged for each in others] == [1] * 4  # in the group that failed, and told to whoever paid
    assert crowd.spent == 5


def test_the_cap_counts_what_was_paid_for_in_a_group_that_failed(crowd: Crowd) -> None:
    crowd.fail(lambda queries: len({query.text for query in queries}) > 1)
    capped = crowd.house.tokens.find(crowd.house.tokens.new("cat", cap=9))
    found = crowd.all(*under(4, capped))
    assert [each.charged for each in found] == [1] * 4, found
    assert crowd.house.tokens.all()[0]["spent"] == 4


def test_what_is_frozen_is_refused_and_costs_nothing(crowd: Crowd) -> None:
    crowd.house.freezer.freeze("customers", "an audit.")
    assert all(isinstance(each, Frozen) for each in crowd.all(*under(3)))
    assert crowd.spent == 0
    assert crowd.groups == []


def test_a_group_waits_no_longer_than_the_limit_says(tmp_path: Path) -> None:
    """Two are answered at once, 32 may be on their way; whoever waits too long is told whether it was begun."""
    crowd, go = Crowd(tmp_path, Limits(scans=2, seconds=0.5)), threading.Event()
    crowd.fail(lambda queries: not go.wait())
    found = crowd.all(*under(33))
    assert sum(isinstance(each, TooMany) for each in found) == 1
    told = [str(each) for each in found if isinstance(each, TimedOut)]
    assert sum("did not start. Nothing was charged" in each for each in told) == 30
    assert sum("is still running" in each for each in told) == 2
    go.set()
    crowd.asking.close()  # waits for those two
    assert crowd.spent == 2
    crowd.house.close()


def test_a_question_that_cannot_be_asked_is_refused_before_it_waits(crowd: Crowd) -> None:
    found = crowd.all(("no_such_column > 1", ANN), ("churned", ANN))
    assert isinstance(found[0], AfreshError)
    assert found[1].charged == 1
    assert crowd.groups == [1]
