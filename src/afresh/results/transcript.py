"""Everything a guard has released: the analysts' own questions in order, each with the answers behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from afresh.errors import InvalidArgument
from afresh.results import show
from afresh.results.answer import TOO_FEW, answers_in_words, simulation_mark
from afresh.results.frames import Tabular
from afresh.results.reading import Number, read
from afresh.results.rules import tells

if TYPE_CHECKING:
    from afresh.ledger import Entry
    from afresh.ledger.records import Stated


@dataclass(frozen=True, slots=True)
class Record:
    """One released number, on the scale of its question."""

    number: int
    """1, 2, ... in order of payment; for a number derived from several answers, that of the last one."""
    question: str
    bounds: tuple[float, float]
    value: float | None
    low: float | None
    high: float | None
    charge: float
    """The charge in nats; for a number derived from several answers, that of all of them."""
    coarseness: float
    """The multiple of the plan's noise; for several answers, the largest."""
    analyst: str
    asked_at: str
    answered_at: str | None
    digest: str | None
    """The question's name: a hash of its canonical form, keyed if it is about predictions."""
    rule: str | None = None
    """The name of the rule that derives it from its parts."""
    parts: tuple[Record, ...] = ()
    round: str | None = None
    """The round it was asked in, "final" for a final look, "exam" for the exam; None for methods without these."""
    counts: int = 1
    """The number of answers it counts as; a vector's first coordinate counts for the whole vector."""
    said: str | None = None
    """What a claim, a challenge or a contest released, in words; None for numbers."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return {**told, "bounds": list(self.bounds), "parts": [part.to_dict() for part in self.parts]}

    def shown(self) -> list[str]:
        """The value, or why there is none, and the ends of its interval, as text; empty until it is released."""
        if self.value is None or self.low is None or self.high is None:
            return ["", "", ""]
        if self.said is not None:
            ends = shown_numbers(self.value, self.low, self.high, told=True)[1:] if self.told else ["", ""]
            return [self.said, *ends]
        return shown_numbers(self.value, self.low, self.high, told=self.told)

    @property
    def told(self) -> bool:
        """Whether it is an informative number: not before it is released, nor for a group with too few rows.

        Nor for a claim: only whether it passed was released, and its ends were given.
        """
        if self.question.startswith(_CLAIMS):
            return False
        return self.low is not None and self.high is not None and tells(self.rule, self.low, self.high, self.bounds)

    @property
    def answers(self) -> int:
        """The number of answers it counts as, including everything behind it."""
        return sum(part.counts for part in _paid(self))

    @property
    def numbers(self) -> str:
        """The answers behind it: 3, or 3+4, or 3+4+… for many, or 3-12 for a vector."""
        if self.rule == AT_ONCE:
            return f"{self.number}-{max(each.number for each in _paid(self))}"
        if len(self.parts) > 3:
            return f"{self.parts[0].number}+{self.parts[1].number}+…"
        return "+".join(str(part.number) for part in self.parts) or str(self.number)


@dataclass(frozen=True, slots=True)
class Transcript(show.Told, Tabular):
    """Everything a guard has released, in order. A value of None has been paid for but not yet released."""

    records: tuple[Record, ...]
    """The analysts' own questions; `parts` holds the answers behind each."""
    confidence: float
    simulated: bool = False

    def __len__(self) -> int:
        """The number of questions asked."""
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        """The questions in order."""
        return iter(self.records)

    @property
    def answers(self) -> tuple[Record, ...]:
        """Every answer that was paid for, by number, whatever it is part of."""
        found = {each.number: each for record in self.records for each in _paid(record)}
        return tuple(found[number] for number in sorted(found))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        questions = [record.to_dict() for record in self.records]
        return {"confidence": self.confidence, "simulated": self.simulated, "questions": questions}

    def rows(self) -> list[dict[str, Any]]:
        """One row per question.

        Returns:
            Mappings with the same keys.
        """
        names = ("number", "round", "question", "value", "low", "high", "charge", "analyst", "asked_at", "answered_at")
        return [
            {**{name: getattr(each, name) for name in names}, "rule": each.rule, "digest": each.digest}
            for each in self.records
        ]

    def plot(self, ax: Any = None, *, standardized: bool = False) -> Any:
        """Draw everything that was released as a forest plot.

        Args:
            ax: Matplotlib axes to draw on; by default, those of a new figure.
            standardized: Whether to draw every number as a share of its question's range.

        Returns:
            The axes.

        Raises:
            InvalidArgument: Nothing was released, or the questions have different bounds and `standardized` is not set.
            MissingExtra: matplotlib is not installed.
        """
        from afresh.results.plots import draw

        found = pictures(self.records, standard=standardized, most=len(self.answers))
        if not found or not found[0].marks:
            raise InvalidArgument("nothing has been released yet; there is nothing to draw.")
        if len(found) > 1:
            raise InvalidArgument("the questions have different bounds; standardized=True draws them on one scale.")
        return draw(found[0], ax)

    def with_parts(self) -> str:
        """The transcript as text, with the answers behind each question listed under it."""
        return show.as_text(self._blocks(parts=True))

    def _blocks(self, *, parts: bool = False) -> list[show.Block]:
        if not self.records:
            return [show.Title("Nothing has been asked yet.")]
        rows = []
        for record in self.records:
            rows.append(_row(record, record.numbers, record.question))
            if parts or record.rule == AT_ONCE:  # a vector has no number of its own
                rows += [_row(part, f"{part.number}", f"  · {part.question}") for part in record.parts]
        header = list(_HEADER)
        if not any(record.round for record in self.records):
            header.remove("round")
            rows = [[*row[:1], *row[2:]] for row in rows]
        return [
            *simulation_mark(self.simulated),
            show.Title(
                f"{answers_in_words(sum(each.counts for each in self.answers))} to {len(self.records):,} "
                f"question{'' if len(self.records) == 1 else 's'}, all intervals hold at once at "
                f"{show.percent(self.confidence)}"
            ),
            show.Drawn(pictures(self.records), show.Table(header, rows, code=["question"])),
        ]


