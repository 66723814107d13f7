"""All doors to pages."""

from __future__ import annotations

from afresh.server.pages import boards, datasets, door, evaluations, live, models, steward, verify

ROUTERS = [each.router for each in (door, datasets, models, boards, evaluations, steward, verify, live)]
"""The application includes these, at `/`."""
