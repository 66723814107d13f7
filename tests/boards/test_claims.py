"""Whatever a table says, in any medium, follows from the certified relations of pairs, and is about all entries.

The relations are computed here by themselves, from what was released; what is said is read back from the rendered text.
"""

from __future__ import annotations

import csv
import html
import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from afresh.boards import BoardTable, made_up_results, table_of_results
from afresh.boards.record import Challenged, Graph, Recorded, Scored, Submission
from afresh.boards.tabulate import standing_now, table_of
from afresh.results import markdown
from afresh.results.reading import Number
from afresh.theory import exact

Pair = tuple[str, str]
GREEN = "#2e7d32"


@dataclass
class Released:
    """What was released about the rows of one table."""

    scores: dict[str, tuple[float, float]] = field(default_factory=dict)
    differences: list[tuple[str, str, float, float]] = field(default_factory=list)
    claims: list[Pair] = field(default_factory=list)
    """The better one, and the worse."""

    def relation(self, names: list[str]) -> tuple[set[Pair], bool]:
        """Who is certainly better than whom, by brute force over all paths; nobody if anything contradicts itself."""
        nodes = ["", *names]
        most = {(a, b): 0.0 if a == b else np.inf for a in nodes for b in nodes}  # of x_a - x_b

        def learn(a: str, b: str, low: float, high: float) -> None:
            most[a, b], most[b, a] = min(most[a, b], high), min(most[b, a], -low)

        for name, ends in self.scores.items():
            learn(name, "", *ends)
        for a, b, low, high in self.differences:
            learn(a, b, low, high)
        for via, a, b in itertools.product(nodes, repeat=3):
            most[a, b] = min(most[a, b], most[a, via] + most[via, b])
        claimed = set(self.claims)
        for via, a, b in itertools.product(names, repeat=3):
            if {(a, via), (via, b)} <= claimed:
                claimed.add((a, b))
        found = {(a, b) for a in names for b in names if most[a, b] < -1e-11 or (a, b) in claimed}
        consistent = not any((b, a) in found for a, b in found)
        return found if consistent else set(), consistent


def words_of(table: BoardTable) -> Iterator[str]:
    """Everything a person may read of a table."""
    yield str(table)
    yield repr(table)
    yield html.unescape(re.sub(r"<[^>]*>", "  ", table._repr_html_()))
    yield markdown.page("a board", table.blocks()).replace("\\", "")
    yield re.sub(r"<[^>]*>", "  ", table.badge())


