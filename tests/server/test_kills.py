"""A short run of `server.kills`."""

from pathlib import Path

from server.kills import run


def test_kills_lose_and_change_nothing(tmp_path: Path) -> None:
    found = run(tmp_path, clients=3, questions=12, kills=4, servers=2)
    assert found["kills"] >= 1
    assert found["answers received"] >= 36
