"""Evaluations: items with per-item scores. Some items are open; the others confirm.

`afresh.evaluation` opens one, `read` reads other tools' result files, and a gate accepts improvements.
"""

from afresh.evaluations.reading import read
from afresh.evaluations.results import Results

__all__ = ["Results", "read"]
