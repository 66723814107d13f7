"""The demo's story, in three parts, and what to do next."""

from __future__ import annotations

import math
import os
import shlex
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from afresh.demo.files import FLIGHTS, LEDGER, flights_file
from afresh.demo.lead import COINS, KEPT, ROWS, coins_file, guarded_analyst, naive_analyst
from afresh.demo.loop import EDITS, ITEMS, MILESTONE, Table, course, guarded_loop, items_of, naive_loop
from afresh.errors import BudgetExhausted, MissingExtra, PlanMismatch, QueryError, SameRows
from afresh.guard.guard import Guard
from afresh.guard.open import open as open_guard
from afresh.models.verdicts import Comparison
from afresh.results.answer import Answer
from afresh.results.show import with_interval

Say = Callable[..., None]
QUESTIONS: tuple[tuple[str, str], ...] = (
    ("dep_delay > 15", "hour < 12"),
    ("dep_delay > 15", "hour >= 12"),
    ("dep_delay > 15", "rain"),
)


def run(folder: Path, talk: TextIO) -> dict[str, Any]:
    """Tell the story on `talk`, write data and pictures into `folder`, return the figures.

    Data and questions are the same in every run, and the ledger is kept: a second run gets the recorded answers, free.

    Args:
        folder: Where data, ledger and pictures go; created if it does not exist.
        talk: Where the story is printed.

    Returns:
        The figures, JSON-ready.

    Raises:
        MissingExtra: matplotlib is not installed.
        DataError: The folder holds other files under the demo's names.
    """
    try:
        import matplotlib  # noqa: F401 - asked for now, not after half a minute
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    try:
        return _tell(folder, talk)
    except (PlanMismatch, SameRows, BudgetExhausted) as error:
        error.add_note(
            f"{folder / LEDGER} was used for more than this demo; give the demo a folder of its own: "
            "afresh demo --out FOLDER"
        )
        raise


def _tell(folder: Path, talk: TextIO) -> dict[str, Any]:
    def say(*lines: str) -> None:
        print(*lines, sep="\n", file=talk, flush=True)

    from afresh.demo.pictures import draw_found, draw_wrong

    start = time.monotonic()
    flights_file(folder)
    naive, guarded = _false_lead(folder, say)
    answers, compared = _found(folder, say)
    loop = _loop(folder, say)
    wrong, found = folder / "wrong.png", folder / "found.png"
    draw_wrong(wrong, naive, guarded, loop)
    draw_found(found, answers, compared, guarded)
    seconds = time.monotonic() - start
    say("", f"Two pictures of this: {wrong} and {found}. ({seconds:.0f} s)", *_next_steps(folder))
    return {
        "naive": {str(kept): score for kept, score in naive.items()},
        "guarded": {str(kept): answer.to_dict() for kept, answer in guarded.items()},
        "truth": 0.5,
        "found": [answer.to_dict() | {"truth": truth} for answer, truth in answers],
        "compared": compared.to_dict(),
        "loop": loop,
        "pictures": [str(wrong), str(found)],
        "seconds": seconds,
    }


def _false_lead(folder: Path, say: Say) -> tuple[dict[int, float], dict[int, Answer]]:
    """Coin tosses cannot predict a late flight, but reusing the rows seems to show that they do."""
    path, coins, late = coins_file(folder)
    say(
        "1. A false lead",
        f"   {ROWS:,} real flights, late or not, and for each {COINS} coin tosses, which can predict nothing.",
        "   An analyst scores every coin, keeps the best, lets them vote, and scores the vote",
        "   on the same rows, with the usual 95% interval:",
        "",
    )
    naive, usual = naive_analyst(coins, late), 1.96 * math.sqrt(0.25 / ROWS)
    for kept, score in naive.items():
        say(f"     {_voters(kept)}: right in {score:6.1%}  ± {usual:.1%}{_verdict(score - usual <= 0.5)}")
    say("", "   The same analyst through a guard, in two rounds (the coins, then the votes):", "")
    with open_guard(path, questions=COINS + len(KEPT), rounds=2, ledger=folder / LEDGER) as guard:
        before = guard.budget.spent
        guarded = guarded_analyst(guard)
        if guard.budget.spent == before:
            say("   (You ran this before. Same data, same questions: these are the recorded answers, free.)", "")
        for kept, answer in guarded.items():
            interval = f"[{answer.low:.1%}, {answer.high:.1%}]"
            say(f"     {_voters(kept)}: right in {answer.value:6.1%}  {interval}{_verdict(0.5 in answer.interval)}")
        say("", "   No vote is confirmed to be better than a coin. The false lead ends here, and so does the budget:")
        say(_indent(_refusal(guard, "coin0 = late AND coin1 = late")))
    return naive, guarded


