"""Caps of tokens are exact: whatever is killed, refused or fails, what is counted is what was charged."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from afresh.errors import AfreshError, BudgetExhausted
from afresh.server.api import answers, measured
from afresh.server.app import Desk
from afresh.server.config import read_config
from afresh.server.store import Store
from server.running import write_data

CONFIG = """
state = "state"
tick = 0
[datasets.customers]
data = "../customers.parquet"
questions = 40
allow_wide = true
"""
MOMENTS = ("before it is paid for", "after it is paid for", "before it is counted")
WAYS = ("together", "alone", "measured")
ASKED = [{"expression": "tenure < 4"}, {"expression": "tenure < 5"}]
STATISTIC = {"kind": "Quantile", "expression": "tenure", "level": 0.5, "bounds": [0, 120], "points": 4}


async def ask(desk: Desk, token: str, way: str) -> Any:
    """Ask several questions in one of the ways in which a service puts them to a desk."""
    served, caller = desk.house.served["customers"], await desk.asking.caller(token)
    if way == "measured":
        return await measured(desk, served, caller, STATISTIC)
    if way == "alone":
        guard = served.guard.for_analyst(caller.name)
        charged = lambda found: sum(each.charged for each in found)  # noqa: E731 - what `ask` takes
        return await desk.asking.ask(served, caller, [], lambda: guard.ask_many(ASKED), lambda: 2, charged)
    return await answers(desk, served, caller, ASKED)


def make(folder: Path, cap: int) -> tuple[Path, str]:
    """A configuration in a folder, and a token with a cap."""
    folder.mkdir()
    place = folder / "afresh.toml"
    place.write_text(CONFIG)
    desk = Desk(read_config(place))
    token = desk.house.tokens.new("ann", cap=cap)
    desk.close()
    return place, token


def counted(desk: Desk) -> tuple[int, int]:
    """What is counted against the cap of the only token, and what the ledger says was paid for."""
    return desk.house.tokens.all()[-1]["spent"], desk.house.served["customers"].guard.budget.spent


def kill(place: str, token: str, moment: str, way: str) -> None:
    """Ask in a process of its own, which is killed at this moment. Run by `main`."""
    from afresh.ledger.ledger import Ledger
    from afresh.server.holds import Holds

    if (child := os.fork()) != 0:
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 9
        return
    try:
        desk, reserve = Desk(read_config(place)), Ledger.reserve_each

        def die(*given: Any) -> None:
            if moment == "after it is paid for":
                reserve(*given)
            os.kill(os.getpid(), 9)

        if moment == "before it is counted":
            Holds.end = die  # type: ignore[method-assign, assignment]
        else:
            Ledger.reserve_each = die  # type: ignore[method-assign, assignment]
        asyncio.run(ask(desk, token, way))
    finally:
        os._exit(1)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[Path, str]]:
    """A service killed at each moment, in each way: one process has imported everything, and forks for each."""
    folder = tmp_path_factory.mktemp("caps")
    write_data(folder, 500)
    found = {(moment, way): make(folder / f"{place}-{way}", 30) for place, moment in enumerate(MOMENTS) for way in WAYS}
    given = [part for (moment, way), (place, token) in found.items() for part in (str(place), token, moment, way)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    subprocess.run([sys.executable, "-m", "server.test_caps", *given], env=environment, check=True)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_is_counted_after_a_kill_is_what_was_charged(
    killed: dict[tuple[str, str], tuple[Path, str]], moment: str, way: str
) -> None:
    """Both before the question is asked again and after."""
    place, token = killed[moment, way]
    desk = Desk(read_config(place))
    try:
        spent, paid = counted(desk)
        assert spent == paid
        assert (paid > 0) is (moment != "before it is paid for")
        asyncio.run(ask(desk, token, way))
        spent, paid = counted(desk)
        assert 0 < spent == paid
    finally:
        desk.close()
    assert not list(place.parent.glob("state/*.lock"))


def test_what_was_charged_before_a_failure_is_counted(tmp_path: Path) -> None:
    """And what a cap does not admit is not."""
    write_data(tmp_path, 500)
    place, token = make(tmp_path / "service", 3)
    desk = Desk(read_config(place))
    guard = desk.house.served["customers"].guard.for_analyst("ann")

    def fails() -> Any:
        guard.ask("tenure < 8")
        raise AfreshError("it failed after the first answer")

    async def run() -> None:
        served, caller = desk.house.served["customers"], await desk.asking.caller(token)
        with pytest.raises(AfreshError):
            await desk.asking.ask(served, caller, [], fails, lambda: 3, lambda found: 3)
        with pytest.raises(BudgetExhausted, match="1 of this token's 3 are spent"):
            await desk.asking.ask(served, caller, [], fails, lambda: 3, lambda found: 3)

    asyncio.run(run())
    assert counted(desk) == (1, 1)
    desk.close()


def test_a_process_that_lives_is_not_gone(tmp_path: Path) -> None:
    """Nor one whose connection was made anew; one that closed its store is."""
    one, other = (Store(str(tmp_path / "service.sqlite")) for _ in range(2))
    name = one.mine()
    assert name == one.mine()
    assert not one.is_gone(name)
    assert not other.is_gone(name)
    one.close()
    assert other.is_gone(name)
    assert one.mine() != name
    for each in (one, other):
        each.close()


if __name__ == "__main__":
    for start in range(1, len(sys.argv), 4):
        kill(*sys.argv[start : start + 4])
