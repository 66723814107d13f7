"""The story in a minute: what adaptivity does to a holdout, and what a guard does about it."""

from __future__ import annotations

import math
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from afresh import guard as guards
from afresh import opening
from afresh.answer import Answer
from afresh.errors import BudgetExhausted, MissingExtra, QueryError
from afresh.plan import plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS, FEATURES = 10_000, 994
KEPT = (1, 51, 101, 151, 201, 301)  # odd, so that a vote has no ties
CUSTOMERS = 100_000
# Plans are drawn for this many questions to the customers' rows.
QUESTIONS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
NAIVE, GUARDED, GREY = "#c8452f", "#2a78c4", "#7a7a7a"


def run(folder: Path, talk: TextIO) -> dict[str, Any]:
    """Tell the story on `talk`, write data and picture into `folder`, return the figures."""
    try:
        import matplotlib  # noqa: F401 - asked for now, not after half a minute
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None

    def say(*lines: str) -> None:
        print(*lines, sep="\n", file=talk, flush=True)

    start = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2018)
    features = rng.choice(np.array([-1, 1], dtype=np.int8), size=(ROWS, FEATURES))
    label = rng.choice(np.array([-1, 1], dtype=np.int8), size=ROWS)
    holdout = folder / "holdout.parquet"
    _write(holdout, {"label": label, **{f"f{j}": features[:, j] for j in range(FEATURES)}})
    ledger = folder / "ledger.sqlite"
    for old in folder.glob("ledger.sqlite*"):
        old.unlink()  # the demo's own ledger: every run tells the story from the start

    say(
        "1. A holdout that knows nothing",
        f"   {ROWS:,} rows, {FEATURES} features, labels by coin toss: no model is right more than half of the time.",
        "   An analyst scores every feature on the holdout, keeps the best, lets them vote, and scores the",
        "   vote there too. The usual 95 % interval goes with it.",
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
        "",
    )
    with opening.open(holdout, questions=FEATURES + len(KEPT), ledger=ledger) as guard:
        guarded = _guarded_analyst(guard)
        for kept, answer in guarded.items():
            holds = answer.low <= 0.5 <= answer.high
            interval = f"[{answer.low:.1%}, {answer.high:.1%}]"
            say(f"     {_voters(kept)}: accuracy {answer.value:6.1%}  {interval}{_verdict(holds)}")
        say(
            "",
            f"   All {FEATURES + len(KEPT):,} intervals were promised at once, before the data were seen.",
            "   The budget is now spent:",
        )
        say(_indent(_refusal(guard, "f0 = label AND f1 = label")))

    say(
        "",
        "3. Real questions to a real-looking table",
        f"   {CUSTOMERS:,} customers in a Parquet file, read by DuckDB.",
        "",
    )
    customers, truth = _customers(folder / "customers.parquet", rng)
    with opening.open(customers, questions=1000, ledger=ledger) as guard:
        answers = [guard.ask(**question) for question in REAL_QUESTIONS]
        inside = 0
        for answer, true in zip(answers, truth, strict=True):
            inside += answer.low <= true <= answer.high
            say(_indent(str(answer)), f"     the truth, which only the demo knows: {true:.4g}", "")
        again = guard.ask("tenure < 3   and   churned")
        say(
            "   The first question in other words is the same question:",
            _indent(repr(again) + ", charged " + str(again.charged)),
            "",
        )
        say(
            "   A question about more than one row is refused, free of charge:",
            _indent(_refusal(guard, "amount > avg(amount)")),
            "",
        )
        say(_indent(str(guard.budget)), "")

    picture = folder / "afresh.png"
    _draw(picture, naive, guarded, usual)
    seconds = time.monotonic() - start
    say(f"4. The picture is {picture}, the data and the ledger are beside it. ({seconds:.0f} s)")
    return {
        "naive": {str(kept): score for kept, score in naive.items()},
        "guarded": {str(kept): answer.to_dict() for kept, answer in guarded.items()},
        "truth": 0.5,
        "real": [answer.to_dict() | {"truth": true} for answer, true in zip(answers, truth, strict=True)],
        "picture": str(picture),
        "seconds": seconds,
    }


