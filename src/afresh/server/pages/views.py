"""What pages show about a dataset: its plan in words, gauges, and lines of its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from afresh.errors import NotFound
from afresh.results import show
from afresh.results.answer import answers_in_words
from afresh.results.transcript import AT_ONCE, Record, pictures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from afresh.guard.desk import Desk
    from afresh.server.history import History, Page, Wanted
    from afresh.server.house import Served
    from afresh.server.tokens import Caller

_MOST_GAUGES = 20  # the analysts who have asked most


def address(served: Served, *more: object) -> str:
    """The path of a dataset, or of something that belongs to it."""
    return "/".join(["/datasets", quote(served.name, ""), *(quote(str(each), "") for each in more)])


def plan_in_words(desk: Desk) -> str:
    """What may be asked, and how accurate an answer is now."""
    plan, released = desk.plan, desk.ledger.released(desk.terms)
    width = show.width(plan.mechanism.present_half_width(0.5, released))
    rounds = "" if plan.rounds is None else f" in {plan.rounds:,} round{'' if plan.rounds == 1 else 's'}"
    many = f"up to {plan.questions:,} questions{rounds}" if plan.expected is None else "any number of questions"
    proviso = {"": "", "if checks pass": " as long as checks pass"}.get(plan.mechanism.proviso, plan.mechanism.proviso)
    exam = "" if plan.exam is None else f"; {plan.exam:,} rows are kept for an exam"
    sure = show.percent(plan.confidence)
    return f"{many}, ±{width} for a share near one half{proviso}; all intervals hold at once at {sure}{exam}"


@dataclass(frozen=True, slots=True)
class Purse:
    """How much of a budget is spent, and by whom."""

    name: str
    gauge: show.Gauge


def gauges(desk: Desk, caller: Caller) -> list[Purse]:
    """Gauges of the whole budget, then of everyone who has a share or has asked; the caller's own before others."""
    plan = desk.plan
    with desk.ledger.reading(desk.terms) as account:
        shares, by = dict(account.shares), {name: each.answers for name, each in account.purse.by_analyst.items()}
    found = [Purse("all", _gauge(desk, None, plan.questions))]
    names = sorted({*shares, *by}, key=lambda name: (name != caller.name, -by.get(name, 0), name))[:_MOST_GAUGES]
    for name in names:
        if name in shares:
            found.append(Purse(name, _gauge(desk, name, shares[name])))
        else:
            words = f"{answers_in_words(by[name])} so far" + (", without a share" if shares else "")
            found.append(Purse(name, show.Gauge(by[name], plan.expected or plan.questions, words)))
    return found


def _gauge(desk: Desk, analyst: str | None, whole: int) -> show.Gauge:
    plan = desk.plan
    spent = desk.ledger.spent(desk.terms, analyst)
    if plan.expected is not None and analyst is None:
        return show.Gauge(spent.answers, plan.expected, f"{answers_in_words(spent.answers)} so far, and no limit")
    left = min(spent.affordable(plan.charge, plan.mechanism.row_charge), whole)
    return show.Gauge(whole - left, whole, f"{left:,} of {whole:,} answers left")


