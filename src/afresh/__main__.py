"""`python -m afresh` runs the program even where its script is not on the path."""

from afresh.cli import main

main()
