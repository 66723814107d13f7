"""What is closed when its block ends."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """A mixin of what has `close`."""

    def close(self) -> None:
        """Let go of what it holds; nothing is lost."""

    def __enter__(self) -> Self:
        """It is its own context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()
