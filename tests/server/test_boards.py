"""Boards of a service: the same tables as here, for entrants with tokens, and for everybody where they are public."""

import csv
import html
import io
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import afresh
from afresh.client.board import RemoteBoard
from afresh.errors import BudgetExhausted, Forbidden, InvalidArgument, NotAllowed, NotFound
from afresh.server.config import read_config
from afresh.settings.reader import Mistakes
from boards.test_claims import GREEN, check_words
from server.running import Service, running

MORE = """
[holdouts.weekly]
data = "customers.parquet"
label = "churned"
questions = 200
rounds = 4

[boards.spring]
holdout = "churn"
description = "Who leaves?"
public = true
limit = 4
per = "1 day"

[boards.league]
holdout = "weekly"
reveal = "rounds"

[holdouts.ladder]
data = "ladder.parquet"
label = "y"
questions = 100
method = "checked"

[boards.ladder]
holdout = "ladder"
reveal = "improvements"
public = true
"""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("boards")
    x = np.random.default_rng(9).normal(size=4000)
    pq.write_table(pa.table({"x": x, "y": x > 0}), folder / "ladder.parquet")
    with running(folder, more=MORE) as found:
        yield found


def test_what_everybody_reads_of_a_board_that_reveals_improvements_is_certified(remote: Service) -> None:
    """The page, the badge and the document, by the checker of boards: two that failed may be better than the leader."""
    x = pq.read_table(remote.folder / "ladder.parquet")["x"].to_numpy()
    names, wrong = [f"e{i}" for i in range(4)], (0.4, 0.45, 0.0, 0.02)  # of 4,000: dozens of deviations apart
    with afresh.connect(remote.url, remote.token()) as service:
        board = service.board("ladder")
        for name, share in zip(names, wrong, strict=True):
            board.submit(name, (x > 0) ^ (np.arange(len(x)) < share * len(x)))
        told = board.table()
    certain, best = {("e2", "e0")}, ["e2", "e1", "e3"]
    assert told.best == tuple(best)
    page = httpx.get(f"{remote.url}/boards/ladder").text.partition("<main")[2].partition("</main")[0]
    badge = httpx.get(f"{remote.url}/v1/boards/ladder/badge.svg").text
    assert GREEN not in badge
    verdict = "e2 is the last certified improvement; 3 of 4 may be the best"
    for text in (page, badge, httpx.get(f"{remote.url}/v1/boards/ladder/table").text):
        assert verdict in text
    for text in (page, badge):
        shown = html.unescape(re.sub(r"<[^>]*>", "  ", text))
        check_words(shown, certain, best, names, 0, decided=False, led=["e0", "e2"])
    places = re.findall(r'class="number place">([^<]*)<', page)
    assert places == ["1 to 3", "1 to 4", "1 to 4", "2 to 4"]


