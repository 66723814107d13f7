"""Rows are dealt once, when a question needs it, and a later process finds the deal beside the ledger."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import afresh
from afresh.engines.embedded import dealing
from afresh.engines.embedded.dealing import Deal, Kept, deal_rows
from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.ledger.memory import Memory
from afresh.moments import Span, even_spans
from afresh.queries.query import Query, make_query

ROWS = 120_000  # enough to be kept, and for Polars to answer about a file
RANDOM = np.random.default_rng(11)
FRAME = pl.DataFrame(
    {
        "place": RANDOM.normal(size=ROWS),
        "Place_": RANDOM.integers(0, 3, ROWS).astype(str),
        "r": RANDOM.random(ROWS) < 0.3,
        "some": pl.Series(RANDOM.normal(size=ROWS)).set(pl.Series(RANDOM.random(ROWS) < 0.1), None),
    }
)
TEXTS = ["r", "place < 0.5", "Place_ = '1' AND some > 0", "Place_ LIKE '%1%'", "round(place) = 1 OR r"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file whose state lasts: one that was not written just now."""
    found = tmp_path / "data.parquet"
    FRAME.write_parquet(found, row_group_size=10_000)
    return found


def questions(engine: EmbeddedEngine) -> list[Query]:
    group = make_query("r", engine.schema).expression
    numbers = [make_query("place", engine.schema, (-2, 2)), make_query("some", engine.schema, (-1, 1))]
    within = [
        Query(each.expression, each.bounds, group=group, complement=no) for each in numbers for no in (False, True)
    ]
    return [*(make_query(text, engine.schema) for text in TEXTS), *numbers, *within]


