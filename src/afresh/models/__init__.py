"""Models on guarded labels: holdouts, predictions, and whether one model is better than another.

`holdout` is the face, `open` makes one. `labels` and `predictions` are arrays, `hidden` runs models on features that
nobody may see, `vectors` are questions given as a number a row. `compare` asks, `paired` reads a difference from what
was released, `verdicts` is what it comes to.
"""
