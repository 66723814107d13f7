"""Ask one dataset as many questions as you like, each chosen after seeing the last answer.

The error bars still hold: `plan` says what can be promised before any data are seen, `open` puts a `Guard`
before a dataset, and `Guard.ask` gives an `Answer`. `holdout` guards labels, to score and compare models by;
`evaluation` guards items, for loops that edit, evaluate and keep what is better.
"""

from typing import TYPE_CHECKING, Any

from afresh import errors
from afresh.guard.guard import Guard
from afresh.guard.open import open
from afresh.planning.plan import Plan, plan
from afresh.results.answer import Answer, Interval
from afresh.results.budget import Budget
from afresh.results.transcript import Transcript
from afresh.theory.information import correct_pvalue
from afresh.version import __version__

if TYPE_CHECKING:
    from afresh import evaluations, integrations, lab, losses, receipts, statistics
    from afresh.evaluations.evaluation import Evaluation
    from afresh.evaluations.gate import Gate
    from afresh.evaluations.open import evaluation
    from afresh.models.holdout import Holdout
    from afresh.models.open import holdout

__all__ = [
    "Answer",
    "Budget",
    "Evaluation",
    "Gate",
    "Guard",
    "Holdout",
    "Interval",
    "Plan",
    "Transcript",
    "__version__",
    "correct_pvalue",
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


_ROOMS = ("evaluations", "integrations", "lab", "learn", "losses", "receipts", "statistics")
_FACES = {
    "Evaluation": "afresh.evaluations.evaluation",
    "Gate": "afresh.evaluations.gate",
    "Holdout": "afresh.models.holdout",
    "evaluation": "afresh.evaluations.open",
    "holdout": "afresh.models.open",
}


def __getattr__(name: str) -> Any:
    """Rooms that many never enter are imported when they are used, so that `import afresh` is fast."""
    from importlib import import_module

    if name in _ROOMS:
        return import_module(f"afresh.{name}")
    if name in _FACES:
        return getattr(import_module(_FACES[name]), name)
    raise AttributeError(f"module 'afresh' has no attribute {name!r}")


def __dir__() -> list[str]:
    """With the names that are imported when they are used, for those who look around or complete them."""
    return sorted({*globals(), *__all__})
