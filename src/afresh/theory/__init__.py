"""Pure functions, one per result; no I/O, no state, no randomness. See docs/guarantees.md for the contract."""
