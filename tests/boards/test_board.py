"""Boards: entries, places, rules, and what is in the ledger."""

import csv
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import afresh
from afresh.boards import BoardTable, Submitted, table_from
from afresh.boards.rules import duration, in_words
from afresh.boards.shelf import Folder, Kept, Memory, Shelf
from afresh.errors import BudgetExhausted, InvalidArgument, NotFound
from afresh.receipts import verify
from afresh.wire.results import from_json, to_json

N = 20_000
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
GOOD = (X[:, 0] > 0).astype(int)


def flipped(share: float, seed: int = 0) -> Any:
    return np.where(np.random.default_rng(seed).random(N) < share, 1 - GOOD, GOOD)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.sqlite")


def opened(place: str, questions: int = 100, **more: Any) -> afresh.Holdout:
    return afresh.holdout(X, Y, questions=questions, ledger=place, **more)


@pytest.fixture
def holdout(place: str) -> Iterator[afresh.Holdout]:
    with opened(place, disagreement=0.1, method="symmetrized") as found:
        yield found


def test_entries_are_placed_charged_and_recorded(holdout: afresh.Holdout, place: str) -> None:
    board = afresh.board(holdout, "main")
    assert board.table().verdict == "no entries yet"
    assert "no entries" in str(board)
    first = board.submit("good", GOOD, entrant="ann")
    assert (first.charged, first.verdict, first.left) == (1, "the only entry", 99)
    second = board.submit("bad", flipped(0.2), entrant="bob")
    assert (second.compared, second.charged) == ((), 1)  # scores tell, so nothing more is paid for
    assert second.verdict == "place 2 of 2"
    third = board.submit("near", flipped(0.01), entrant="bob")
    assert (third.compared, third.charged) == (("good",), 2)
    table = board.table()
    assert {*table.best} == {"good", "near"}
    assert [each.places for each in table] == [(1, 2), (1, 2), (3, 3)]
    assert [each.tier for each in table] == [1, 1, 2]
    assert (table.separated, table.pairs) == (2, 3)
    assert table["bad"].entrant == "bob"
    assert holdout.budget.spent == 100 - table.left
    text = str(table)
    assert "2 of 3 may be the best" in text
    assert "1 to 2" in text
    assert "within a tier is not decided" in text
    # What it says follows from the ledger, in another process or from a receipt.
    receipt = holdout.guard.receipt()
    assert verify(receipt).passed
    read = table_from(json.dumps(receipt))
    assert read.entries == table.entries
    assert read.separated == table.separated
    holdout.close()
    with opened(place, disagreement=0.1, method="symmetrized") as again:
        later = afresh.board(again, "main")
        assert later.table() == table
        assert later.submit("third", flipped(0.02, 7), entrant="cy").compared  # with predictions that were kept
    with pytest.raises(NotFound, match="'main'"):
        table_from(receipt, "other")


def test_the_same_again_is_free_and_a_name_has_one_entry(holdout: afresh.Holdout, place: str) -> None:
    board = afresh.board(holdout)
    board.submit("good", GOOD)
    board.submit("bad", flipped(0.2))
    spent = holdout.budget.spent
    again = board.submit("good", GOOD.tolist())
    assert (again.charged, again.verdict) == (0, "place 1 of 2")
    with pytest.raises(InvalidArgument, match="'good' is taken"):
        board.submit("good", flipped(0.1))
    # Other names for the same predictions are the same question: free, and certainly no better or worse.
    assert board.submit("twin", GOOD).charged == 0
    assert board.table()["twin"].places == board.table()["good"].places == (1, 2)
    assert holdout.budget.spent == spent
    with pytest.raises(InvalidArgument, match="predictions"):
        board.submit("short", GOOD[:5])
    with pytest.raises(InvalidArgument, match="name"):
        board.submit("", GOOD)
    assert holdout.budget.spent == spent
    # Predictions that were lost are known again by their question.
    holdout.close()
    with opened(place, disagreement=0.1, method="symmetrized") as other:
        lost = afresh.board(other, keep=place + ".elsewhere")
        assert lost.submit("good", GOOD).charged == 0
        with pytest.raises(InvalidArgument, match="is taken"):
            lost.submit("bad", GOOD)