def transcribed(entries: Sequence[Entry], stated: Sequence[Stated], *, exam: bool = False) -> tuple[Record, ...]:
    """The questions that analysts asked, from what was paid for and what was derived from it.

    `exam`: whether rows opened for a batch are those of the exam.
    """
    spans = dict.fromkeys(entry.span for entry in entries if entry.span is not None and entry.again is None)
    rounds = {span: "exam" if exam else f"{place}" for place, span in enumerate(spans, 1)}
    paid = {
        entry.number: single(entry, "final" if entry.again is not None else rounds.get(entry.span or (0, 0)))
        for entry in entries
    }
    made = [derived(each, tuple(paid[part] for part in each.parts)) for each in stated]
    covered = {part.number for record in made for part in record.parts}
    # A part of something that was never stated, because its search was interrupted, is shown by itself.
    alone = [paid[entry.number] for entry in entries if entry.own or entry.number not in covered]
    found = sorted([*alone, *made], key=lambda record: record.number)
    starts = {entry.number: entry for entry in entries if entry.vector is not None and entry.vector[3] == 0}
    return tuple(_folded(found, starts)) if starts else tuple(found)


def _folded(records: Sequence[Record], starts: Mapping[int, Entry]) -> list[Record]:
    """One line for every vector that was released at once, with the numbers read from it below."""
    places = {
        number: first
        for first, entry in starts.items()
        if entry.vector is not None
        for number in range(first, first + entry.vector[1])
    }
    vectors: dict[int, list[Record]] = {}
    others = []
    for record in records:
        found = {places.get(each.number) for each in _paid(record)}
        (first,) = found if len(found) == 1 else (None,)
        if first is None:
            others.append(record)  # several may follow from the same answers and share one number
        else:
            vectors.setdefault(first, []).append(record)
    lines = [*others, *(vector_of(own, starts[first]) for first, own in vectors.items())]
    return sorted(lines, key=lambda record: record.number)


AT_ONCE = "at once"  # the rule of a line for a vector: it has parts, and no value of its own


def vector_of(parts: Sequence[Record], first: Entry) -> Record:
    """The line of a vector that was released at once, with the numbers read from it."""
    head = parts[0]
    return replace(
        head,
        number=first.number,
        question=f"{len(parts):,} numbers at once: {head.question}" + (", ..." if len(parts) > 1 else ""),
        value=None,
        low=None,
        high=None,
        charge=first.charge,
        digest=None,
        rule=AT_ONCE,
        parts=tuple(parts),
        counts=first.counts,
    )


def _paid(record: Record) -> Iterator[Record]:
    """The answers behind a line."""
    if not record.parts:
        yield record
    for part in record.parts:
        yield from _paid(part)


