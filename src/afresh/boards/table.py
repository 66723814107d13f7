"""The table of a board: places that are sets, tiers, and what the order means."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from afresh.errors import InvalidArgument
from afresh.escaping import visible
from afresh.results import show
from afresh.results.answer import simulation_mark
from afresh.results.frames import Tabular

_MOST_SHOWN = 60  # lines of a table in a terminal or notebook; frames and pages have them all


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of one entry."""

    name: str
    entrant: str
    tier: int | None
    """1 for entries that may be the best; None if it was not compared on the rows of this table."""
    places: tuple[int, int] | None
    """The best and worst places it may have among the entries of this table."""
    value: float | None
    """Its released mean loss; None if only a verdict was released."""
    low: float | None
    high: float | None
    submitted: str
    """When it was first recorded."""
    round: int = 1
    """The round in which it was revealed."""

    @property
    def best(self) -> bool:
        """Whether it may be the best: no entry is certainly better on the rows of the table."""
        return self.tier is None or self.tier == 1

    @property
    def place(self) -> str:
        """The place in words: 2, or 2 to 4."""
        if self.places is None:
            return "-"
        first, last = self.places
        return f"{first}" if first == last else f"{first} to {last}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return {**told, "places": None if self.places is None else list(self.places), "may_be_best": self.best}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardTable(show.Told, Tabular):
    """A board in order: by tier, then by value. Smaller is better. All places hold at once."""

    board: str
    loss: str
    bounds: tuple[float, float]
    confidence: float
    entries: tuple[Standing, ...]
    """The entries with a place, in order."""
    others: tuple[Standing, ...] = ()
    """Entries without a place: of other rounds or not in the final, so compared on rows of other features. Their order
    with those that have one is not decided."""
    separated: int = 0
    """The number of pairs whose order is certain."""
    reveal: str = "at once"
    """What is revealed: "at once", "rounds" or "improvements"."""
    final: bool = False
    """Whether it is the final's table, from rows that nothing else has touched."""
    sealed: int = 0
    """The number of entries waiting for the next round."""
    opens: str | None = None
    """When the next round is revealed, if there is a schedule."""
    consistent: bool = True
    """Whether all released intervals can hold at once; if not, at least one missed."""
    covers: str = ""
    left: int = 0
    """The number of answers the budget has left for the caller."""
    simulated: bool = False
    hidden: int = 0
    """The numbers of entries that `page` left out, before and after."""
    leaders: tuple[str, ...] | None = None
    """On a page, the names of all entries that may be the best, on any page, the leader first; None if all are here."""

    def __len__(self) -> int:
        """The number of entries with a place."""
        return len(self.entries)

    def __iter__(self) -> Iterator[Standing]:
        """The entries with a place, in order."""
        return iter(self.entries)

    def __getitem__(self, name: str) -> Standing:
        """The standing of an entry."""
        if (found := self.find(name)) is None:
            raise KeyError(name)
        return found

    def find(self, name: str) -> Standing | None:
        """The standing of an entry, if it is in the table.

        Args:
            name: The entry's name.

        Returns:
            Its standing; None if there is no such entry.
        """
        return next((each for each in (*self.entries, *self.others) if each.name == name), None)

    @property
    def best(self) -> tuple[str, ...]:
        """The names of all entries that may be the best, those without a place included."""
        if self.leaders is not None:
            return self.leaders
        return tuple(each.name for each in (*self.entries, *self.others) if each.best)

    @property
    def placed(self) -> int:
        """The number of entries with a place, on all pages."""
        return len(self.entries) + self.hidden

    @property
    def pairs(self) -> int:
        """The number of pairs of entries."""
        count = self.placed + len(self.others)
        return count * (count - 1) // 2

    @property
    def decided(self) -> bool:
        """Whether one of several entries is certainly better than all others."""
        return self.consistent and self.placed + len(self.others) > 1 and len(self.best) == 1

    @property
    def among(self) -> str:
        """Which entries have places, if not all of them do."""
        return "" if not self.others else " in the final" if self.final else " in this round"

    @property
    def verdict(self) -> str:
        """The conclusion, in words."""
        count, best = self.placed, len(self.best) - len(self.others)
        if not count:
            return "no entries yet"
        first = visible(self.best[0])
        if not self.consistent:
            said = "nothing is certain: released intervals contradict each other"
        elif count == 1:
            said = f"{first} is the only entry{self.among or (' revealed' if self.sealed else '')}"
        elif best == 1:
            said = f"{first} is the best" + (f" of {count:,}{self.among}" if self.others else "")
        else:
            said = f"{best:,} of {count:,}{self.among} may be the best"
            if self.reveal == "improvements" and not self.final:
                latest = f"{first} is the last certified improvement" if self.separated else "no certified improvement"
                said = f"{latest}; {said}"
        return said + (f"; {len(self.others):,} more not ranked here" if self.others else "")

    @property
    def meaning(self) -> tuple[str, ...]:
        """What the order means and what it does not, in sentences."""
        said = [
            "The order of entries within a tier is not decided. Every entry in a lower tier is certainly worse than "
            "some entry in the tier above it, but not necessarily worse than all.",
            "Place 2 to 5 of 9 means: at least one entry is certainly better, at least four are certainly worse.",
        ]
        if self.reveal == "improvements" and not self.final:
            said.append(
                "Only improvements are revealed: an entry becomes the leader if it is certainly better than the leader "
                "it challenged. Nothing is known of one that did not, so it may be better than the leader."
            )
        if self.others:
            said.append(
                f"Places are among the {self.placed:,} entries{self.among}. The {len(self.others):,} others were "
                "compared on other rows or not at all: nothing is certain about their order with these."
            )
        return (*said, self.covers) if self.covers else tuple(said)

    def page(self, first: int, count: int) -> BoardTable:
        """Return part of the table: some entries, in order.

        Args:
            first: The index of the first entry, from 0.
            count: The most entries to return.

        Returns:
            The same table with only these entries.

        Raises:
            InvalidArgument: There is no such page.
        """
        if first < 0 or count < 1:
            raise InvalidArgument(
                f"a page from {first} of {count} entries; it begins at 0 or later and has at least 1."
            )
        kept = self.entries[first : first + count]
        return replace(self, entries=kept, hidden=self.hidden + len(self.entries) - len(kept), leaders=self.best)

    def rows(self) -> list[dict[str, Any]]:
        """One row per entry; those without a place come last.

        Returns:
            Mappings with the same keys.
        """
        return [
            {
                "tier": each.tier,
                "place_from": None if each.places is None else each.places[0],
                "place_to": None if each.places is None else each.places[1],
                "name": each.name,
                "entrant": each.entrant,
                "value": each.value,
                "low": each.low,
                "high": each.high,
                "may_be_best": each.best,
                "round": each.round,
                "submitted": each.submitted,
            }
            for each in (*self.entries, *self.others)
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "board": self.board,
            "verdict": self.verdict,
            "best": list(self.best),
            "loss": self.loss,
            "bounds": list(self.bounds),
            "confidence": self.confidence,
            "entries": [each.to_dict() for each in self.entries],
            "others": [each.to_dict() for each in self.others],
            "pairs": self.pairs,
            "separated": self.separated,
            "reveal": self.reveal,
            "final": self.final,
            "sealed": self.sealed,
            "opens": self.opens,
            "consistent": self.consistent,
            "meaning": list(self.meaning),
            "covers": self.covers,
            "left": self.left,
            "simulated": self.simulated,
            "hidden": self.hidden,
        }

    def badge(self) -> str:
        """Draw a small SVG badge for other pages: the verdict, in green once one entry is certainly the best.

        Returns:
            A complete SVG document without scripts, links or embedded fonts.
        """
        from afresh.boards.badge import badge

        return badge(f"{self.board}: {self.verdict}", show.percent(self.confidence), decided=self.decided)

    def plot(self, ax: Any = None) -> Any:
        """Draw the table: one line per entry, intervals on a common scale, those that may be the best in color.

        Args:
            ax: Matplotlib axes to draw on; by default those of a new figure.

        Returns:
            The axes.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from afresh.results.plots import draw

        return draw(self.forest(), ax)

    def forest(self) -> show.Forest:
        """Return the marks that `plot` draws, for pages that draw them themselves.

        Returns:
            One mark per entry with a value.
        """
        marks = [
            show.Mark(
                each.place,
                each.name,
                each.value,
                each.low,
                each.high,
                _numbers(each),
                f"{each.name} by {each.entrant}: place {each.place}",
                strong=each.best,
            )
            for each in self.entries[:_MOST_SHOWN]
            if each.low is not None and each.high is not None
        ]
        return show.Forest(marks, self.scale, f"{self.loss}, smaller is better")

    @property
    def scale(self) -> tuple[float, float]:
        """The part of the loss's range that contains all intervals of the table."""
        ends = [end for each in self.entries for end in (each.low, each.high) if end is not None]
        return show.zoomed(ends, self.bounds) if ends else self.bounds

    def __repr__(self) -> str:
        """One line."""
        mark = ", simulated" if self.simulated else ""
        return f"BoardTable({visible(self.board)}: {self.verdict} at {show.percent(self.confidence)}{mark})"

    def _blocks(self) -> list[show.Block]:
        title = f"{'final: ' if self.final else ''}{self.verdict}: {self.loss}, {show.percent(self.confidence)}"
        blocks: list[show.Block] = [*simulation_mark(self.simulated), show.Title(f"{self.board}: {title}")]
        if not self.consistent:
            blocks.append(
                show.Alert(
                    "Some released intervals contradict each other, so at least one missed its true value, which may "
                    f"happen with probability {1 - self.confidence:.3g}. So no order is certain."
                )
            )
        if self.entries:
            blocks.append(self._table(self.entries[:_MOST_SHOWN]))
            if (more := len(self.entries) - _MOST_SHOWN) > 0:
                blocks.append(show.Line(f"And {more:,} more: to_pandas(), to_csv() or page(first, count)."))
        if self.others:
            blocks.append(self._without_place())
        if self.sealed:
            when = "" if self.opens is None else f", on {self.opens[:16].replace('T', ' ')} UTC"
            blocks.append(show.Line(f"{self.sealed:,} more wait for the next round{when}."))
        if self.pairs:
            blocks.append(show.Line(f"The order of {self.separated:,} of {self.pairs:,} pairs is certain."))
            blocks += map(show.Line, self.meaning)
        return blocks

    def _table(self, entries: Sequence[Standing]) -> show.Table:
        low, high = self.scale
        header = ["tier", "place", "entry", "by", "value", "interval", f"{low:g} to {high:g}", "group"]
        best = "the best" if self.decided else "may be the best"
        rows = [[*_cells(each, self.scale), best if each.best else ""] for each in entries]
        kept = [bool(name) and (name != "by" or any(each.entrant for each in entries)) for name in header]
        if all(each.value is None for each in entries):
            kept[4:7] = [False] * 3
        return show.Table(list(itertools.compress(header, kept)), [list(itertools.compress(row, kept)) for row in rows])

    def _without_place(self) -> show.Fold:
        why = "not in the final" if self.final else "of other rounds, on other rows"
        rows = [[each.name, each.entrant, _numbers(each) or "-"] for each in self.others[:_MOST_SHOWN]]
        more = f", the first {_MOST_SHOWN}" if len(self.others) > _MOST_SHOWN else ""
        return show.Fold(f"{len(self.others):,} without a place: {why}{more}", [show.Table(["entry", "by", ""], rows)])


def _cells(each: Standing, scale: tuple[float, float]) -> list[show.Cell]:
    cells: list[show.Cell] = [f"{each.tier}", each.place, each.name, each.entrant]
    if each.value is None or each.low is None or each.high is None:
        return [*cells, "", "", ""]
    value, low, high = show.with_interval(each.value, each.low, each.high)
    return [*cells, value, f"[{low}, {high}]", show.Bar(each.value, each.low, each.high, scale, strong=each.best)]


def _numbers(each: Standing) -> str:
    if each.value is None or each.low is None or each.high is None:
        return ""
    value, low, high = show.with_interval(each.value, each.low, each.high)
    return f"{value} [{low}, {high}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted(show.Told):
    """The outcome of submitting an entry."""

    board: str
    name: str
    entrant: str
    standing: Standing | None
    """Its current standing; None until its round is revealed."""
    compared: tuple[str, ...] = ()
    """The entries it was just compared with."""
    accepted: bool | None = None
    """If only improvements are revealed, whether it is one."""
    entries: int = 0
    """The number of entries with a place."""
    others: int = 0
    """The number of entries without one: see `BoardTable.others`."""
    confidence: float
    charged: int
    left: int
    opens: str | None = None
    """When it is revealed, if it is sealed and there is a schedule."""
    simulated: bool = False

    @property
    def verdict(self) -> str:
        """In words."""
        if self.accepted is not None:
            over = ", ".join(map(visible, self.compared))
            return f"certainly better than {over}" if self.accepted else f"not certainly better than {over}"
        if self.standing is None:
            return "sealed until the round is revealed"
        if self.standing.tier is None:
            return "not ranked in this table"
        among = " ranked together" if self.others else ""
        if self.entries == 1:
            return f"the only entry{among}"
        best = ", may be the best" if self.standing.best and self.standing.places != (1, 1) else ""
        return f"place {self.standing.place} of {self.entries:,}{among}{best}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        names = ("board", "name", "entrant", "verdict", "accepted", "entries", "others")
        told = {name: getattr(self, name) for name in (*names, "confidence", "charged", "left", "opens")}
        standing = None if self.standing is None else self.standing.to_dict()
        return {**told, "standing": standing, "compared": list(self.compared), "simulated": self.simulated}

    def __repr__(self) -> str:
        """One line."""
        return f"Submitted({visible(self.name)}: {self.verdict})"

    def _blocks(self) -> list[show.Block]:
        from afresh.results.answer import cost_line

        said = []
        if self.standing is not None and (numbers := _numbers(self.standing)):
            said.append(f"Its mean loss is {numbers}.")
        if self.compared:
            said.append(f"Compared row by row with {', '.join(self.compared)}.")
        if self.standing is None and self.accepted is None:
            said.append("Nothing has been asked yet; nothing about it is revealed before then.")
        return [
            *simulation_mark(self.simulated),
            show.Title(f"{self.name}: {self.verdict}"),
            *map(show.Line, said),
            cost_line(self.charged, self.left),
        ]
