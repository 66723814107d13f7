"""The command line: parse, call, print. Results go to stdout, talk to stderr."""

import sys
from typing import NoReturn

from afresh import errors

try:
    import typer as _typer  # noqa: F401
except ImportError:  # said here, because the entry point exists without the extra

    def main() -> NoReturn:
        """Say what to install."""
        sys.exit(str(errors.MissingExtra("typer and rich", "cli")))

else:
    from afresh.cli.app import main

__all__ = ["main"]
