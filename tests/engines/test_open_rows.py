"""Open rows of tables that live elsewhere: those that guess, whole, and the same every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pytest

import afresh

N = 800
RNG = np.random.default_rng(9)
FRAME = pd.DataFrame({"i": np.arange(N), "hit": RNG.random(N) < 0.4, "Odd name": ["a", None] * (N // 2)})

ROWS = [(int(i), bool(hit), name if isinstance(name, str) else None) for i, hit, name in FRAME.itertuples(index=False)]


def check(data: Any, book: Path, **more: Any) -> None:
    with afresh.open(data, 20, open=0.25, exam=0.25, ledger=book, **more) as guard:
        mine = guard.open_rows()
        assert list(mine.columns) == list(FRAME.columns)
        assert len(mine) == mine.i.nunique() == N // 4
        known = FRAME.set_index("i").loc[mine.i]
        assert mine.hit.tolist() == known.hit.tolist()
        assert mine["Odd name"].isna().tolist() == known["Odd name"].isna().tolist()
        answer = guard.ask("hit")
        assert answer.confirmed is True
        assert answer.value == pytest.approx(mine.hit.mean())  # guessed from these very rows
        among = " OR ".join(f"i = {i}" for i in mine.i[:5])
        assert guard.exam([among])[0].value == 0  # the exam has other rows
    with afresh.open(data, ledger=book, **more) as again:
        assert again.open_rows().i.tolist() == mine.i.tolist()


def test_postgres(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute('CREATE TABLE opened (i int, hit boolean, "Odd name" text)')
        try:
            with connection.cursor().copy("COPY opened FROM STDIN") as copy:
                for row in ROWS:
                    copy.write_row(row)
            check(postgres_url, tmp_path / "ledger.sqlite", table="opened")
        finally:
            connection.execute("DROP TABLE opened")


def test_spark(spark: Any, tmp_path: Path) -> None:
    check(spark.createDataFrame(ROWS, "i int, hit boolean, `Odd name` string"), tmp_path / "ledger.sqlite")
