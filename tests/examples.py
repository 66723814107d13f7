"""How many examples Hypothesis tries: each test says a multiple of one setting, AFRESH_EXAMPLES (tests/conftest.py)."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def count(times: float) -> int:
    """So many times the setting, but at least one."""
    return max(1, round(times * settings().max_examples))


def examples(times: float, **more: Any) -> settings:
    """A test's settings: so many times the usual number of examples."""
    return settings(max_examples=count(times), **more)
