"""The story in a minute: what adaptivity does to a holdout, and what a guard does about it."""

from __future__ import annotations

import math
import os
import shlex
import sys
import textwrap
import time
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from afresh.errors import (
    BudgetExhausted,
    DataError,
    MissingExtra,
    PlanMismatch,
    QueryError,
    SameRows,
)
from afresh.guard.guard import Guard
from afresh.guard.open import open as open_guard
from afresh.mechanisms.registry import PROMISING
from afresh.planning.choose import plan
from afresh.results.answer import Answer
from afresh.results.show import with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS, FEATURES = 10_000, 994
KEPT = (1, 51, 101, 151, 201, 301)  # odd, so that a vote has no ties
CUSTOMERS, CUSTOMERS_SEED, CUSTOMER_QUESTIONS = 100_000, 2019, 100
LEDGER = "ledger.sqlite"
# Plans are drawn for this many questions to the customers' rows.
QUESTIONS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
NAIVE, GUARDED, GREY = "#c8452f", "#2a78c4", "#7a7a7a"
PROMISES = (GUARDED, "#62a8e5", "#c98a1b", "#45a37b", "#8a5fbf")  # for the methods that promise widths, in turn


def run(folder: Path, talk: TextIO) -> dict[str, Any]:
    """Tell the story on `talk`, write data and picture into `folder`, return the figures.

    Data and questions are the same in every run, and the ledger is kept: a second run gets the recorded answers, free.

    Args:
        folder: Where data, ledger and picture go; made if there is none.
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

    start = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    ledger = folder / LEDGER
    features, label = _coins(np.random.default_rng(2018))
    columns = {"label": label, **{f"f{j}": features[:, j] for j in range(FEATURES)}}
    holdout = _own(folder / "holdout.parquet", columns)

    say(
        "1. A holdout that knows nothing",
        f"   {ROWS:,} rows, {FEATURES} features, labels by coin toss: no model is right more than half of the time.",
        "   An analyst scores every feature on the holdout, keeps the best, lets them vote, and scores the",
        "   vote there too, with the usual 95% interval.",
        "",
    )
    naive = _naive_analyst(features, label)
    usual = 1.96 * math.sqrt(0.25 / ROWS)
    for kept, score in naive.items():
        say(f"     {_voters(kept)}: accuracy {score:6.1%}  ± {usual:.1%}{_verdict(score - usual <= 0.5)}")
    say(
        "",
        "2. The same analyst, asking through a guard",
        "   Same data, same strategy; every number comes from guard.ask.",
    )
    with open_guard(holdout, questions=FEATURES + len(KEPT), ledger=ledger) as guard:
        before = guard.budget.spent
        guarded = _guarded_analyst(guard)
        if guard.budget.spent == before:
            say("   You ran this before. Same data, same questions: these are the recorded answers, free of charge.")
        say("")
        for kept, answer in guarded.items():
            holds = answer.low <= 0.5 <= answer.high
            interval = f"[{answer.low:.1%}, {answer.high:.1%}]"
            say(f"     {_voters(kept)}: accuracy {answer.value:6.1%}  {interval}{_verdict(holds)}")
        say(
            "",
            "   No vote is confirmed to be better than a coin: the false lead ends here.",
            f"   All {FEATURES + len(KEPT):,} intervals were promised at once, before the data were seen.",
            "   The budget is now spent:",
        )
        say(_indent(_refusal(guard, "f0 = label AND f1 = label")))

    rng = np.random.default_rng(CUSTOMERS_SEED)
    customers = _own(folder / "customers.parquet", _customers(CUSTOMERS, rng))
    truth = _truth(rng)
    say(
        "",
        "3. Real questions to a real-looking table",
        f"   {CUSTOMERS:,} customers in a Parquet file, read by DuckDB; a plan for {CUSTOMER_QUESTIONS} questions.",
        "",
    )
    with open_guard(customers, questions=CUSTOMER_QUESTIONS, ledger=ledger) as guard:
        answers = [guard.ask(**question) for question in REAL_QUESTIONS]
        say(_indent(str(answers[0])), "", "   This question and three more, with the truth, which only the demo knows:")
        for answer, true in zip(answers, truth, strict=True):
            value, low, high = with_interval(answer.value, answer.low, answer.high)
            asked = answer.question + (f"  where {answer.where}" if answer.where else "")
            say(f"     {asked:<30}  {value:>6}  {f'[{low}, {high}]':<16}  truth {true:.3g}")
        say(
            "",
            _effect(new=answers[2], old=answers[3]),
            "",
            "   The first question in other words is the same question, and free:",
        )
        again = guard.ask("tenure < 3   and   churned")
        say(_indent(f"{again!r}, charged {again.charged}"), "")
        say(
            "   A question about more than one row is refused, free of charge:",
            _indent(_refusal(guard, "amount > avg(amount)")),
            "",
        )
        say(_indent(str(guard.budget)), "")

    picture = folder / "afresh.png"
    _draw(picture, naive, guarded, usual)
    seconds = time.monotonic() - start
    say(f"4. The picture is {picture}; the data and the ledger are in the same folder. ({seconds:.0f} s)")
    say(*_next_steps(ledger))
    return {
        "naive": {str(kept): score for kept, score in naive.items()},
        "guarded": {str(kept): answer.to_dict() for kept, answer in guarded.items()},
        "truth": 0.5,
        "real": [answer.to_dict() | {"truth": true} for answer, true in zip(answers, truth, strict=True)],
        "picture": str(picture),
        "seconds": seconds,
    }


def _coins(rng: np.random.Generator) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Features and labels that have nothing to do with each other."""
    sides = np.array([-1, 1], dtype=np.int8)
    return rng.choice(sides, size=(ROWS, FEATURES)), rng.choice(sides, size=ROWS)