def overview(served: Served, caller: Caller, frozen: str | None) -> dict[str, Any]:
    """What every page of a dataset begins with."""
    return {
        "name": served.name,
        "kind": "dataset" if served.holdout is None else "holdout",
        "description": served.settings.description,
        "rows": served.guard.rows,
        "plan": plan_in_words(served.guard.desk),
        "rounds": served.guard.plan.rounds,
        "simulated": served.guard.desk.terms.simulated,
        "gauges": gauges(served.guard.desk, caller),
        "frozen": frozen,
        "address": address(served),
        "changes": "-".join(map(str, served.history.state())),
    }


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a history, as it is shown."""

    record: Record
    href: str
    value: str
    interval: str
    bar: list[show.Block]
    cost: str
    when: str
    batch: str | None = None
    """The heading above the first line of a round."""


def lines(history: History, records: Sequence[Record], where: str) -> list[Line]:
    """Records as lines, with links below an address; those of one round under its name."""
    found: list[Line] = []
    for record in records:
        value, low, high = record.shown()
        if record.rule == AT_ONCE:
            value = f"{len(record.parts):,} numbers"
        last = found[-1].record.round if found else None
        found.append(
            Line(
                record,
                f"{where}/answers/{record.number}",
                value or "being answered",
                f"{low} to {high}" if low else "",
                bar_of(record),
                answers_in_words(record.answers),
                record.asked_at[:16].replace("T", " "),
                _batch(history, record.round) if record.round is not None and record.round != last else None,
            )
        )
    return found


def _batch(history: History, round: str) -> str:
    rows = history.rows_of(round)
    said = {"final": "The final look", "exam": "The exam"}.get(round, f"Round {round}")
    return said if rows is None else f"{said}: {rows:,} rows of its own"


def bar_of(record: Record) -> list[show.Block]:
    """The interval of a record, drawn; empty if it has none."""
    if record.value is None or record.low is None or record.high is None or not record.told:
        return []
    return [show.Bar(record.value, record.low, record.high, record.bounds)]


def forests(served: Served, records: Sequence[Record], *, standard: bool) -> list[show.Forest]:
    """The forest plot of some lines, with a link to each."""

    def href(record: Record) -> str:
        return address(served, "answers", record.number)

    return pictures(records, href, standard=standard)


def steps(page: Page, wanted: Wanted, scale: str) -> dict[str, str]:
    """The addresses of the newest, newer, older and oldest page."""

    def to(number: int) -> str:
        given = {"words": wanted.words, "analyst": wanted.analyst, "round": wanted.round, "scale": scale}
        return "?" + urlencode({**{key: value for key, value in given.items() if value}, "page": number})

    found: dict[str, str] = {}
    if page.number > 1:
        found |= {"Newest": to(1), "Newer": to(page.number - 1)}
    if page.number < page.pages:
        found |= {"Older": to(page.number + 1), "Oldest": to(page.pages)}
    return found


def answer_shown(history: History, number: int, name: str, confidence: float) -> list[list[show.Block]]:
    """All lines of the history that an answer is a part of, as a notebook would show them."""
    found = history.of(number) if 0 < number < 2**53 else []
    if not found:
        raise NotFound(f"there is no answer {number} in {name}.")
    return [_answer_blocks(record, confidence) for record in found]


def _answer_blocks(record: Record, confidence: float) -> list[show.Block]:
    """One line of the history as a notebook would show it."""
    value, low, high = record.shown()
    title = [show.Title(record.question)]
    if record.value is not None:
        ends = f"guaranteed {low} to {high}   " if low else ""
        title.append(show.Title(f"  {value}   {ends}{show.percent(confidence)}"))
    facts = {
        "asked": f"{record.asked_at[:19].replace('T', ' ')} UTC by {record.analyst}",
        "charged": f"{answers_in_words(record.answers)}, {record.charge:.4g} nats",
        "bounds": f"{record.bounds[0]:g} to {record.bounds[1]:g}",
    }
    if record.round is not None:
        facts["round"] = record.round
    if record.coarseness != 1:
        facts["noise"] = f"{record.coarseness:.3g} times the plan's"
    blocks: list[show.Block] = [*title, *bar_of(record)]
    if record.rule == AT_ONCE:
        blocks += [show.Drawn(pictures([record]), _parts(record))]
    elif record.parts:
        blocks += [
            show.Line(f"Derived from {len(record.parts):,} answers by the rule {record.rule}."),
            _parts(record),
        ]
    if record.value is None and record.rule != AT_ONCE:
        blocks.append(show.Line("It is paid for and being answered. Asking it again is free."))
    return [*blocks, show.Facts(facts)]


def _parts(record: Record) -> show.Table:
    rows = [[part.numbers, *(cell or "-" for cell in part.shown()), part.question] for part in record.parts]
    return show.Table(("#", "value", "low", "high", "question"), rows, code=["question"])
