"""Models on guarded labels: holdouts, predictions, and whether one model is better than another.

`holdout` is the public class, `open` makes one. `labels` and `predictions` are arrays, `hidden` runs models on features
that nobody may see, `vectors` are questions given as one number per row. `compare` asks, `paired` reads a difference
from what was released, and `verdicts` holds the results.
"""
