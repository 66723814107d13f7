"""All doors to pages."""

from __future__ import annotations

from afresh.server.pages import datasets, door, live, models, steward, verify

ROUTERS = [each.router for each in (door, datasets, models, steward, verify, live)]
"""For the application, at `/`."""
