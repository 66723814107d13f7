"""What the methods are called that new plans can be of, without importing them: help must not wait for that.

`registry` is what these names mean, and a test holds the two together.
"""

OFFERED = ("stabilized", "symmetrized", "settled", "calibrated", "rounds", "checked")
GUESSING = ("checked",)
HINTED = ("settled",)