def test_entries_tables_exports_and_badges(remote: Service) -> None:
    table = pq.read_table(remote.folder / "churn.parquet").to_pandas()
    good = (table["x0"] > 0).to_numpy()
    bad = ~good
    with (
        afresh.connect(remote.url, remote.token()) as service,
        afresh.connect(remote.url, remote.token("bob")) as other,
    ):
        assert set(service.boards) == {"spring", "league", "ladder"}
        board = service.board("spring")
        assert isinstance(board, RemoteBoard)
        assert "4 in 1 day" in board.rules.words
        assert board.submit("good", good).verdict == "the only entry"
        assert board.submit("good", good).charged == 0
        with pytest.raises(InvalidArgument, match="'good' is taken"):
            board.submit("good", bad)
        entered = afresh.board(other.holdout("churn"), "spring").submit("bad", bad)
        assert entered.entrant == "bob"
        found = board.table()
        assert [each.entrant for each in found] == ["ann", "bob"]
        assert found.best == ("good",)
        assert "the best" in str(found)
        assert len(found.to_pandas()) == 2
        for seed in range(3):
            board.submit(f"more {seed}", np.random.default_rng(seed).random(len(good)) < 0.5)
        with pytest.raises(BudgetExhausted, match="ann has entered 4 times"):
            board.submit("one more", np.zeros(len(good), dtype=bool))
        with pytest.raises(InvalidArgument, match="the token identifies"):
            board.submit("x", good, entrant="cy")
        with pytest.raises(InvalidArgument, match="own rules"):
            afresh.board(service.holdout("churn"), "spring", limit=3)
        with pytest.raises(InvalidArgument, match="on the holdout weekly"):
            afresh.board(service.holdout("churn"), "league")
        with pytest.raises(NotFound, match="no board"):
            service.board("autumn")
    # A public table needs no token; entering does.
    page = httpx.get(f"{remote.url}/v1/boards/spring/table", params={"first": 1, "count": 2}).json()
    assert len(page["entries"]) == 2
    assert page["hidden"] == 3
    rows = list(csv.DictReader(io.StringIO(httpx.get(f"{remote.url}/v1/boards/spring/table?format=csv").text)))
    assert len(rows) == 5
    badge = httpx.get(f"{remote.url}/v1/boards/spring/badge.svg")
    assert badge.headers["content-type"] == "image/svg+xml"
    ElementTree.fromstring(badge.text)
    for path in ("league", "league/table", "league/badge.svg", "autumn/table"):
        assert httpx.get(f"{remote.url}/v1/boards/{path}").status_code == 401
    assert httpx.post(f"{remote.url}/v1/boards/spring/submit", json={"predictions": {"x": [1]}}).status_code == 401
    two = remote.post("/v1/boards/spring/submit", {"predictions": {"a": good.tolist(), "b": bad.tolist()}})
    assert two.status_code == 422
    assert "one model" in two.json()["detail"]
    elsewhere = remote.token("cy", datasets=["customers"])
    assert remote.get("/v1/boards", elsewhere).json() == {"boards": []}
    assert remote.get("/v1/boards/league", elsewhere).status_code == 404


def test_rounds_are_revealed_by_stewards(remote: Service) -> None:
    rows = pq.read_table(remote.folder / "customers.parquet").num_rows
    with afresh.connect(remote.url, remote.token()) as service:
        board = service.board("league")
        assert board.submit("zeros", np.zeros(rows, dtype=bool)).standing is None
        assert board.submit("ones", np.ones(rows, dtype=bool)).charged == 0
        assert (len(board.table()), board.table().sealed) == (0, 2)
        with pytest.raises(Forbidden, match="steward"):
            board.reveal()
    with afresh.connect(remote.url, remote.token("eve", "steward")) as service:
        found = service.board("league").reveal()
        assert found.best == ("zeros",)
        assert found.sealed == 0
        with pytest.raises(InvalidArgument, match="without an exam"):
            service.board("league").final()
        with pytest.raises(InvalidArgument, match="no rounds"):
            service.board("spring").reveal()


def test_no_token(remote: Service) -> None:
    with pytest.raises(NotAllowed):
        afresh.connect(remote.url, "wrong")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('holdout = "other"', "holdout must be one of: churn"),
        ("", "holdout must be one of"),
        ('holdout = "customers"', "holdout must be one of: churn"),
        ('holdout = "churn"\nreveal = "weekly"', "reveal"),
        ('holdout = "churn"\nlimit = 0', "limit"),
        ('holdout = "churn"\nper = "1 day"', "per"),
        ('holdout = "churn"\nprize = 5', "prize"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, lines: str, words: str) -> None:
    (tmp_path / "afresh.toml").write_text(
        '[datasets.customers]\ndata = "a.parquet"\n[holdouts.churn]\ndata = "b.parquet"\nlabel = "y"\n'
        f"[boards.spring]\n{lines}\n"
    )
    with pytest.raises(Mistakes, match=words) as told:
        read_config(tmp_path / "afresh.toml")
    assert "afresh.toml:" in str(told.value)
