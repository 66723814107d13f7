"""The guard: a dataset behind a desk, and how it is opened.

`open` combines data, a plan and a ledger into a `guard`. `desk` is the one path from questions to recorded answers,
with `evaluate` (moments of either kind of question) and `noise` behind it. `scope` says what answers are about;
`outside` charges for what was revealed elsewhere.
"""
