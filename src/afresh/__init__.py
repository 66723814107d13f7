"""Ask one dataset as many questions as you like, each chosen after seeing the last answer.

The error bars still hold: `plan` shows what can be promised before any data is seen, `open` puts a `Guard` in front
of a dataset, and `Guard.ask` gives an `Answer`. `holdout` guards labels, for scoring and comparing models;
`evaluation` guards items, for loops that edit, evaluate and keep improvements; `board` is a leaderboard with honest
ties.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from afresh.version import __version__

if TYPE_CHECKING:
    from afresh import boards, datasets, errors, evaluations, integrations, lab, losses, receipts, statistics
    from afresh.boards.board import Board
    from afresh.boards.open import board
    from afresh.client.connect import connect
    from afresh.engines.embedded.csv_file import CSV
    from afresh.evaluations.evaluation import Evaluation
    from afresh.evaluations.gate import Gate
    from afresh.evaluations.open import evaluation
    from afresh.guard.guard import Guard
    from afresh.guard.open import open
    from afresh.models.holdout import Holdout
    from afresh.models.open import holdout
    from afresh.planning.choose import plan
    from afresh.planning.plan import Plan
    from afresh.results.answer import Answer, Interval
    from afresh.results.budget import Budget
    from afresh.results.transcript import Transcript
    from afresh.theory.information import correct_pvalue

__all__ = [
    "CSV",
    "Answer",
    "Board",
    "Budget",
    "Evaluation",
    "Gate",
    "Guard",
    "Holdout",
    "Interval",
    "Plan",
    "Transcript",
    "__version__",
    "board",
    "boards",
    "connect",
    "correct_pvalue",
    "datasets",
    "errors",
    "evaluation",
    "evaluations",
    "holdout",
    "integrations",
    "lab",
    "losses",
    "open",
    "plan",
    "receipts",
    "statistics",
]


_ROOMS = (
    *("boards", "datasets", "errors", "evaluations", "integrations", "lab", "learn", "losses", "receipts"),
    "statistics",
)
_HOMES = {
    "board": "boards.open",
    "Board": "boards.board",
    "connect": "client.connect",
    "CSV": "engines.embedded.csv_file",
    "Answer": "results.answer",
    "Budget": "results.budget",
    "Evaluation": "evaluations.evaluation",
    "Gate": "evaluations.gate",
    "Guard": "guard.guard",
    "Holdout": "models.holdout",
    "Interval": "results.answer",
    "Plan": "planning.plan",
    "Transcript": "results.transcript",
    "correct_pvalue": "theory.information",
    "evaluation": "evaluations.open",
    "holdout": "models.open",
    "open": "guard.open",
    "plan": "planning.choose",
}


def __getattr__(name: str) -> Any:
    """Import names on first use, so that `import afresh`, and with it every command, starts fast."""
    if name in _ROOMS:
        return import_module(f"afresh.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'afresh' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"afresh.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    """All names, including those imported on first use, for exploration and completion."""
    return sorted({*globals(), *__all__})