@pytest.mark.parametrize("at_once", [2**24, 50_000])
def test_every_way_to_read_dealt_rows_gives_what_numpy_does(
    path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polars, DuckDB over rows in memory, and DuckDB beside a file, over spans that overlap, touch and repeat."""
    monkeypatch.setattr("afresh.engines.embedded.polars_scan._SLICE", at_once)
    spans = [*even_spans(ROWS, 3), Span(5, 70_000), Span(0, 1), Span(0, ROWS)]
    for data in (FRAME, path):
        engine = EmbeddedEngine(data)
        engine.shuffle("seed")
        asked = [(query, span) for query in questions(engine) for span in spans]
        by_polars = engine.moments([query for query, _ in asked], [span for _, span in asked])
        assert engine._polars_dealt is not None
        engine._scan_dealt = engine.deal, None
        by_duckdb = engine.moments([query for query, _ in asked], [span for _, span in asked])
        places = engine.deal.places
        assert sorted(places) == list(range(ROWS))
        for (query, span), one, other in zip(asked, by_polars, by_duckdb, strict=True):
            assert one.n == other.n == span.rows
            assert one.total == pytest.approx(other.total, rel=1e-12, abs=1e-9)
            assert one.squares == pytest.approx(other.squares, rel=1e-12, abs=1e-9)
            if query.group is None and query.expression == make_query("place < 0.5", engine.schema).expression:
                inside = (places >= span.start) & (places < span.stop)
                assert one.total == np.count_nonzero((FRAME["place"].to_numpy() < 0.5)[inside])
        engine.close()


def test_the_shuffle_of_ranks_is_the_order_of_their_hashes() -> None:
    """By brute force, with rows that have equal hashes, and hashes that are negative as signed numbers."""
    connection = duckdb.connect()

    def fetch(sql: str) -> dict[str, Any]:
        return connection.cursor().execute(sql).fetchnumpy()

    def key(rank: int) -> str:
        digest = hashlib.sha256(f"a seed:{rank - rank % 4}".encode()).hexdigest()
        return digest[16 * (rank % 4) :][:16]

    for count in (1, 2, 299, 300):
        hashes = RANDOM.integers(0, 50, count).astype(np.uint64) << np.uint64(58)
        ranks = np.lexsort((np.arange(count), hashes.view(np.int64)))
        expected = np.empty(count, np.int64)
        expected[ranks[sorted(range(count), key=key)]] = np.arange(count)
        assert deal_rows(hashes, None, "a seed", fetch).places.tolist() == expected.tolist()
        backwards = deal_rows(hashes[::-1], np.arange(count)[::-1], "a seed", fetch)
        assert backwards.places.tolist() == expected.tolist()
        assert backwards.numbers is None


def test_dealing_in_pieces_is_dealing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EmbeddedEngine(FRAME)
    engine.shuffle("seed")
    whole = engine.deal.places
    monkeypatch.setattr(dealing, "_PIECE", 7004)  # four ranks share a hash
    engine.shuffle("seed")
    assert (engine.deal.places == whole).all()


def test_rows_are_dealt_only_for_a_question(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for a budget nor for an earlier answer; and once, however many threads ask."""
    dealt: list[str] = []
    deal = dealing.deal_rows

    def counted(hashes: Any, numbers: Any, seed: str, fetch: Any) -> Deal:
        dealt.append(seed)
        return deal(hashes, numbers, seed, fetch)

    monkeypatch.setattr(dealing, "deal_rows", counted)
    ledger = tmp_path / "ledger.sqlite"
    with afresh.open(path, 10, rounds=5, ledger=ledger) as guard:
        print(guard.budget, guard.price("r"))
        assert not dealt
        threads = [threading.Thread(target=guard.ask, args=(f"place < {i}",)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(dealt) == 1
    with afresh.open(path, ledger=ledger) as guard:
        assert guard.ask("place < 1").charged == 0
        print(guard.budget)
    assert len(dealt) == 1


def test_a_service_deals_when_it_starts(path: Path, tmp_path: Path) -> None:
    from afresh.server.config import read_config
    from afresh.server.house import House

    text = f'ledger = "{tmp_path / "ledger.sqlite"}"\nstate = "{tmp_path / "state"}"\n'
    text += f'[datasets.flights]\ndata = "{path}"\nquestions = 10\nrounds = 5\n'
    (tmp_path / "afresh.toml").write_text(text)
    house = House(read_config(tmp_path / "afresh.toml"))
    engine: Any = house.served["flights"].guard.desk.engine
    assert engine._dealt is not None
    house.close()


def lasting(memory: Memory, path: Path, seed: str = "ab") -> tuple[Kept, Deal]:
    engine = EmbeddedEngine(path)
    engine.shuffle(seed, memory)
    state = engine.state()
    assert state is not None
    kept = Kept(memory, state, seed, ROWS)
    found = engine.deal
    engine.close()
    return kept, found


@pytest.fixture
def settled(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same file, taken for one on a disk that keeps times, and written long ago."""
    monkeypatch.setattr("afresh.engines.embedded.stamp._SETTLED", -3600.0)
    monkeypatch.setattr("afresh.engines.embedded.stamp._keeps_times", lambda path: True)
    return path


def test_a_later_process_finds_the_deal(settled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(tmp_path / "ledger.sqlite")
    _, made = lasting(memory, settled)
    monkeypatch.setattr(dealing, "deal_rows", None)  # from here on nothing is dealt
    kept, found = lasting(memory, settled)
    assert (found.places == made.places).all()
    assert kept.find() is not None
    (file,) = (tmp_path / "ledger.sqlite.dealt").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    assert (tmp_path / "ledger.sqlite.dealt").stat().st_mode & 0o077 == 0
    with pytest.raises(TypeError):  # another seed
        lasting(memory, settled, "cd")
    os.utime(settled, (1, 1))
    with pytest.raises(TypeError):  # another state
        lasting(memory, settled)


def test_what_is_damaged_is_dealt_again(settled: Path, tmp_path: Path) -> None:
    memory = Memory(tmp_path / "ledger.sqlite")
    kept, made = lasting(memory, settled)
    (file,) = (tmp_path / "ledger.sqlite.dealt").iterdir()
    whole = file.read_bytes()
    swapped = whole[:36] + whole[40:44] + whole[36:40] + whole[44:]
    for wrong in (b"", whole[:-1], whole + b"\0", bytes(32) + whole[32:], swapped, whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(wrong)
        assert kept.find() is None
        again, found = lasting(memory, settled)
        assert (found.places == made.places).all()
        assert again.find() is not None  # mended
    file.chmod(0o666)
    assert kept.find() is None  # others can write it
    file.unlink()
    os.symlink(settled, file)
    assert kept.find() is None


def test_only_the_deals_used_last_are_kept(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "ledger.sqlite")
    for i in range(12):
        memory.store(f"name{i}", bytes([i]) * 10)
        os.utime(tmp_path / "ledger.sqlite.dealt" / f"name{i}", (1000 + i, 1000 + i))
        assert memory.fetch("name0", 10) == bytes(10)  # used again and again
    names = {file.name for file in (tmp_path / "ledger.sqlite.dealt").iterdir()}
    assert len(names) == 8
    assert {"name0", "name11"} <= names


def test_rows_dealt_by_an_earlier_rule_are_not_dealt_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from afresh.ledger.records import Opened

    ledger = tmp_path / "ledger.sqlite"
    rows = FRAME.head(2000)
    monkeypatch.setattr("afresh.ledger.ledger.Opened", lambda **given: Opened(**given, dealing=1))
    with pytest.raises(afresh.errors.PlanMismatch, match=r"another rule.*stays valid.*open new rows"):
        afresh.open(rows, 10, rounds=2, ledger=ledger)
    other = FRAME.tail(2001)
    with afresh.open(other, 10, method="stabilized", ledger=ledger) as guard:  # which uses all rows
        guard.ask("r")


def test_a_chain_from_before_says_that_it_is_of_the_earlier_rule() -> None:
    from datetime import UTC, datetime

    from afresh.ledger.records import DEALING, Opened, decode, encode

    text = encode(Opened(datetime(2026, 1, 2, tzinfo=UTC), "ada", "name", [], "", None, False, 10, "digest"))
    old = text.replace(f'"dealing":{DEALING},', "").replace('"names":"",', "").replace('"version":5', '"version":3')
    opened, before = decode(text), decode(old)
    assert isinstance(opened, Opened)
    assert isinstance(before, Opened)
    assert (opened.dealing, before.dealing) == (DEALING, 1)


@pytest.mark.parametrize("way", [{"rounds": 4}, {"open": 0.4}, {"method": "checked"}])
def test_a_round_opens_no_row_again_however_rows_are_stored(way: dict[str, Any], tmp_path: Path) -> None:
    """Rows that were a round's, or that an analyst holds, stay so when numbers come as text."""
    from afresh.engines.embedded.rowwise import rows_of_span

    rows = FRAME.head(3000).with_columns(pl.Series("b", RANDOM.integers(0, 10_000, 3000)))
    ledger, half = tmp_path / "ledger.sqlite", Span(0, 1500)
    with afresh.open(rows, 10, ledger=ledger, **way) as guard:
        guard.ask("b < 5000")
        first, name = rows_of_span(guard.desk.engine, half), guard.desk.terms.data
    with afresh.open(rows.with_columns(pl.col("b").cast(pl.String)), ledger=ledger) as guard:
        assert guard.desk.terms.data == name
        assert (rows_of_span(guard.desk.engine, half) == first).all()
