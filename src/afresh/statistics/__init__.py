"""More than means, from the same budget: each statistic shows its price before it is measured.

    median = afresh.statistics.Quantile("amount", 0.5, bounds=(0, 500))
    median.price                                  # the most answers it costs
    guard.measure(median)                         # an answer with an interval that holds, like any other

All are functions of means. The intervals of the means hold at once, so an interval derived from them holds too, at no
extra cost. Statistics of a model's predictions are measured on a holdout:
`holdout.measure(afresh.statistics.Precision(), model)`.
"""

from afresh.statistics.base import Measures, Statistic
from afresh.statistics.of_rows import GroupMeans, Histogram
from afresh.statistics.quantile import Quantile
from afresh.statistics.scores import AUC, F1, CalibrationError, ModelStatistic, Precision, Recall
from afresh.statistics.spread import Correlation, Covariance, StandardDeviation, Variance
from afresh.statistics.vector import VectorMean

__all__ = [
    "AUC",
    "F1",
    "CalibrationError",
    "Correlation",
    "Covariance",
    "GroupMeans",
    "Histogram",
    "Measures",
    "ModelStatistic",
    "Precision",
    "Quantile",
    "Recall",
    "StandardDeviation",
    "Statistic",
    "Variance",
    "VectorMean",
]