def _found(folder: Path, say: Say) -> tuple[list[tuple[Answer, float]], Comparison]:
    """Real questions about real flights, with the truth, and a comparison of two rules."""
    import polars as pl

    from afresh.datasets import flights
    from afresh.models.open import holdout

    population = flights()
    truths = []
    for group in ("hour < 12", "hour >= 12", "rain"):
        rows = population.sql(f"SELECT * FROM self WHERE {group}")
        truths.append(float((rows["dep_delay"] > 15).fill_null(False).mean()))  # type: ignore[arg-type] # a share
    say(
        "",
        "2. Something real",
        f"   {FLIGHTS:,} flights in a Parquet file, and 100 questions to ask. Which leave late?",
        "",
    )
    with open_guard(folder / "flights.parquet", questions=100, ledger=folder / LEDGER) as guard:
        answers = [guard.ask(expression, where=where) for expression, where in QUESTIONS]
        for answer, truth in zip(answers, truths, strict=True):
            value, low, high = with_interval(answer.value, answer.low, answer.high)
            asked = f"{answer.question} where {answer.where}"
            say(f"     {asked:<34}  {value:>6}  {f'[{low}, {high}]':<16}  the whole year: {truth:.3f}")
        morning, later, _ = answers
        points = 100 * (later.low - morning.high)
        say("", f"   Found: flights after noon leave late more often, by at least {points:.1f} points.")
        again = guard.ask("15 < dep_delay", where="hour < 12")
        say(f"   The first question, worded differently, is free: {again!r}, charged {again.charged}.")
        say("   A question about more than one row is refused, for free:")
        say(_indent(_refusal(guard, "dep_delay > avg(dep_delay)")))
    drawn = flights(50_000, seed=1).drop_nulls("arr_delay")
    delay, late = drawn["dep_delay"].to_numpy().astype(float), (drawn["arr_delay"] > 15).to_numpy()
    frame = pl.DataFrame({"dep_delay": delay})
    say("", "   Which rule predicts a late arrival better? Half of the rows are open to try rules on:", "")
    with holdout(frame, late, questions=100, open=0.5, ledger=folder / LEDGER) as held:
        compared = held.compare(delay > 45, delay > 20, names=("left 45 minutes late", "left 20 minutes late"))
    assert isinstance(compared, Comparison)  # the two rules differ on many flights
    say(_indent("\n".join(str(compared).splitlines()[:5])))
    return list(zip(answers, truths, strict=True)), compared


def _loop(folder: Path, say: Say) -> dict[str, Any]:
    """A loop of edits on one evaluation set, naive and guarded."""
    from afresh.datasets import flights
    from afresh.evaluations.open import evaluation

    population, drawn = flights(), flights(ITEMS, seed=5)
    everything, items = Table.of(population, population), Table.of(drawn, population)
    say(
        "",
        "3. A loop of edits",
        f"   An agent edits rules that predict late flights, {EDITS} times, and keeps each edit that scores",
        f"   better on {ITEMS:,} flights. Only the demo knows the last column, the accuracy over the whole year.",
        "",
    )
    history = naive_loop(items, seed=7)
    claims, truths = course(history, items), course(history, everything)
    usual = 1.96 * math.sqrt(claims[-1] * (1 - claims[-1]) / ITEMS)
    say(f"     before the first edit                         {truths[0]:.1%}")
    say(f"     naive     claims {f'{claims[-1]:.1%} ± {usual:.1%}':<26}   {truths[-1]:.1%}")
    with evaluation(items_of(drawn), ledger=folder / LEDGER) as held:
        kept, accepted, exam = guarded_loop(held, items, seed=7)
    (honest,) = course([kept], everything)
    score, milestones = exam.score, EDITS // MILESTONE
    say(
        f"     guarded   its exam says {f'{score.low:.1%} to {score.high:.1%}':<19}   {honest:.1%}",
        "",
        f"   The guarded agent tuned on half of them. A gate let {accepted} of {milestones} milestones pass; with 95%",
        "   confidence all are real improvements. The exam, on flights that nothing else has touched, is the number to",
        "   publish.",
    )
    guarded = {"low": score.low, "high": score.high, "value": score.value, "true": honest, "accepted": accepted}
    return {"naive": {"claims": claims, "usual": usual, "truths": truths}, "guarded": guarded}


def _next_steps(folder: Path) -> list[str]:
    """What to type after the demo."""
    steps = [
        ("afresh plan --rows 20000 --questions 100", "how wide your answers will be"),
        ('afresh ask yours.parquet "age < 30"', "your own file: Parquet, CSV or DuckDB"),
    ]
    activate = Path(sys.executable).parent / "activate"
    if activate.exists() and os.environ.get("VIRTUAL_ENV") != sys.prefix:
        steps.insert(0, (f". {os.path.relpath(activate)}", "first: puts afresh on this shell's path"))
    return [
        "",
        "Next, with your own data:",
        *(f"  {command:<42}  # {why}" for command, why in steps),
        "",
        "Or continue with these flights, as README.md and docs/ do. A dataset has one budget, so use the",
        "demo's ledger for them (leave this line out for your own data):",
        f"  export AFRESH_LEDGER={shlex.quote(str((folder / LEDGER).absolute()))}",
    ]


def _refusal(guard: Guard, question: str) -> str:
    try:
        return repr(guard.ask(question))
    except (BudgetExhausted, QueryError) as error:
        return textwrap.fill(f"{type(error).__name__}: {error}", 90)


def _voters(kept: int) -> str:
    return f"{kept:3d} coin{'s vote' if kept > 1 else ' votes'}".ljust(14)


def _verdict(holds: bool) -> str:
    return "   contains the truth, 50%" if holds else "   MISSES the truth, 50%"


def _indent(text: str) -> str:
    return textwrap.indent(text, "     ")
