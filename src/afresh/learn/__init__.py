"""Models fitted through a guard: gradients are vector questions, and the loss of the result is certified.

    model = afresh.learn.LogisticRegression(bounds=(-3, 3)).fit(X, y)
    model.predict(X_new)
    model.certificate_                            # its accuracy on new rows, with an interval that holds

A row reaches the model only through noisy means, so the same rows can show how good it is. It needs scikit-learn:
pip install 'afresh[sklearn]'.
"""

from afresh.errors import MissingExtra

try:
    import sklearn  # noqa: F401
except ImportError:
    raise MissingExtra("scikit-learn", "sklearn") from None

from afresh.learn.linear import LinearRegression
from afresh.learn.logistic import LogisticRegression

__all__ = ["LinearRegression", "LogisticRegression"]