@pytest.mark.parametrize("kept", ["memory", "folder"])
def test_a_name_is_claimed_once_whoever_enters_at_the_same_time(tmp_path: Path, kept: str) -> None:
    """Two models under one name would share a place that is true of neither."""
    shelf: Shelf = Memory() if kept == "memory" else Folder(str(tmp_path))
    entries = [Kept("mine", f"entrant {i}", "2026-01-01", f"digest {i}", np.arange(i)) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda entry: shelf.claim(entry, sealed=False), entries))
    assert sum(won) == 1
    found = shelf.get("mine")
    assert found is not None
    assert found.digest == entries[won.index(True)].digest
    assert shelf.claim(found, sealed=False)  # the same once more


def test_entries_of_one_name_at_once_are_one_entry(holdout: afresh.Holdout) -> None:
    boards = [afresh.board(holdout, "at once") for _ in range(2)]  # as two workers have it

    def enter(place: int) -> str:
        try:
            return boards[place].submit("mine", flipped(0.1 * place, place)).verdict
        except InvalidArgument as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        found = sorted(pool.map(enter, range(2)), key=len)
    assert found[0] == "the only entry"
    assert "is taken" in found[1]
    assert len(boards[0].table()) == 1


def test_a_short_budget_gives_places_from_scores(place: str) -> None:
    with opened(place, questions=3, method="symmetrized") as holdout:
        board = afresh.board(holdout)
        board.submit("good", GOOD)
        assert board.submit("bad", 1 - GOOD).compared == ()  # scores tell already
        assert board.submit("near", flipped(0.001)).compared == ()
        with pytest.raises(BudgetExhausted):
            board.submit("one more", flipped(0.5))
        assert len(board.table()) == 3
        assert {*board.table().best} == {"good", "near"}


def test_a_rule_for_how_often(place: str) -> None:
    now = datetime.now(UTC)
    with opened(place, method="symmetrized") as holdout:
        board = afresh.board(holdout, limit=2, per="1 day")
        board.submit("a", GOOD, entrant="ann")
        board.submit("b", flipped(0.2), entrant="ann")
        spent = holdout.budget.spent
        with pytest.raises(BudgetExhausted, match="ann has entered 2 times"):
            board.submit("c", flipped(0.3), entrant="ann")
        assert board.submit("a", GOOD, entrant="ann").charged == 0
        assert holdout.budget.spent == spent
        board.submit("c", flipped(0.3), entrant="bob")
        board.clock = lambda: now + timedelta(days=1, minutes=5)
        board.submit("d", flipped(0.4), entrant="ann")
        assert "2 in 1 day" in board.rules.words


def test_rounds_are_sealed_until_they_are_revealed_on_fresh_rows(place: str) -> None:
    with opened(place, questions=200, rounds=4) as holdout:
        board = afresh.board(holdout, reveal="rounds")
        sealed = board.submit("good", GOOD, entrant="ann")
        assert sealed.standing is None
        assert "sealed" in sealed.verdict
        board.submit("bad", flipped(0.2), entrant="bob")
        with pytest.raises(InvalidArgument, match="is taken"):
            board.submit("bad", GOOD)
        assert holdout.budget.spent == 0
        assert (len(board.table()), board.table().sealed) == (0, 2)
    with opened(place, questions=200, rounds=4) as holdout:  # what is sealed survives a restart
        board = afresh.board(holdout, reveal="rounds")
        table = board.reveal()
        assert [each.name for each in table] == ["good", "bad"]
        assert holdout.budget.spent == 3
        board.submit("middle", flipped(0.1), entrant="cy")
        second = board.reveal()
        # The best of the first round competes again, on the second one's rows; the other has no place there.
        assert [each.name for each in second] == ["good", "middle"]
        assert [each.name for each in second.others] == ["bad"]
        assert second.verdict == "good is the best of 2 in this round; 1 more not ranked here"
        assert second.best == ("good", "bad")
        assert not second.decided
        assert second["middle"].round == 2
        assert board.table(round=1).entries[1].name == "bad"
        assert holdout.budget.rows_left == N // 2
        with pytest.raises(NotFound, match="round 3"):
            board.table(round=3)
        with pytest.raises(InvalidArgument, match="nothing is sealed"):
            board.reveal()
        assert table_from(holdout.guard.receipt()).entries == second.entries
        assert "without a place" in str(second)


