"""`python -m afresh.cli` is the program."""

from afresh.cli import main

main()
