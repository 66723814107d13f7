"""One file a mechanism: a charge per answer, a released number from moments, an interval from that number.

What they share is in `base` and `session` (what a guard and the lab need of one), `parts` (common traits), `fixed`,
`laplace` and `leaderboard` (what two of a kind have in common).
"""
