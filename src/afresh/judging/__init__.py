"""Run candidates with the steward's evaluator, out of sight of their authors: an agent sees only verdicts."""
