"""Slow, independent implementations of shared/design/guarantees.md, for tests to compare against."""
