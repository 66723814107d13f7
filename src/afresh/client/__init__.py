"""The client of a service: the same guards and holdouts, on a desk that lives elsewhere.

It needs the extra `client`. `connection` sends and repeats requests; `guard` and `holdout` are the public classes.
"""
