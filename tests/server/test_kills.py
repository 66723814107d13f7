"""A short run of `server.kills`."""

from pathlib import Path

from server.kills import run


def test_kills_lose_and_change_nothing(tmp_path: Path) -> None:
    found = run(tmp_path, clients=2, questions=8, kills=2, servers=2)
    assert found["kills"] == 2
    assert found["answers paid for"] == found["budget"] == 10
    assert found["answers received"] + found["refused, as the budget was spent"] >= 16
