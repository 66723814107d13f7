"""NumPy, imported on first use: a plan needs only plain numbers, and NumPy is slow to import.

Modules that may not need it write

    if TYPE_CHECKING:
        import numpy as np
    else:
        from afresh.lazy import np
"""

from importlib import import_module


class _Lazy:
    """A module whose attributes are fetched once each."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        found = getattr(import_module(self._name), attribute)
        setattr(self, attribute, found)
        return found


np = _Lazy("numpy")
