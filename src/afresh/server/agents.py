"""`/mcp`: the tools for agents, at the service. A request's token identifies the analyst, as at every door."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route

from afresh.errors import MissingExtra

if TYPE_CHECKING:
    from fastapi import FastAPI

PATH = "/mcp"


def mount(app: FastAPI) -> Any:
    """Add the tools to an application; returns what must run alongside it. Without the SDK there are no tools."""
    try:
        import httpx

        from afresh.agents.tools import Tools, make_server
    except MissingExtra:
        return _nothing

    def client(ctx: Any) -> httpx.AsyncClient:
        given: Request = ctx.request_context.request
        headers = {"Authorization": given.headers.get("authorization", "")}
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://inside", headers=headers, timeout=None
        )

    server = make_server(Tools(client))
    server.streamable_http_app(json_response=True, stateless_http=True)  # this creates the manager
    manager = server.session_manager
    app.router.routes.append(Route(PATH, _Door(manager)))
    return manager.run


class _Door:
    """Admits requests with a token."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        await request.app.state.desk.caller(request)  # or a refusal, as at any door
        await self._manager.handle_request(scope, receive, send)


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield
