"""What was released about a dataset, newest first, by page: a page costs only as much as what is on it.

It follows the ledger, whichever worker wrote to it, and keeps to the public clock: an answer leaves, and is shown, at
the first doubled tick, counted from its question's time in the ledger, after this worker saw that it was answered. All
workers use the same record, so neither asking again nor looking, at this worker or another, reveals more about the time
of a scan than the two doubled ticks between which it ended. `Follower` makes sure that a worker sees new answers soon
even if nobody asks it anything.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from afresh.errors import AfreshError
from afresh.ledger.records import answers
from afresh.results.transcript import Record, derived, single, vector_of
from afresh.server.clock import leaving

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.guard.path import Reply
    from afresh.ledger import Entry, Question
    from afresh.ledger.account import Account
    from afresh.ledger.records import Reserved, Stated

PAGE = 50
"""Lines per page."""
PERIOD = 0.5
"""Seconds between two looks at what other workers have answered."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines to show."""

    words: str = ""
    """Part of the question, in upper or lower case."""
    analyst: str = ""
    round: str = ""

    @property
    def all(self) -> bool:
        """Whether every line is wanted."""
        return self == Wanted()


class Page(NamedTuple):
    """Some lines, and their position among the pages."""

    records: Sequence[Record]
    number: int
    """Page 1 has the newest lines."""
    pages: int
    total: int
    """How many lines there are on all pages."""


class _Line(NamedTuple):
    """Where a line's numbers are: an answer by its number, or something derived from several; in order."""

    number: int
    order: int
    stated: Stated | None = None


class History:
    """The lines of one desk. Safe to use from several threads."""

    def __init__(self, desk: Desk, tick: float) -> None:
        """`tick` is the clock's tick; 0 if there is no clock."""
        self._desk, self._tick = desk, tick
        self._lock, self._own = threading.Lock(), threading.local()
        self._asked: list[Reserved] = []
        self._answered = self._stated = 0
        self._later: dict[int, float] = {}  # when each recorded answer leaves and may be shown, by its number
        self._seen: set[int] = set()  # the numbers of all answered questions
        self._lines: list[_Line] = []
        self._parts: set[int] = set()  # answers that are shown as parts of something
        self._rounds: dict[tuple[int, int], str] = {}
        self._vectors: dict[int, int] = {}  # for each coordinate, the number of the first one
        self._read: dict[int, list[Stated]] = {}  # what was read from a vector, by the number of its first coordinate
        self._names: dict[str, None] = {}
        desk.watch, desk.came, desk.pays = self._touch, self._came, self._pays
        self.follow()
        self._later = {}  # anything answered before this worker started is old

    def page(self, number: int = 1, wanted: Wanted | None = None, size: int = PAGE) -> Page:
        """One page; the last one if there are fewer pages."""
        wanted = wanted or Wanted()
        with self._lock, self._desk.ledger.reading(self._desk.terms) as account:
            self._follow(account)
            lines = self._lines if wanted.all else [line for line in self._lines if self._wants(line, wanted)]
            pages = max(-(-len(lines) // size), 1)
            number = min(max(number, 1), pages)
            end = len(lines) - (number - 1) * size
            shown = [self._record(line, account) for line in lines[max(end - size, 0) : end]]
            return Page(shown[::-1], number, pages, len(lines))

    def of(self, number: int) -> list[Record]:
        """The lines with this number (several may be derived from the same answers), or the part that has it."""
        with self._lock, self._desk.ledger.reading(self._desk.terms) as account:
            self._follow(account)
            places = (bisect_left(self._lines, (each,)) for each in (number, number + 1))
            found = [self._record(line, account) for line in self._lines[slice(*places)]]
            if not found and 0 < number <= len(self._asked):
                found = [self._single(number, account)]
            return found

    def part(self, after: int, count: int) -> tuple[list[Record], int]:
        """So many lines, oldest first, after skipping the first ones, and the total number of lines."""
        with self._lock, self._desk.ledger.reading(self._desk.terms) as account:
            self._follow(account)
            return [self._record(line, account) for line in self._lines[after : after + count]], len(self._lines)

    def receipt(self) -> tuple[str, dict[str, Any]]:
        """The head of what may be shown, and its receipt."""
        from afresh.receipts import make_receipt

        chain = self._desk.ledger.chain(self._desk.terms)
        with self._lock, self._desk.ledger.reading(self._desk.terms) as account:
            self._follow(account)
            hidden = set(self._later)
        if hidden:
            places = (place for place, record in enumerate(chain) if answers(record.text) in hidden)
            chain = chain[: next(places, len(chain))]
        return chain[-1].hash, make_receipt(chain)

    @contextmanager
    def noting(self, came: float) -> Iterator[set[int]]:
        """Collect the numbers of all answers, including old ones, that this thread gets from the desk in this context.

        All its questions count as having come at this time: otherwise the time of a second one that depends on the
        first would reveal how long the first took.
        """
        self._own.numbers, self._own.came = found, _ = set[int](), datetime.fromtimestamp(came, UTC)
        try:
            yield found
        finally:
            self._own.numbers = self._own.came = None

    @contextmanager
    def telling(self, told: Callable[[Iterable[str]], None]) -> Iterator[None]:
        """Tell of all questions that this thread asks the desk in this context, before they are paid for."""
        self._own.told = told
        try:
            yield
        finally:
            self._own.told = None

    def _pays(self, questions: Sequence[Question]) -> None:
        if (told := getattr(self._own, "told", None)) is not None:
            told(each.digest for each in questions)

    def _came(self) -> datetime:
        return getattr(self._own, "came", None) or self._desk.ledger.time()

    def _touch(self, replies: Sequence[Reply]) -> None:
        found = getattr(self._own, "numbers", None)
        if found is not None:
            found.update(part.entry.number for reply in replies for part in reply.parts)

    def leaves(self, numbers: Collection[int]) -> float:
        """The wall-clock time at which the last of these answers leaves, or left; 0 if that is long ago."""
        if not self._seen.issuperset(numbers):  # the first of those answered together looks on behalf of all
            self.follow()
        with self._lock:
            return max((self._later.get(number, 0.0) for number in numbers), default=0.0)

    def follow(self) -> None:
        """Read what is new in the ledger."""
        with self._lock, self._desk.ledger.reading(self._desk.terms) as account:
            self._follow(account)

    def state(self) -> tuple[int, int]:
        """Something that changes whenever something new may be shown."""
        with self._lock, self._desk.ledger.reading(self._desk.terms) as account:
            self._follow(account)
            return len(self._asked), self._answered - len(self._later)

    @property
    def analysts(self) -> list[str]:
        """Everyone who asked, in order of appearance."""
        return list(self._names)

    @property
    def rounds(self) -> list[str]:
        """The names of the rounds that were asked in."""
        return list(self._rounds.values())

    def rows_of(self, round: str) -> int | None:
        """The number of rows in a round; None for a final look, whose questions have different rows."""
        return next((high - low for (low, high), name in self._rounds.items() if name == round), None)

    def _follow(self, account: Account) -> None:
        """Take in what is new in the ledger."""
        for asked in account.entries.reserved[len(self._asked) :]:
            self._take(asked)
        now = time.time()
        for place in account.entries.order[self._answered :]:
            came = self._asked[place].at.timestamp()
            self._later[place + 1] = came + leaving(now - came, self._tick)
            self._seen.add(place + 1)
        self._answered = len(account.entries.order)
        self._later = {number: at for number, at in self._later.items() if at > now}
        new = list(islice(reversed(account.stated.values()), len(account.stated) - self._stated))[::-1]
        if all(self._later.keys().isdisjoint(stated.parts) for stated in new):  # it reveals that its parts are answered
            for stated in new:
                self._state(stated)

    def _take(self, asked: Reserved) -> None:
        self._asked.append(asked)
        self._names.setdefault(asked.analyst)
        if asked.span is not None and asked.again is None and asked.span not in self._rounds:
            exam = self._desk.plan.exam is not None
            self._rounds[asked.span] = "exam" if exam else f"{len(self._rounds) + 1}"
        if asked.vector is not None:
            first = asked.number - asked.vector[3]
            self._vectors[asked.number] = first
            if first != asked.number:
                return
        insort(self._lines, _Line(asked.number, -1))

    def _state(self, stated: Stated) -> None:
        self._stated += 1
        firsts = {self._vectors.get(part) for part in stated.parts}
        (first,) = firsts if len(firsts) == 1 else (None,)
        for part in stated.parts:
            if not self._asked[part - 1].own and part not in self._vectors and part not in self._parts:
                del self._lines[bisect_left(self._lines, (part, -1))]
                self._parts.add(part)
        if first is None:
            insort(self._lines, _Line(max(stated.parts), self._stated, stated), key=lambda line: line[:2])
        else:
            self._read.setdefault(first, []).append(stated)

    def _wants(self, line: _Line, wanted: Wanted) -> bool:
        about = line.stated or self._asked[line.number - 1]
        return (
            wanted.words.casefold() in about.text.casefold()
            and wanted.analyst in ("", about.analyst)
            and wanted.round in ("", self._round(self._asked[line.number - 1]))
        )

    def _round(self, asked: Reserved | Entry) -> str | None:
        if asked.again is not None:
            return "final"
        return None if asked.span is None else self._rounds[asked.span]

    def _record(self, line: _Line, account: Account) -> Record:
        if line.stated is not None:
            return derived(line.stated, tuple(self._single(part, account) for part in line.stated.parts))
        if line.number not in self._vectors:
            return self._single(line.number, account)
        first = account.entries[line.number - 1]
        assert first.vector is not None
        parts = [self._single(line.number + place, account) for place in range(first.vector[1])]
        return vector_of(list(self._from_vector(parts, self._read.get(line.number, ()))), first)

    def _from_vector(self, parts: Sequence[Record], stated: Sequence[Stated]) -> Iterator[Record]:
        """What was read from a vector, and the coordinates that are shown on their own."""
        by_number = {part.number: part for part in parts}
        used = {part for each in stated for part in each.parts}
        own = [part for part in parts if self._asked[part.number - 1].own or part.number not in used]
        found = [*own, *(derived(each, tuple(by_number[part] for part in each.parts)) for each in stated)]
        yield from sorted(found, key=lambda record: record.number)

    def _single(self, number: int, account: Account) -> Record:
        entry = account.entries[number - 1]
        if number in self._later:
            entry = replace(entry, outcome=None, answered_at=None)
        return single(entry, self._round(entry))


class Follower:
    """Regularly looks at what other workers have answered: an answer that is seen late leaves late."""

    def __init__(self, histories: Collection[History], period: float = PERIOD) -> None:
        """Start looking, until `stop` is called."""
        self._histories, self._period, self._ending = histories, period, threading.Event()
        self._thread = threading.Thread(target=self._look, name="afresh-follow", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._ending.wait(self._period):
            for each in self._histories:
                with suppress(AfreshError):  # the ledger cannot be read now; callers get an error
                    each.follow()

    def stop(self) -> None:
        """Stop looking."""
        self._ending.set()
        self._thread.join()
