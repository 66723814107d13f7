"""All doors to pages."""

from __future__ import annotations

from afresh.server.pages import boards, datasets, door, live, models, steward, verify

ROUTERS = [each.router for each in (door, datasets, models, boards, steward, verify, live)]
"""For the application, at `/`."""
