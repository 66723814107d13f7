"""Mechanisms that only the lab runs, to compare with: no guard offers them.

Some have a certificate and are wider than a guard's mechanism whatever the rows and questions (`fixed_gaussian`,
`fixed_laplace`, `calibrated_laplace`), one is no narrower (`calibrated_guesses`), the others have none. `fixed`,
`laplace` and `leaderboard` are what two of a kind share.
"""
