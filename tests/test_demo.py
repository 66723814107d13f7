import io
from pathlib import Path

from afresh.demo import run


def test_the_story(tmp_path: Path) -> None:
    talk = io.StringIO()
    story = run(tmp_path, talk)
    # The holdout is made from a fixed seed; the guard's noise is fresh, and misses with probability below 1e-6:
    # half of 994 + 6 intervals of half-width 0.175 around 0.5, noise and sample 0.028 together.
    assert 0.58 < story["naive"]["301"] < 0.63
    assert all(answer["low"] <= 0.5 <= answer["high"] for answer in story["guarded"].values())
    assert all(answer["low"] <= answer["truth"] <= answer["high"] for answer in story["real"])
    assert (tmp_path / "afresh.png").read_bytes().startswith(b"\x89PNG")
    text = talk.getvalue()
    assert "MISSES the truth" in text
    assert "BudgetExhausted" in text
    assert "charged 0" in text
    assert "QueryError: avg()" in text
