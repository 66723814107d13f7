"""The command line: parse, call, print. Results go to stdout, messages to stderr."""

from afresh.cli.app import main

__all__ = ["main"]
