"""What the methods are called that new plans can be of, without importing them: help must not wait for that.

`registry` is what these names mean, and a test holds the two together.
"""

OFFERED = ("stabilized", "symmetrized", "settled", "calibrated", "rounds", "checked")
# Those whose widths are expected, and not promised.
EXPECTED = ("checked",)
# Those that check a guess of the analyst's own.
GUESSING = ("checked",)
# Those that take claims, challenges and contests.
CLAIMING = ("checked",)
# Those whose noise can follow a hint (`about=`).
HINTED = ("settled",)
