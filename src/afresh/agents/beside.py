"""`afresh mcp`: tools next to the agent, over stdin and stdout, for a service elsewhere or in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from afresh.agents.tools import Tools, make_server
from afresh.client.connection import check_url, find_token

if TYPE_CHECKING:
    from afresh.server.config import Config

_SECONDS = 600.0


async def serve_address(url: str, cap: int | None) -> None:
    """Run tools for a service, with the token found on this machine."""
    headers, base = {"Authorization": f"Bearer {find_token()}"}, check_url(url)

    def client(_: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=base, headers=headers, timeout=_SECONDS)

    await make_server(Tools(client, cap, local=True)).run_stdio_async()


async def serve_config(config: Config, analyst: str, cap: int | None) -> None:
    """Run tools for what a configuration describes, opened in this process."""
    async with _inside(config, analyst) as client:
        await make_server(Tools(client, cap, local=True)).run_stdio_async()


@asynccontextmanager
async def _inside(config: Config, analyst: str) -> AsyncIterator[Any]:
    """A service without a network, and a token that ends with it."""
    from afresh.server.app import make_app
    from afresh.server.store import store_of
    from afresh.server.tokens import Tokens

    app = make_app(config)
    app.state.quiet = True  # its only client is this process, whose stderr the agent's user reads
    async with app.router.lifespan_context(app):
        store = store_of(config.state, config.ledger)
        tokens = Tokens(store)
        token = tokens.new(analyst, days=7)
        headers = {"Authorization": f"Bearer {token}"}
        try:
            yield lambda _: httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://inside", headers=headers, timeout=_SECONDS
            )
        finally:
            tokens.revoke(str(tokens.find(token).id))
            store.close()
