"""The client of a service: guards and holdouts with the faces people know, on a desk that lives elsewhere.

It needs the extra `client`. `connection` sends and repeats requests, `guard` and `holdout` are the faces.
"""
