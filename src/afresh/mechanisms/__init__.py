"""The mechanisms a guard can run, one file each: a charge per answer, a release from moments, an interval from it.

`registry` names them all, `base` is the interface a guard needs, and `parts` are traits that several share.
"""
