"""Evaluations: items with per-item scores, of which some are open and the others confirm.

`afresh.evaluation` opens one, `read` reads result files of other tools, and a gate lets only real improvements pass.
"""

from afresh.evaluations.reading import read
from afresh.evaluations.results import Results

__all__ = ["Results", "read"]
