"""Candidates run by the steward's evaluator, out of sight of whoever made them: an agent sees verdicts only."""
