"""Pages for people, at `/`: rendered by the server, with one stylesheet and one script, and nothing from elsewhere.

`sessions` knows the visitor, `frame` renders and refuses, `forms` reads what was typed; `datasets`, `models`, `boards`,
`steward`, `verify` and `live` are the doors. What they show comes from `results`, as in a notebook.
"""