def _naive_analyst(features: NDArray[np.int8], label: NDArray[np.int8]) -> dict[int, float]:
    """Scores, selects and scores again, all on the same rows."""
    scores = (features == label[:, None]).mean(axis=0)
    best = np.argsort(-np.abs(scores - 0.5))
    result = {}
    for kept in KEPT:
        votes = features[:, best[:kept]].astype(np.int64) @ np.sign(scores[best[:kept]] - 0.5)
        result[kept] = float((np.sign(votes) == label).mean())
    return result


def _guarded_analyst(guard: Guard) -> dict[int, Answer]:
    """The same strategy on answers of the guard."""
    scores = np.array([answer.value for answer in guard.ask_many(f"f{j} = label" for j in range(FEATURES))])
    best = np.argsort(-np.abs(scores - 0.5))
    result = {}
    for kept in KEPT:
        votes = _sum([f"f{j}" if scores[j] > 0.5 else f"-f{j}" for j in best[:kept]])
        result[kept] = guard.ask(f"label * {votes} > 0")
    return result


def _sum(terms: list[str]) -> str:
    """A balanced sum: an expression may be long, but not deep."""
    if len(terms) == 1:
        return f"({terms[0]})"
    middle = len(terms) // 2
    return f"({_sum(terms[:middle])} + {_sum(terms[middle:])})"


REAL_QUESTIONS: tuple[dict[str, Any], ...] = (
    {"expression": "churned AND tenure < 3"},
    {"expression": "amount", "bounds": (0, 250), "where": "country = 'DE'"},
    {"expression": "churned", "where": "tenure < 12"},
    {"expression": "churned", "where": "tenure >= 24"},
)


