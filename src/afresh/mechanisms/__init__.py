"""One file a mechanism that a guard can run: a charge per answer, a released number from moments, an interval from it.

What they share is in `base` (what a guard needs of one) and `parts` (common traits).
"""