def test_a_round_is_revealed_by_the_clock(place: str) -> None:
    now = datetime.now(UTC)
    with opened(place, questions=200, rounds=4) as holdout:
        board = afresh.board(holdout, reveal="rounds", every="7 days")
        assert board.submit("good", GOOD).opens is not None
        board.clock = lambda: now + timedelta(days=6)
        assert len(board.table()) == 0
        board.clock = lambda: now + timedelta(days=7, minutes=5)
        assert board.table().verdict == "good is the only entry"


def test_many_entries_of_a_round_are_compared_with_a_few(place: str) -> None:
    with opened(place, questions=120, rounds=4) as holdout:
        board = afresh.board(holdout, reveal="rounds", against=2)
        for i in range(10):
            board.submit(f"e{i}", flipped(0.02 * i, i))
        board.reveal()
        assert holdout.budget.spent == 10 + 9 + 8  # of 30 a round


def test_only_improvements_are_revealed(place: str) -> None:
    with opened(place, method="checked") as holdout:
        board = afresh.board(holdout, reveal="improvements")
        board.submit("start", flipped(0.2), entrant="ann")
        worse = board.submit("worse", flipped(0.3, 1), entrant="bob")
        assert worse.accepted is False
        assert worse.charged == 1
        assert board.submit("good", GOOD, entrant="cy").accepted is True
        table = board.table()
        assert [(each.name, each.places) for each in table] == [("good", (1, 2)), ("worse", (1, 3)), ("start", (2, 3))]
        assert table.verdict == "good is the last certified improvement; 2 of 3 may be the best"
        assert table["worse"].value is None
        assert (table.separated, table.pairs) == (1, 3)
        assert verify(holdout.guard.receipt()).passed
        assert table_from(holdout.guard.receipt()).entries == table.entries
        assert board.submit("good", GOOD).charged == 0


def test_a_final_on_rows_never_used_before(place: str) -> None:
    with opened(place, open=0.2, exam=0.4) as holdout:
        board = afresh.board(holdout)
        board.submit("good", GOOD, entrant="ann")
        board.submit("near", flipped(0.02), entrant="bob")
        board.submit("bad", flipped(0.4), entrant="cy")
        spent, before = holdout.budget.spent, board.table()
        assert not before.final
        final = board.final()
        assert final.final
        assert holdout.budget.spent == spent  # an exam costs no answer
        assert {each.name for each in final} == set(before.best)
        assert "final" in str(final)
        assert board.final() == final
        assert table_from(holdout.guard.receipt()).entries == final.entries
        with pytest.raises(InvalidArgument, match="final of board has been held"):
            board.submit("late", flipped(0.1))
    with opened(place + "2", method="symmetrized") as holdout:
        board = afresh.board(holdout)
        board.submit("good", GOOD)
        with pytest.raises(InvalidArgument, match="without an exam"):
            board.final()


def test_hidden_features(place: str) -> None:
    with afresh.holdout(X, Y, questions=60, ledger=place, features="hidden") as holdout:
        board = afresh.board(holdout)
        board.submit("good", lambda rows: (rows[:, 0] > 0).astype(int))
        board.submit("bad", lambda rows: (rows[:, 1] > 0).astype(int))
        assert board.table().best == ("good",)
        with pytest.raises(InvalidArgument, match="features are hidden"):
            board.submit("array", GOOD)


def test_what_does_not_fit_is_refused(place: str) -> None:
    with opened(place, method="symmetrized") as holdout:
        for wrong, words in (
            ({"reveal": "rounds"}, "rounds=52"),
            ({"reveal": "improvements"}, "needs claims"),
            ({"reveal": "sometimes"}, "reveal"),
            ({"against": -1}, "against"),
            ({"limit": 0}, "limit"),
            ({"per": "1 day"}, "per"),
            ({"every": "1 day"}, "every"),
            ({"limit": 1, "per": "1 fortnight"}, "7 days"),
            ({"name": ""}, "name"),
        ):
            with pytest.raises(InvalidArgument, match=words):
                afresh.board(holdout, **wrong)
        with pytest.raises(InvalidArgument, match=r"afresh\.holdout"):
            afresh.board("holdout")  # type: ignore[arg-type]
        board = afresh.board(holdout)
        board.submit("good", GOOD)
        with pytest.raises(InvalidArgument, match="no rounds"):
            board.reveal()
        other = afresh.board(holdout, loss="brier")
        with pytest.raises(InvalidArgument, match="another name"):
            other.table()
    with opened(place + "3", rounds=4) as holdout, pytest.raises(InvalidArgument, match='reveal="rounds"'):
        afresh.board(holdout)


