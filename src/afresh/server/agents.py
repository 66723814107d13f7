"""`/mcp`: the tools for agents, at the service. A request's token identifies the analyst, as at every door."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route

from afresh.checks import shown
from afresh.errors import Forbidden, InvalidArgument, MissingExtra
from afresh.server.problems import refusal

if TYPE_CHECKING:
    from fastapi import FastAPI

    from afresh.server.config import Config

PATH = "/mcp"
_HERE = ("127.0.0.1", "localhost", "[::1]")
_MISDIRECTED = 421


def mount(app: FastAPI, config: Config) -> Any:
    """Add the tools to an application; returns what must run alongside it. Without the SDK there are no tools."""
    try:
        import httpx

        from afresh.agents.tools import Tools, make_server
    except MissingExtra:
        return _nothing
    from mcp.server.transport_security import TransportSecuritySettings

    def client(ctx: Any) -> httpx.AsyncClient:
        given: Request = ctx.request_context.request
        headers = {"Authorization": given.headers.get("authorization", "")}
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://inside", headers=headers, timeout=None
        )

    server = make_server(Tools(client))
    ours = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the door below checks instead
    server.streamable_http_app(json_response=True, stateless_http=True, transport_security=ours)  # creates the manager
    manager = server.session_manager
    app.router.routes.append(Route(PATH, _Door(manager, config)))
    return manager.run


class _Door:
    """Admits requests with a token, at a name of the service: others may come from a page that made one up."""

    def __init__(self, manager: Any, config: Config) -> None:
        own = f"[{config.host}]" if ":" in config.host else config.host.lower()
        self._manager, self._hosts, self._origins = manager, {*_HERE, own, *config.hosts}, config.origins

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        await request.app.state.desk.caller(request)  # or a refusal, as at any door
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not self._is_ours(host):
            said = f"this service is not known as {shown(host)}; its steward can add the name to hosts in afresh.toml."
            await refusal(request, InvalidArgument(said), _MISDIRECTED)(scope, receive, send)
            return
        if origin not in (None, *self._origins) and not self._is_ours(str(origin).rpartition("//")[2]):
            raise Forbidden(f"pages of {shown(origin)} may not call this; its steward can add it to origins.")
        await self._manager.handle_request(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        return (name if colon and port.isdigit() else host).lower() in self._hosts


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield
