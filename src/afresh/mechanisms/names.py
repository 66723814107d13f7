"""The names of the methods that new plans can use, without importing them: `--help` must not wait for that.

`registry` defines what these names mean, and a test keeps the two in step.
"""

OFFERED = ("stabilized", "symmetrized", "settled", "calibrated", "rounds", "checked")
# Methods whose widths are expected, not guaranteed.
EXPECTED = ("checked",)
# Methods that check the analyst's own guess.
GUESSING = ("checked",)
# Methods that take claims, challenges and contests.
CLAIMING = ("checked",)
# Methods whose noise can follow a hint (`about=`).
HINTED = ("settled",)
