"""One file a mechanism that a guard can run: a charge per answer, a released number from moments, an interval from it.

`registry` names them all, `base` is what a guard needs of one, and `parts` are traits that several share.
"""
