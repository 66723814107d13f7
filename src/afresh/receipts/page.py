"""A receipt for people: one HTML page that needs nothing else, or Markdown."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from afresh import escaping
from afresh.results import show
from afresh.results.answer import TOO_FEW
from afresh.results.rules import tells

_ROW, _NAME, _LEFT, _WIDTH, _PLOT = 24, 76, 440, 1000, 340
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64em; margin: 2em auto; padding: 0 1em; color: #1c2430 }
table { border-collapse: collapse; font-size: 15px } td { padding: .15em 1.2em .15em 0; vertical-align: top }
code { font-size: 14px; overflow-wrap: anywhere } h2 { margin-top: 1.6em } .note { color: #5a6675 }
.warning { background: #fff3cd; padding: .5em 1em }
"""


def as_html(receipt: dict[str, Any]) -> str:
    """The page, with a forest plot for every pair of bounds."""
    facts = "".join(
        f"<tr><td>{escaping.as_html(name)}</td><td>{escaping.as_html(value)}</td></tr>"
        for name, value in _facts(receipt).items()
    )
    plots = "".join(
        f"<h2>{escaping.as_html(_panel_title(bounds))}</h2>{_forest(bounds, answers)}"
        for bounds, answers in _panels(receipt).items()
    )
    outside = "".join(f"<li>{escaping.as_html(words)}</li>" for words in _outside(receipt))
    warning = f'<p class="warning">{escaping.as_html(_SIMULATED)}</p>' if receipt["simulated"] else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>afresh receipt</title><style>{_STYLE}</style></head><body>
<h1>{escaping.as_html(_title(receipt))}</h1>{warning}
<p>{escaping.as_html(_promise(receipt))}</p>
<table>{facts}</table>
{plots or "<p>Nothing has been released yet.</p>"}
{_folded(receipt)}
{f"<h2>Revealed outside and charged</h2><ul>{outside}</ul>" if outside else ""}
<p class="note">{escaping.as_html(_VERIFY)}</p>
<p class="note">Head of the chain: <code>{escaping.as_html(receipt["chain"]["head"])}</code></p>
</body></html>
"""


def as_markdown(receipt: dict[str, Any]) -> str:
    """The same as Markdown, with tables in place of plots."""
    lines = [f"# {_title(receipt)}", ""]
    if receipt["simulated"]:
        lines += [f"**{_SIMULATED}**", ""]
    lines += [_promise(receipt), ""]
    lines += [f"- {name}: {escaping.as_markdown(value)}" for name, value in _facts(receipt).items()]
    for bounds, answers in _panels(receipt).items():
        lines += ["", f"## {_panel_title(bounds)}", "", "| # | value | interval | question |", "|--:|--:|---|---|"]
        for answer in answers:
            value, low, high = show.with_interval(answer["value"], answer["low"], answer["high"])
            value = value if _told(answer) else TOO_FEW
            question = escaping.as_markdown_code(answer["question"])
            lines.append(f"| {_numbers(answer)} | {value} | [{low}, {high}] | {question} |")
    if made := _made_of(receipt):
        lines += ["", "## What they were made of", ""]
        for whole, answers in made:
            lines.append(f"- {escaping.as_markdown_code(whole['question'])}, {whole['rule']}")
            lines += [
                f"  - {answer['number']}: {_interval(answer)} {escaping.as_markdown_code(answer['question'])}"
                for answer in answers
            ]
    if outside := _outside(receipt):
        lines += ["", "## Revealed outside and charged", "", *(f"- {escaping.as_markdown(words)}" for words in outside)]
    return "\n".join(
        [*lines, "", _VERIFY, "", f"Head of the chain: {escaping.as_markdown_code(receipt['chain']['head'])}", ""]
    )


_VERIFY = (
    "The JSON file next to this page can be checked by anyone, without the data: afresh verify receipt.json. It "
    "recomputes every charge and interval from the public constants. It cannot show that the rows are independent "
    "draws, that they were seen in no other way, or that nothing was asked later or under another ledger."
)
_SIMULATED = "A SIMULATION: the noise came from a seed, so nothing is promised."


def _title(receipt: dict[str, Any]) -> str:
    count = sum(answer["value"] is not None for answer in receipt["questions"])
    paid = len(receipt["answers"])
    return f"{count:,} questions to {receipt['data']['rows']:,} rows, from {paid:,} answers"


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


def _outside(receipt: dict[str, Any]) -> list[str]:
    return [f"{each['what']}: {each['charge']:.4g} nats" for each in receipt["outside"]]


def _panels(receipt: dict[str, Any]) -> dict[tuple[float, float], list[dict[str, Any]]]:
    panels: defaultdict[tuple[float, float], list[dict[str, Any]]] = defaultdict(list)
    for answer in receipt["questions"]:
        if answer["value"] is not None:
            panels[tuple(answer["bounds"])].append(answer)
    return dict(panels)


def _numbers(question: dict[str, Any]) -> str:
    """Which answers it was made of: 3, 3+4, or 3+4+… of many."""
    numbers = question["numbers"]
    return "+".join(map(str, numbers[:2])) + ("+…" if len(numbers) > 2 else "")


def _made_of(receipt: dict[str, Any]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The questions that follow from several answers, each with these."""
    answers = {answer["number"]: answer for answer in receipt["answers"]}
    return [
        (question, [answers[number] for number in question["numbers"]])
        for question in receipt["questions"]
        if question["rule"] is not None
    ]


