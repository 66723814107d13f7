"""The version, for whoever must state it without importing everything."""

__version__ = "0.1.0"
