"""A receipt for people: one self-contained HTML page, or Markdown."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from afresh.results import html, markdown, show
from afresh.results.answer import answers_in_words
from afresh.results.reading import Number
from afresh.results.rules import tells
from afresh.results.transcript import forest, mark, shown_numbers, symbol_in_words


def as_html(receipt: dict[str, Any]) -> str:
    """Show a receipt as an HTML page, with a forest plot for every pair of bounds.

    Args:
        receipt: What `Guard.receipt` gives.

    Returns:
        A complete document without scripts or links; light or dark as its reader prefers.
    """
    return html.page(_title(receipt), _blocks(receipt))


def as_markdown(receipt: dict[str, Any]) -> str:
    """Show a receipt as Markdown, with tables instead of plots.

    Args:
        receipt: What `Guard.receipt` gives.

    Returns:
        GitHub-flavored Markdown; all text from users is escaped.
    """
    return markdown.page(_title(receipt), _blocks(receipt))


def _blocks(receipt: dict[str, Any]) -> list[show.Block]:
    blocks: list[show.Block] = [show.Alert(_SIMULATED)] if receipt["simulated"] else []
    blocks += [show.Line(_promise(receipt)), show.Facts(_facts(receipt))]
    symbols = _symbols(receipt)
    panels = _panels(receipt, symbols)
    for bounds, questions in panels.items():
        blocks += [show.Heading(_panel_title(bounds)), _panel(bounds, questions)]
    if found := [each for each in receipt["questions"] if _symbol(each, symbols)]:
        rows = [[_numbers(each), _result(each, symbols), each["question"]] for each in found]
        blocks += [show.Heading("Claims, challenges and contests"), show.Line(_SYMBOLS)]
        blocks.append(show.Table(("#", "result", "question"), rows, code=["question"]))
    elif not panels:
        blocks.append(show.Line("Nothing has been released yet."))
    if made := _made_of(receipt):
        blocks += [show.Heading("How they were derived"), *(_fold(*each) for each in made)]
    if receipt["outside"]:
        charges = [[f"{each['charge']:.4g} nats", each["what"]] for each in receipt["outside"]]
        blocks += [show.Heading("Revealed outside and charged"), show.Table(["charge", "what"], charges)]
    return [*blocks, show.Heading("How to check it"), show.Line(_VERIFY)]


_VERIFY = (
    "The JSON file next to this page can be checked by anyone, without the data: afresh verify receipt.json. It "
    "recomputes every charge and interval from the public constants. It cannot show that the rows are independent "
    "draws, that they were seen in no other way, or that nothing was asked later or under another ledger."
)
_SYMBOLS = (
    "Only these words were released. What passed is certified, together with all intervals above, and so is that a "
    "winner beats the incumbent it was compared with. What failed may still be true."
)
_SAID = (None, "improvement")  # the rules of what is a symbol, and no number
_SIMULATED = "A SIMULATION: the noise came from a seed, so nothing is guaranteed."


def _title(receipt: dict[str, Any]) -> str:
    count = sum(answer["value"] is not None for answer in receipt["questions"])
    asked = f"{count:,} question" + ("" if count == 1 else "s")
    return f"{asked} about {receipt['data']['rows']:,} rows, from {answers_in_words(len(receipt['answers']))}"


def _promise(receipt: dict[str, Any]) -> str:
    plan = receipt["plan"]
    return (
        f"With probability at least {show.percent(plan['confidence'])}, over the draw of the rows and the noise, "
        "all intervals below contain their true values at once, however the questions were chosen: those of the "
        "population the rows were drawn from, unless a question names other rows. "
        "It needs rows that are independent draws and that the analysts saw in no other way. It is not a privacy "
        "guarantee."
    )


def _facts(receipt: dict[str, Any]) -> dict[str, str]:
    plan, spent = receipt["plan"], receipt["spent"]
    nats = "" if plan["information"] is None else f", {spent['information']:.4g} of {plan['information']:.4g} nats"
    facts = {
        "method": plan["method"],
        "limits": f"{plan['questions']:,} answers at full price, {plan['answers']:,} in all, fixed {_day(receipt)}",
        "spent": f"{spent['answers']:,} answers{nats}",
        "constants": ", ".join(f"{k} = {v:.6g}" for k, v in plan["constants"].items()),
        "grids": f"{_step(plan['grid'])} for released numbers, {_step(plan['ends'])} for ends of intervals",
        "data": f"{receipt['data']['name']} (a keyed name; the key stays in the ledger)",
        "head of the chain": receipt["chain"]["head"],
        "made": f"{receipt['made_at'][:19].replace('T', ' ')} UTC by {receipt['made_by']}",
    }
    if receipt["data"]["new_rows"]:
        facts["new rows"] = receipt["data"]["new_rows"]
    if receipt["shares"]:
        facts["shares"] = ", ".join(f"{name} {share:,}" for name, share in receipt["shares"].items())
    return facts


def _step(step: float | None) -> str:
    return "none" if step is None else f"2^{math.frexp(step)[1] - 1}"


def _day(receipt: dict[str, Any]) -> str:
    return str(receipt["opened_at"][:10])


def _symbols(receipt: dict[str, Any]) -> dict[int, str]:
    """What claims, challenges and contests released, by number: the records have it."""
    records = (json.loads(record) for record in receipt["chain"]["records"])
    found = {each["number"]: symbol_in_words(each["released"]) for each in records if each["kind"] == "answered"}
    return {number: words for number, words in found.items() if words is not None}


def _symbol(question: dict[str, Any], symbols: Mapping[int, str]) -> str | None:
    (first, *others) = question["numbers"] or [None]
    return None if others or question["rule"] not in _SAID else symbols.get(first)


def _result(question: dict[str, Any], symbols: Mapping[int, str]) -> str:
    """The words, and the interval of a winner's value if bins were asked for."""
    said = _symbol(question, symbols) or ""
    if not question["question"].startswith("contest: ") or not _told(question):
        return said
    _, low, high = shown_numbers(question["value"], question["low"], question["high"], told=True)
    return f"{said}, {low} to {high}"