def single(entry: Entry, round: str | None) -> Record:
    """The line of one answer."""
    value, low, high = (None, None, None) if entry.outcome is None else read(entry).own
    return Record(
        number=entry.number,
        question=entry.text,
        bounds=entry.bounds,
        value=value,
        low=low,
        high=high,
        charge=entry.charge,
        coarseness=entry.coarseness,
        analyst=entry.analyst,
        asked_at=entry.reserved_at.isoformat(),
        answered_at=None if entry.answered_at is None else entry.answered_at.isoformat(),
        digest=entry.digest,
        round=round,
        counts=entry.counts,
        said=None if entry.outcome is None else symbol_in_words(entry.outcome.released),
    )


def symbol_in_words(released: Any) -> str | None:
    """What rows that only release symbols said to a claim, a challenge or a contest; None for anything else."""
    if not isinstance(released, Mapping):
        return None
    if "passed" in released:
        return "passed" if released["passed"] else "failed"
    if "winner" in released:
        return "no certified improvement" if released["winner"] < 0 else f"model {int(released['winner']) + 1} wins"
    return None


def derived(stated: Stated, parts: tuple[Record, ...]) -> Record:
    """The line of a number derived from several answers."""
    return Record(
        number=max(stated.parts),
        question=stated.text,
        bounds=stated.bounds,
        value=stated.value,
        low=stated.low,
        high=stated.high,
        charge=sum(part.charge for part in parts),
        coarseness=max(part.coarseness for part in parts),
        analyst=stated.analyst,
        asked_at=min(part.asked_at for part in parts),
        answered_at=stated.at.isoformat(),
        digest=None,
        rule=stated.rule,
        parts=parts,
        round=parts[-1].round,
        said=parts[0].said if stated.rule == "improvement" else None,
    )


_CLAIMS = ("claim: ", "challenge: ", "gate: ")  # only one bit of these is released; no expression reads like this
_HEADER = ("#", "round", "value", "low", "high", "asked at (UTC)", "analyst", "question")
_MOST_DRAWN = 60  # more would be unreadable


def _row(record: Record, numbers: str, question: str) -> list[str]:
    cells = ["-", "-", "-"] if record.value is None else record.shown()
    return [numbers, record.round or "", *cells, record.asked_at[:19].replace("T", " "), record.analyst, question]


def shown_numbers(value: float, low: float, high: float, *, told: bool) -> list[str]:
    """A value, or why there is none, and the ends of its interval: three table cells."""
    shown, *ends = show.with_interval(value, low, high)
    return [shown if told else TOO_FEW, *ends]


def forest(bounds: tuple[float, float], marks: Sequence[show.Mark]) -> show.Forest:
    """The plot of released numbers with these bounds."""
    return show.Forest(marks, bounds, f"{'share of rows' if bounds == (0, 1) else 'mean'}, with its interval")


def mark(numbers: str, question: str, number: Number, asked: str, *, told: bool, href: str | None = None) -> show.Mark:
    """The plot's line for one number; `asked` says by whom and when, `href` is the link of its name."""
    value, low, high = shown_numbers(*number, told=told)
    hint = f"{numbers}. {question} ({asked} UTC)"
    shown = number.value if told else None
    return show.Mark(numbers, question, shown, number.low, number.high, f"{value} [{low}, {high}]", hint, href)


def pictures(
    records: Sequence[Record],
    href: Callable[[Record], str] | None = None,
    *,
    standard: bool = False,
    most: int = _MOST_DRAWN,
) -> list[show.Forest]:
    """A plot for every pair of bounds, unless there are too many lines; `standard` puts all on one scale."""
    panels: defaultdict[tuple[float, float], list[show.Mark]] = defaultdict(list)
    records = [each for record in records for each in (record.parts if record.rule == AT_ONCE else (record,))]
    for record in records:
        if record.said is not None and not record.told:
            continue  # a symbol, and no number to draw
        if record.value is not None and record.low is not None and record.high is not None:
            number, asked = Number(record.value, record.low, record.high), f"{record.analyst}, {record.asked_at[:19]}"
            leads = None if href is None else href(record)
            made = mark(record.numbers, record.question, number, asked, told=record.told, href=leads)
            panels[record.bounds].append(made)
    if len(records) > most:
        return []
    if standard:
        marks = [_standard(each, bounds) for bounds, panel in panels.items() for each in panel]
        return [show.Forest(marks, (0.0, 1.0), "share of each question's range, with its interval")]
    return [forest(*panel) for panel in panels.items()]


def _standard(of: show.Mark, bounds: tuple[float, float]) -> show.Mark:
    """A line on the scale from 0, the lowest value its question can have, to 1."""
    low, high = bounds

    def moved(value: float) -> float:
        return min(max((value - low) / (high - low), 0.0), 1.0)

    return replace(of, value=None if of.value is None else moved(of.value), low=moved(of.low), high=moved(of.high))
