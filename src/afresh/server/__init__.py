"""`afresh serve`: guards in a process that analysts do not own. It needs the extra `server`.

`config` reads `afresh.toml`, `house` opens what it names, `tokens` decides who may ask. `app` assembles the doors:
`api` (datasets), `models` (holdouts) and `steward` read a request, ask the guard, and show what it says.
"""