def _panels(receipt: dict[str, Any], symbols: Mapping[int, str]) -> dict[tuple[float, float], list[dict[str, Any]]]:
    panels: defaultdict[tuple[float, float], list[dict[str, Any]]] = defaultdict(list)
    for answer in receipt["questions"]:
        if answer["value"] is not None and not _symbol(answer, symbols):
            panels[tuple(answer["bounds"])].append(answer)
    return dict(panels)


def _numbers(question: dict[str, Any]) -> str:
    """The answers behind it: 3, 3+4, or 3+4+… for many."""
    numbers = question["numbers"]
    return "+".join(map(str, numbers[:2])) + ("+…" if len(numbers) > 2 else "")


def _made_of(receipt: dict[str, Any]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The questions derived from several answers, each with these answers."""
    answers = {answer["number"]: answer for answer in receipt["answers"]}
    return [
        (question, [answers[number] for number in question["numbers"]])
        for question in receipt["questions"]
        if question["rule"] not in _SAID
    ]


def _panel(bounds: tuple[float, float], questions: list[dict[str, Any]]) -> show.Drawn:
    """The questions with these bounds: a plot, and the numbers."""
    marks = [
        mark(
            _numbers(each),
            each["question"],
            Number(each["value"], each["low"], each["high"]),
            f"{each['analyst']}, {each['asked_at'][:19]}",
            told=_told(each),
        )
        for each in questions
    ]
    return show.Drawn([forest(bounds, marks)], _table([(_numbers(each), each) for each in questions]))


def _fold(question: dict[str, Any], answers: list[dict[str, Any]]) -> show.Fold:
    """The answers behind a question."""
    words = f"Answers {_numbers(question)}: {question['question']}, by the rule {question['rule']}"
    return show.Fold(words, [_table([(str(answer["number"]), answer) for answer in answers])])


def _table(rows: list[tuple[str, dict[str, Any]]]) -> show.Table:
    header = ("#", "value", "low", "high", "question")
    return show.Table(header, [[number, *_cells(each), each["question"]] for number, each in rows], code=["question"])


def _cells(answer: dict[str, Any]) -> list[str]:
    if answer["value"] is None:
        return ["not released", "-", "-"]
    return shown_numbers(answer["value"], answer["low"], answer["high"], told=_told(answer))


def _told(answer: dict[str, Any]) -> bool:
    """Whether a number is informative; the answers behind it have no rule and always are."""
    return tells(answer.get("rule"), answer["low"], answer["high"], answer["bounds"])


def _panel_title(bounds: tuple[float, float]) -> str:
    return "Shares of rows" if bounds == (0, 1) else f"Means of numbers between {bounds[0]:g} and {bounds[1]:g}"