def check(table: BoardTable, names: list[str], ranked: list[str], released: Released, led: list[str]) -> None:
    """Compare all that a table says with what is certified."""
    certain, consistent = released.relation(ranked)
    beaten = {worse for _, worse in certain}
    best = [name for name in names if name not in beaten]  # of those not compared on these rows all may be
    unranked = len(names) - len(ranked)
    decided = consistent and len(best) == 1 and len(names) > 1
    assert {*table.best} == {*best}
    assert table.consistent == consistent
    assert (table.separated, table.pairs) == (len(certain), len(names) * (len(names) - 1) // 2)
    assert table.decided == decided
    assert (GREEN in table.badge()) == decided
    places = {
        name: (1 + sum(b == name for _, b in certain), len(ranked) - sum(a == name for a, _ in certain))
        for name in ranked
    }
    assert {each.name: each.places for each in table.entries} == places
    assert {each.name for each in table.others} == {*names} - {*ranked}
    for better, worse in certain:
        assert (table[better].tier or 0) < (table[worse].tier or 0)
    for row in csv.DictReader(io.StringIO(table.to_csv())):
        assert (row["may_be_best"] == "True") == (row["name"] in best)
    document = json.loads(table.to_json())
    assert {*document["best"]} == {*best}
    for each in (*document["entries"], *document["others"]):
        assert each["may_be_best"] == (each["name"] in best)
        assert each["places"] == (list(places[each["name"]]) if each["name"] in ranked else None)
    for said in (document["verdict"], *document["meaning"], *words_of(table)):
        check_words(said, certain, best, ranked, unranked, decided, led)


def check_words(
    said: str, certain: set[Pair], best: list[str], ranked: list[str], unranked: int, decided: bool, led: list[str]
) -> None:
    """Every sentence with a claim must be of a known form, and true."""
    text = " ".join(said.split())

    def take(pattern: str) -> list[re.Match[str]]:
        nonlocal text
        found = list(re.finditer(pattern, text))
        text = re.sub(pattern, " ", text)
        return found

    for name, count in (each.groups() for each in take(r"(e\d+) is the best of (\d+) in (?:this round|the final)")):
        assert int(count) == len(ranked)
        assert unranked
        assert [each for each in best if each in ranked] == [name]
    for (name,) in (each.groups() for each in take(r"(e\d+) is the best")):
        assert decided
        assert best == [name]
    for b, n in (each.groups() for each in take(r"(\d+) of (\d+)(?: in this round| in the final)? may be the best")):
        assert (int(b), int(n)) == (len([each for each in best if each in ranked]), len(ranked))
    take("may be the best")
    assert not take("the best") or decided
    assert not re.search(r"\bbest\b", text.lower()), text
    for scope, (name,) in ((each[0], each.groups()) for each in take(r"(e\d+) is the only entry(?: in this round)?")):
        assert ranked == [name]
        assert bool(unranked) == scope.endswith("round")
    for (name,) in (each.groups() for each in take(r"(e\d+) is the last certified improvement")):
        assert name == led[-1]
        assert any(better == name for better, _ in certain)
    for s, p in (each.groups() for each in take(r"order of ([\d,]+) of ([\d,]+) pairs is certain")):
        count = len(ranked) + unranked
        assert (int(s.replace(",", "")), int(p.replace(",", ""))) == (len(certain), count * (count - 1) // 2)
    assert "leads" not in text
    assert "only entry" not in text


def recorded(names: list[str], tables: Mapping[Any, tuple[list[str], Released]], passed: list[Challenged]) -> Recorded:
    """What a ledger would say: the entries in order, and what was released about each table's rows."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    graphs, number = {}, itertools.count(1)
    for target, (ranked, released) in tables.items():
        graph = graphs[target] = Graph()
        for name in ranked:
            if name in released.scores:
                low, high = released.scores[name]
                graph.score(Scored(name, Number((low + high) / 2, low, high), target, next(number)), (0.0, 1.0))
        for a, b, low, high in released.differences:
            graph.compare(a, b, Number((low + high) / 2, low, high))
        for each in passed:
            graph.challenge(each)
    return Recorded(
        "board",
        "loss",
        submissions={name: Submission(name, "ann", now, 1) for name in names},
        challenges=tuple(passed),
        rounds={(place, place): target for place, target in enumerate(tables)},
        graphs=graphs,
    )


ENDS = st.tuples(st.integers(0, 8), st.integers(0, 4)).map(lambda each: (each[0] / 8, min(each[0] + each[1], 8) / 8))
AROUND = st.tuples(st.integers(-6, 6), st.integers(0, 3)).map(lambda each: (each[0] / 8, (each[0] + each[1]) / 8))


@st.composite
def releases(draw: st.DrawFn, names: list[str]) -> Released:
    pairs = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names), AROUND), max_size=5))
    scores = {name: draw(ENDS) for name in names}
    return Released(scores, [(a, b, low, high) for a, b, (low, high) in pairs if a != b])


def entries(most: int = 5) -> st.SearchStrategy[list[str]]:
    return st.integers(1, most).map(lambda count: [f"e{i}" for i in range(count)])


@given(st.data(), entries())
def test_of_entries_that_are_revealed_at_once(data: st.DataObject, names: list[str]) -> None:
    released = data.draw(releases(names))
    found = recorded(names, {(): (names, released)}, [])
    check(table_of(found, "at once", None, 0.95), names, names, released, [])
    for name in names:
        standing, count = standing_now(found, name)
        assert standing is not None
        assert (count, standing.places) == (len(names), table_of(found, "at once", None, 0.95)[name].places)


@given(st.data(), entries())
def test_of_rounds_on_other_rows(data: st.DataObject, names: list[str]) -> None:
    """Each round is about the features of its own rows, so it says nothing about who was not in it."""
    tables = {}
    for number in range(data.draw(st.integers(1, 3))):
        ranked = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True).map(sorted))
        tables[(number,)] = ranked, data.draw(releases(ranked))
    found = recorded(names, tables, [])
    for target, (ranked, released) in tables.items():
        check(table_of(found, "rounds", None, 0.95, target=target), names, ranked, released, [])
    *_, (ranked, released) = tables.values()
    check(table_of(found, "rounds", None, 0.95), names, ranked, released, [])


@given(st.data(), entries(7))
def test_of_a_board_that_reveals_only_improvements(data: st.DataObject, names: list[str]) -> None:
    """Challenges pass or not; two at once may challenge one leader, and then neither is certified over the other."""
    released, led, made = Released({names[0]: (0.2, 0.3)}), names[:1], []
    for name in names[1:]:
        over = data.draw(st.sampled_from(led[-2:]))
        made.append(Challenged(name, over, data.draw(st.booleans())))
        if made[-1].passed:
            released.claims.append((name, over))
            led.append(name)
    found = recorded(names, {(): (names, released)}, made)
    table = table_of(found, "improvements", None, 0.95)
    check(table, names, names, released, led)
    assert table.best[0] == led[-1]
    for size in (1, 2):
        page = table.page(len(names) - size if size < len(names) else 0, size)
        assert (page.verdict, page.best, page.badge()) == (table.verdict, table.best, table.badge())


def test_a_leader_that_one_of_twenty_was_compared_with_is_not_called_the_best() -> None:
    names = [f"e{i}" for i in range(20)]
    made = [Challenged("e1", "e0", True), *(Challenged(name, "e1", False) for name in names[2:])]
    found = recorded(names, {(): (names, Released({"e0": (0.2, 0.3)}))}, made)
    table = table_of(found, "improvements", None, 0.95)
    assert table.verdict == "e1 is the last certified improvement; 19 of 20 may be the best"
    assert table["e1"].places == (1, 19)
    assert GREEN not in table.badge()


@pytest.mark.parametrize("seed", range(8))
def test_of_results_that_are_there_already(seed: int) -> None:
    made = made_up_results(models=6, items=400, spread=1.5, seed=seed)
    names = [f"e{i}" for i in range(6)]
    errors = 1 - made.scores
    ends = exact.interval("two-valued", 400, errors.sum(axis=1), errors.sum(axis=1), 0.005 / 6)
    released = Released({name: (float(low), float(high)) for name, low, high in zip(names, *ends, strict=True)})
    tested = []
    for i, j in itertools.permutations(range(6), 2):
        wins, losses = int((errors[i] < errors[j]).sum()), int((errors[i] > errors[j]).sum())
        p = binomtest(wins, wins + losses, alternative="greater").pvalue if wins + losses else 1.0
        tested.append((p, (names[i], names[j])))
    for fallen, (p, pair) in enumerate(sorted(tested)):
        if p > 0.045 / (len(tested) - fallen):
            break
        released.claims.append(pair)
    table = table_of_results(type(made)(tuple(names), made.ids, made.scores))
    check(table, names, names, released, [])
