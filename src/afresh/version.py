"""The version, for code that must state it without importing everything."""

__version__ = "0.1.0"