def test_two_boards_on_one_holdout_share_the_budget_and_nothing_else(holdout: afresh.Holdout) -> None:
    one, two = afresh.board(holdout, "one"), afresh.board(holdout, "two")
    one.submit("good", GOOD)
    assert two.submit("mine", GOOD).charged == 0  # the same question
    assert [each.name for each in one.table()] == ["good"]
    assert [each.name for each in two.table()] == ["mine"]
    with pytest.raises(NotFound, match="'one', 'two'"):
        table_from(holdout.guard.receipt())


def test_every_medium_has_the_same_table_and_no_name_is_markup(holdout: afresh.Holdout) -> None:
    hostile = '=1+1"<script>&\n\x1b[31m$x$'
    board = afresh.board(holdout, 'a <b>"board"')
    board.submit(hostile, GOOD, entrant="<i>ann")
    board.submit("bad", flipped(0.3))
    table = board.table()
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert rows[0]["name"].startswith("'=1+1")  # no formula for a spreadsheet
    assert [row["place_to"] for row in rows] == ["1", "2"]
    for frame in (table.to_pandas(), table.to_polars().to_pandas(), table.to_arrow().to_pandas()):
        assert frame["name"].tolist() == [hostile, "bad"]
        assert frame["may_be_best"].tolist() == [True, False]
    for shown in (table._repr_html_(), table.badge()):
        assert "<script" not in shown
        assert "\x1b" not in shown
    ElementTree.fromstring(table.badge())
    axes = table.plot()
    assert len(axes.get_yticklabels()) == 2
    axes.figure.canvas.draw()
    assert json.loads(table.to_json())["best"] == [hostile]
    for result in (table, board.submit("bad", flipped(0.3))):
        again = from_json(json.loads(json.dumps(to_json(result))))
        assert again == result
        assert str(again) == str(result)
        assert isinstance(again, BoardTable | Submitted)


def test_a_long_table_is_shown_in_part_and_given_whole() -> None:
    from afresh.boards import Standing

    entries = tuple(
        Standing(f"e{i}", "ann", 1, (1, 200), 0.2, 0.1, 0.3, "2026-01-01T00:00:00+00:00") for i in range(200)
    )
    table = BoardTable(board="b", loss="loss", bounds=(0.0, 1.0), confidence=0.95, entries=entries)
    assert "And 140 more" in str(table)
    assert len(table.to_csv().splitlines()) == 201
    page = table.page(50, 25)
    assert [each.name for each in page][:1] == ["e50"]
    assert page.verdict == table.verdict == "200 of 200 may be the best"
    assert table.page(199, 1).best == table.best
    assert page.pairs == table.pairs
    with pytest.raises(InvalidArgument, match="page"):
        table.page(-1, 5)


def test_forged_statements_are_found(holdout: afresh.Holdout) -> None:
    from afresh.ledger.records import START, seal

    board = afresh.board(holdout)
    board.submit("good", GOOD)
    board.submit("bad", flipped(0.2))
    receipt = holdout.guard.receipt()
    records = receipt["chain"]["records"]
    place = next(i for i, text in enumerate(records) if '"rule":"entry"' in text)
    stated = json.loads(records[place])
    stated["low"] = stated["high"] = stated["value"] = 0.0
    records[place] = json.dumps(stated, sort_keys=True, separators=(",", ":"))
    head = START
    for text in records:
        head = seal(head, text)
    receipt["chain"]["head"] = head
    with pytest.raises(InvalidArgument, match="does not verify"):
        table_from(receipt)


def test_lengths_of_time() -> None:
    assert duration("per", "2 weeks") == timedelta(days=14)
    assert in_words(timedelta(days=14)) == "2 weeks"
    assert in_words(timedelta(hours=36)) == "36 hours"
    assert in_words(timedelta(seconds=61)) == "61 seconds"
