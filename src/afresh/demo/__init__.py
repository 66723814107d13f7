"""`afresh demo`: the story in a minute, on real flights. A false lead is refused, something real is found."""

from afresh.demo.story import run

__all__ = ["run"]
