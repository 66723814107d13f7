"""Ask one dataset as many questions as you like, each chosen after seeing the last answer.

The error bars still hold: `plan` says what can be promised before any data are seen, `open` puts a `Guard`
before a dataset, and `Guard.ask` gives an `Answer`. `holdout` guards labels, to score and compare models by.
"""

from afresh import errors, losses, statistics
from afresh.answer import Answer, Budget, Interval, Transcript
from afresh.guard import Guard
from afresh.holdout import Holdout
from afresh.opening import open
from afresh.opening_holdout import holdout
from afresh.plan import Plan, plan
from afresh.theory.information import correct_pvalue

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "Budget",
    "Guard",
    "Holdout",
    "Interval",
    "Plan",
    "Transcript",
    "correct_pvalue",
    "errors",
    "holdout",
    "losses",
    "open",
    "plan",
    "statistics",
]
