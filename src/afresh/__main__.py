"""`python -m afresh` is the program, also where its script is not on the path."""

from afresh.cli import main

main()
