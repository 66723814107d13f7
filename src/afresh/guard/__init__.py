"""The guard: a dataset behind a desk, and how it is opened.

`open` puts data, a plan and a ledger together into a `guard`. `desk` is the one path from questions to recorded
answers, with `evaluate` (moments of either kind of question) and `noise` behind it. `scope` says what answers speak
of, `outside` charges what was revealed elsewhere.
"""
