"""Pure functions, one per result; no I/O, no state, no randomness. See docs/guarantees.md for the contract.

What mechanisms and plans use is here; what only follows the paper is in `paper`.
"""