def _naive_analyst(features: NDArray[np.int8], label: NDArray[np.int8]) -> dict[int, float]:
    """Scores, selects and scores again, all on the same rows."""
    scores = (features == label[:, None]).mean(axis=0)
    best = np.argsort(-np.abs(scores - 0.5))
    result = {}
    for kept in KEPT:
        votes = features[:, best[:kept]].astype(np.int64) @ np.sign(scores[best[:kept]] - 0.5)
        result[kept] = float((np.sign(votes) == label).mean())
    return result


def _guarded_analyst(guard: guards.Guard) -> dict[int, Answer]:
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
    {"expression": "amount", "bounds": (0, 500), "where": "country = 'CH'"},
    {"expression": "churned", "where": "support_calls >= 2"},
)


def _customers(path: Path, rng: np.random.Generator) -> tuple[Path, list[float]]:
    """A table with structure, and the true answers to the questions (from ten million more customers)."""

    def draw(n: int) -> dict[str, NDArray[Any]]:
        tenure = rng.geometric(0.04, n) - 1
        calls = rng.poisson(1.2, n)
        churned = rng.random(n) < 1 / (1 + np.exp(1.8 + 0.04 * tenure - 0.45 * calls))
        country = rng.choice(np.array(["AT", "CH", "DE", "FR"]), n, p=[0.1, 0.15, 0.45, 0.3])
        amount = np.round(rng.gamma(2.0, np.where(country == "CH", 70.0, 45.0)), 2)
        return {
            "tenure": tenure,
            "support_calls": calls,
            "churned": churned,
            "country": country,
            "amount": amount,
        }

    _write(path, draw(CUSTOMERS))
    sums = np.zeros((3, 2))
    for _ in range(10):
        c = draw(1_000_000)
        for i, (value, group) in enumerate(
            (
                (c["churned"] & (c["tenure"] < 3), np.ones(1)),
                (np.clip(c["amount"], 0, 500) * (c["country"] == "CH"), c["country"] == "CH"),
                (c["churned"] & (c["support_calls"] >= 2), c["support_calls"] >= 2),
            )
        ):
            sums[i] += value.mean(), group.mean()
    return path, [float(value / group) for value, group in sums]


def _write(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("made", columns)
        connection.execute(f"COPY made TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")


def _refusal(guard: guards.Guard, question: str) -> str:
    try:
        return repr(guard.ask(question))
    except (BudgetExhausted, QueryError) as error:
        return textwrap.fill(f"{type(error).__name__}: {error}", 100)


def _voters(kept: int) -> str:
    return f"{kept:3d} feature{'s vote' if kept > 1 else ' votes'}".ljust(17)


def _verdict(holds: bool) -> str:
    return "   holds the truth, 50 %" if holds else "   MISSES the truth, 50 %"


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
        label="holdout reused, usual 95 % interval",
    )  # fmt: skip
    values = np.array([[a.value, a.value - a.low, a.high - a.value] for a in guarded.values()]) * 100
    axes.errorbar(
        kept + 2.5, values[:, 0], yerr=values[:, 1:].T, color=GUARDED, marker="s", linestyle="none", capsize=3,
        label="through afresh, 95 % for all answers at once",
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
        "split": ("fresh rows per question", "#c98a1b", "-"),
        "calibrated": ("afresh: calibrated", "#62a8e5", "-"),
        "stabilized": ("afresh: stabilized", GUARDED, "-"),
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
    axes.set_title(f"What {CUSTOMERS:,} rows can promise at 95 %", fontsize=13)
    axes.set_xlabel("questions, each chosen after the last answer", fontsize=12)
    axes.set_ylabel("guaranteed half-width, share near 1/2", fontsize=12)
    axes.legend(loc="upper left", fontsize=10, frameon=False, ncols=2)
    _tidy(axes)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=11)
    axes.grid(alpha=0.2)