def _folded(receipt: dict[str, Any]) -> str:
    """The answers that questions were made of, folded under each."""
    folds = []
    for question, answers in _made_of(receipt):
        rows = "".join(
            f"<tr><td>{answer['number']}</td><td>{_interval(answer)}</td>"
            f"<td><code>{escaping.as_html(answer['question'])}</code></td></tr>"
            for answer in answers
        )
        words = f"{_numbers(question)}. {question['question']}, by the rule {question['rule']}"
        folds.append(f"<details><summary>{escaping.as_html(words)}</summary><table>{rows}</table></details>")
    return f"<h2>What they were made of</h2>{''.join(folds)}" if folds else ""


def _interval(answer: dict[str, Any]) -> str:
    if answer["value"] is None:
        return "not released"
    value, low, high = show.with_interval(answer["value"], answer["low"], answer["high"])
    return f"{value if _told(answer) else TOO_FEW} [{low}, {high}]"


def _told(answer: dict[str, Any]) -> bool:
    """Whether a number says anything; the answers that one is made of have no rule, and always do."""
    return tells(answer.get("rule"), answer["low"], answer["high"], answer["bounds"])


def _panel_title(bounds: tuple[float, float]) -> str:
    return "Shares of rows" if bounds == (0, 1) else f"Means of numbers between {bounds[0]:g} and {bounds[1]:g}"


def _forest(bounds: tuple[float, float], answers: list[dict[str, Any]]) -> str:
    """One line an answer: its number and question, its interval on the scale of the bounds, its numbers."""
    low, high = bounds
    height = _ROW * len(answers) + 54

    def x(value: float) -> float:
        return _LEFT + _PLOT * (value - low) / (high - low)

    parts = []
    for tick in range(5):
        at = low + (high - low) * tick / 4
        parts.append(
            f'<line x1="{x(at):.1f}" x2="{x(at):.1f}" y1="8" y2="{height - 40}" stroke="#e3e8ee"/>'
            f'<text x="{x(at):.1f}" y="{height - 22}" text-anchor="middle" fill="#5a6675">{at:g}</text>'
        )
    label = "share of rows" if bounds == (0, 1) else "mean"
    parts.append(
        f'<text x="{_LEFT + _PLOT / 2}" y="{height - 4}" text-anchor="middle" fill="#5a6675">'
        f"{label}, with its interval</text>"
    )
    for place, answer in enumerate(answers):
        y = _ROW * place + 22
        dot = f'<circle cx="{x(answer["value"]):.1f}" cy="{y}" r="4.5" fill="#2364aa"/>' if _told(answer) else ""
        words = answer["question"] if len(answer["question"]) <= 44 else answer["question"][:43] + "…"
        when = f"{answer['analyst']}, {answer['asked_at'][:19]} UTC"
        full = escaping.as_html(f"{_numbers(answer)}. {answer['question']} ({when})")
        parts.append(
            f"<g><title>{full}</title>"
            f'<text x="0" y="{y + 5}">{_numbers(answer)}</text>'
            f'<text x="{_NAME}" y="{y + 5}">{escaping.as_html(words)}</text>'
            f'<line x1="{x(answer["low"]):.1f}" x2="{x(answer["high"]):.1f}" y1="{y}" y2="{y}" stroke="#2364aa" '
            'stroke-width="3" stroke-linecap="round"/>'
            f'{dot}<text x="{_LEFT + _PLOT + 16}" y="{y + 5}">{_interval(answer)}</text></g>'
        )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="100%" role="img" aria-label="Forest plot of the answers" '
        f'font-size="14" font-family="system-ui, sans-serif" fill="#1c2430">{"".join(parts)}</svg>'
    )
