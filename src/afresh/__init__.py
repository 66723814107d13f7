"""Ask one dataset as many questions as you like, each chosen after seeing the last answer.

The error bars still hold: `plan` says what can be promised before any data are seen, `open` puts a `Guard`
before a dataset, and `Guard.ask` gives an `Answer`. `holdout` guards labels, to score and compare models by.
"""

from typing import TYPE_CHECKING, Any

from afresh import errors
from afresh.guard.guard import Guard
from afresh.guard.open import open
from afresh.models.holdout import Holdout
from afresh.models.open import holdout
from afresh.planning.plan import Plan, plan
from afresh.results.answer import Answer, Interval
from afresh.results.budget import Budget
from afresh.results.transcript import Transcript
from afresh.theory.information import correct_pvalue
from afresh.version import __version__

if TYPE_CHECKING:
    from afresh import losses, statistics

__all__ = [
    "Answer",
    "Budget",
    "Guard",
    "Holdout",
    "Interval",
    "Plan",
    "Transcript",
    "__version__",
    "correct_pvalue",
    "errors",
    "holdout",
    "losses",
    "open",
    "plan",
    "statistics",
]


def __getattr__(name: str) -> Any:
    """`afresh.losses` and `afresh.statistics` are imported when they are used, as many never use them."""
    if name in ("losses", "statistics"):
        from importlib import import_module

        return import_module(f"afresh.{name}")
    raise AttributeError(f"module 'afresh' has no attribute {name!r}")
