"""Mechanisms that only the lab runs, for comparison: no guard offers them.

Some have a certificate and are wider than a guard's mechanism for any rows and questions (`fixed_gaussian`,
`fixed_laplace`, `calibrated_laplace`), one is no narrower (`calibrated_guesses`), and the others have no certificate.
`fixed`, `laplace` and `leaderboard` hold what two of a kind share.
"""
