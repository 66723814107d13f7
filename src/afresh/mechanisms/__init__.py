"""One file a mechanism that a guard can run: a charge per answer, a released number from moments, an interval from it.

What they share is in `base` and `session` (what a guard and the lab need of one), `parts` (common traits), `fixed` and
`laplace` (what two of a kind have in common).
"""
