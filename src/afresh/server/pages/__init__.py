"""Pages for people, at `/`: server-rendered, with one stylesheet and one script of our own, and nothing from elsewhere.

`sessions` knows who looks, `frame` renders and refuses, `forms` reads what was typed; `datasets`, `models`, `boards`,
`steward`, `verify` and `live` are the doors. What they show comes from `results`, as in a notebook.
"""