def _customers(n: int, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """A table with structure: who leaves depends on how long they stayed and how often they called."""
    tenure = rng.geometric(0.04, n) - 1
    calls = rng.poisson(1.2, n)
    churned = rng.random(n) < 1 / (1 + np.exp(1.8 + 0.04 * tenure - 0.45 * calls))
    country = rng.choice(np.array(["AT", "CH", "DE", "FR"]), n, p=[0.1, 0.15, 0.45, 0.3])
    amount = np.round(rng.gamma(2.0, np.where(country == "CH", 70.0, 45.0)), 2)
    return {"tenure": tenure, "support_calls": calls, "churned": churned, "country": country, "amount": amount}


def _truth(rng: np.random.Generator) -> list[float]:
    """The true answers to the questions, from ten million more customers."""
    sums = np.zeros((len(REAL_QUESTIONS), 2))
    for _ in range(10):
        c = _customers(1_000_000, rng)
        for i, (value, group) in enumerate(
            (
                (c["churned"] & (c["tenure"] < 3), np.ones(1)),
                (np.clip(c["amount"], 0, 250) * (c["country"] == "DE"), c["country"] == "DE"),
                (c["churned"] & (c["tenure"] < 12), c["tenure"] < 12),
                (c["churned"] & (c["tenure"] >= 24), c["tenure"] >= 24),
            )
        ):
            sums[i] += value.mean(), group.mean()
    return [float(value / group) for value, group in sums]


def _effect(new: Answer, old: Answer) -> str:
    """What the last two questions decide: their intervals hold at once, so it is enough to compare them."""
    points = 100 * (new.low - old.high)
    if points > 0:
        return (
            "   A real effect: the last two intervals hold at once and do not overlap. The share of new customers who\n"
            f"   leave is higher than that of customers of two years or more, by at least {points:.1f} points."
        )
    return "   The last two intervals overlap: whether new customers leave more often cannot be told."


def _own(path: Path, columns: dict[str, NDArray[Any]]) -> Path:
    """The demo's file at `path`: written if there is none, kept if it is there, and never anybody else's."""
    import duckdb

    with duckdb.connect() as connection:
        name = str(path).replace("'", "''")
        if not path.exists():
            part = path.with_suffix(".part")  # an interrupted run leaves no half of a file under the real name
            connection.register("made", columns)
            connection.execute(f"COPY made TO '{name.removesuffix(path.suffix)}.part' (FORMAT parquet)")
            part.replace(path)
            return path
        try:
            found = connection.execute(f"SELECT * FROM read_parquet('{name}')").fetchnumpy()
        except duckdb.Error:
            found = {}
    if list(found) != list(columns) or not all(np.array_equal(found[c], columns[c]) for c in columns):
        raise DataError(
            f"{path} is not the file this demo makes; move it away, or give the demo a folder of its own: "
            "afresh demo --out FOLDER"
        )
    return path


def _next_steps(ledger: Path) -> list[str]:
    """What to type after the demo."""
    steps = [
        ("afresh plan --rows 20000 --questions 100", "what your rows can promise"),
        ('afresh ask yours.parquet "age < 30"', "your own file: Parquet, CSV or DuckDB"),
    ]
    environment = Path(sys.executable).parent / "activate"
    if environment.exists() and os.environ.get("VIRTUAL_ENV") != sys.prefix:
        steps.insert(0, (f". {os.path.relpath(environment)}", "so that this shell finds afresh"))
    return [
        "",
        "   Next:",
        *(f"     {command:<42}  # {why}" for command, why in steps),
        "",
        "   README.md and docs/ ask more about these customers. For that, go on with the demo's ledger and its budget",
        "   (your own data are better kept in a ledger of your own, so leave this out for them):",
        f"     export AFRESH_LEDGER={shlex.quote(str(ledger.absolute()))}",
    ]


def _refusal(guard: Guard, question: str) -> str:
    try:
        return repr(guard.ask(question))
    except (BudgetExhausted, QueryError) as error:
        return textwrap.fill(f"{type(error).__name__}: {error}", 100)


def _voters(kept: int) -> str:
    return f"{kept:3d} feature{'s vote' if kept > 1 else ' votes'}".ljust(17)


def _verdict(holds: bool) -> str:
    return "   holds the truth, 50%" if holds else "   MISSES the truth, 50%"


def _indent(text: str) -> str:
    return textwrap.indent(text, "     ")


def _draw(path: Path, naive: dict[int, float], guarded: dict[int, Answer], usual: float) -> None:
    from matplotlib.figure import Figure  # without pyplot: no window, no global state

    figure = Figure(figsize=(12, 4.8), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_story(left, naive, guarded, usual)
    _draw_plans(right)
    figure.savefig(path)


def _draw_story(axes: Axes, naive: dict[int, float], guarded: dict[int, Answer], usual: float) -> None:
    kept = np.array(list(naive))
    axes.axhline(50, color="black", linestyle="--", linewidth=1)
    axes.text(250, 50.6, "truth", ha="center", va="bottom", fontsize=11)
    axes.errorbar(
        kept - 2.5, [100 * s for s in naive.values()], yerr=100 * usual, color=NAIVE, marker="o", capsize=3,
        label="holdout reused, usual 95% interval",
    )  # fmt: skip
    values = np.array([[a.value, a.value - a.low, a.high - a.value] for a in guarded.values()]) * 100
    axes.errorbar(
        kept + 2.5, values[:, 0], yerr=values[:, 1:].T, color=GUARDED, marker="s", linestyle="none", capsize=3,
        label="through afresh, 95% for all answers at once",
    )  # fmt: skip
    axes.set_title("An analyst selects features on noise", fontsize=13)
    axes.set_xlabel("features that vote, best first", fontsize=12)
    axes.set_ylabel("claimed accuracy, %", fontsize=12)
    axes.set_xlim(-15, KEPT[-1] + 25)
    axes.set_ylim(25, 90)
    axes.legend(loc="upper left", fontsize=11, frameon=False)
    _tidy(axes)


def _draw_plans(axes: Axes) -> None:
    styles = {
        "paper": ("paper's eq. (3)", GREY, ":"),
        "jung": ("Jung et al. 2020", GREY, "-."),
        **{name: (f"afresh: {name}", color, "-") for name, color in zip(PROMISING, cycle(PROMISES), strict=False)},
        "fixed": ("questions fixed in advance", GREY, "--"),
    }
    plans = [plan(CUSTOMERS, k).methods for k in QUESTIONS]
    for name, (label, color, line) in styles.items():
        points = [(k, p[name].half_width) for k, p in zip(QUESTIONS, plans, strict=True)]
        shown = [(k, widths[0.5]) for k, widths in points if widths is not None and widths[0.5] < 0.5]
        axes.plot(*zip(*shown, strict=True), color=color, linestyle=line, label=label, linewidth=2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(0.0025, 6)
    axes.set_yticks([0.003, 0.01, 0.03, 0.1, 0.3], ["±0.003", "±0.01", "±0.03", "±0.1", "±0.3"])
    axes.set_yticks([], minor=True)
    axes.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1,000", "10,000"])
    axes.set_title(f"What {CUSTOMERS:,} rows can promise at 95%", fontsize=13)
    axes.set_xlabel("questions, each chosen after the last answer", fontsize=12)
    axes.set_ylabel("guaranteed half-width, share near 1/2", fontsize=12)
    axes.legend(loc="upper left", fontsize=10, frameon=False, ncols=2)
    _tidy(axes)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=11)
    axes.grid(alpha=0.2)
