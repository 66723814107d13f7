"""The test bench: mechanisms against analysts, on populations whose truth is known."""
