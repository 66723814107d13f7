"""The application: its doors, who may enter, what is refused, and what is logged."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from afresh.errors import (
    AfreshError,
    InvalidArgument,
    MissingExtra,
    NotAllowed,
    NotFound,
    ServiceError,
    TimedOut,
    TooLarge,
)
from afresh.server.asking import Asking
from afresh.server.config import Config, read_config
from afresh.server.house import House
from afresh.server.metrics import MEDIA_TYPE as METRICS
from afresh.server.metrics import Metrics
from afresh.server.patience import patience_left
from afresh.server.problems import refusal
from afresh.server.schemas import components
from afresh.server.tokens import Caller
from afresh.version import __version__

try:
    from fastapi import FastAPI, Request, Response
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse, PlainTextResponse
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
except ImportError:
    raise MissingExtra("FastAPI and uvicorn", "server") from None

RECEIPTS = 20_000_000
"""The largest receipt, in bytes, that anyone may have checked; 10,000 answers take half of it."""
_UPLOADS = re.compile(r"/datasets/[^/]+/score|/boards/[^/]+/submit")
_STUDIES = re.compile(r"/v1/datasets/[^/]+/charge|/mcp")
_STUDY = 1_000_000  # bytes: the receipt of a study that a steward charges, or the candidate that an agent proposes
_SIGNING = 10_000  # bytes of a form with a token
_UNREAD = 65_536  # bytes of a refused body that are thrown away; with more to come, the connection is closed
_TURN = 0.001  # seconds a thread may compute before others get a turn: a short request needs several turns
_BODILESS = ("GET", "HEAD", "OPTIONS")
_FAILED = "the service failed; asking again is safe."
CONFIG = "AFRESH_SERVE"
"""The environment variable with the path of the configuration, for worker processes."""


class Desk:
    """What every door needs: the house, the limits, and the caller."""

    def __init__(self, config: Config) -> None:
        """Open everything the service serves."""
        self._provider = None
        if config.jwt is not None:
            from afresh.server.jwt import Provider

            self._provider = Provider(config.jwt)  # first: a mistake in it must leave nothing open
        self.config, self.house, self.metrics = config, House(config), Metrics()
        self.asking = Asking(self.house, self.metrics)

    async def caller(self, request: Request, size: int = 0) -> Caller:
        """Identify the caller by the request's token, once, and count the request against the token's rate."""
        known: Caller | None = getattr(request.state, "caller", None)
        if known is not None:
            return known
        given = request.headers.getlist("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != "bearer" or not token.strip():
            raise NotAllowed("send your token once, in the header Authorization: Bearer TOKEN.")
        request.state.caller = caller = self.counted(request, await self.presented(token.strip()), size)
        return caller

    async def presented(self, token: str) -> Caller:
        """The owner of a token, issued by this service or by the identity provider."""
        if self._provider is None or token.count(".") != 2:
            return await self.asking.caller(token)
        find = self._provider.find
        return await self.asking.look_up(lambda: find(token))

    def counted(self, request: Request, caller: Caller, size: int = 0) -> Caller:
        """Count one more request of this caller, with so many bytes of JSON, and return the caller."""
        request.state.who = caller.id or "jwt"
        self.asking.rates.count(caller.id or f"jwt {caller.name}", size)
        return caller

    def close(self) -> None:
        """Finish what has begun, and close everything."""
        self.asking.close()
        self.house.close()


def make_app(config: Config, desk: Desk | None = None) -> FastAPI:
    """Make the ASGI application for a configuration. It opens everything when it starts, unless it is given a desk."""
    from afresh.server import agents, api, boards, evaluations, models, steward
    from afresh.server.pages import doors, live

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.desk = Desk(config) if desk is None else desk
        gc.collect()
        gc.freeze()  # what exists now stays, so the collector need not scan it again and again
        usual = sys.getswitchinterval()
        sys.setswitchinterval(_TURN)
        app.state.watch = live.Watch(app.state.desk)
        undo = live.end_with_the_process(app.state.watch)
        async with tools():
            yield
        undo()
        app.state.desk.close()
        sys.setswitchinterval(usual)
        gc.unfreeze()

    app = Gated(
        config,
        title="afresh",
        version=__version__,
        description="Ask one dataset adaptively, and get error bars that hold. A question asked twice is free, so "
        "every request may be repeated.",
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.headers = config.limits.headers  # how long `Patient` waits for them
    for router in (api.router, models.router, boards.router, evaluations.router, steward.router):
        app.include_router(router, prefix="/v1")
    for router in doors.ROUTERS:
        app.include_router(router)
    tools = agents.mount(app, config)
    _describe(app)
    _answer_for_itself(app)
    _refuse(app)
    return app


class Gated(FastAPI):
    """The doors behind the gate. Only the CORS middleware comes before the gate."""

    def __init__(self, config: Config, **options: Any) -> None:
        """Make the application for a configuration."""
        super().__init__(**options)
        self._config = config

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Bypass FastAPI's own telemetry, which would report errors, and errors may quote rows."""
        await Starlette.__call__(self, scope, receive, send)

    def build_middleware_stack(self) -> Any:
        """Wrap everything FastAPI puts around doors, so a question need not go through it twice."""
        from starlette.middleware.cors import CORSMiddleware

        from afresh.server.lane import Lane

        gate = Gate(Lane(super().build_middleware_stack()), self._config)
        if not self._config.origins:
            return gate
        return CORSMiddleware(
            gate,  # type: ignore[arg-type]  # its messages are mappings
            allow_origins=self._config.origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["authorization", "content-type", "if-none-match"],
            expose_headers=["etag"],
        )


def _describe(app: FastAPI) -> None:
    """Complete the OpenAPI document with the schemas that responses refer to and the token that every door takes."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        parts = document.setdefault("components", {})
        parts["schemas"] = {**parts.get("schemas", {}), **components()}
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI recommends


def _answer_for_itself(app: FastAPI) -> None:
    @app.get("/health", include_in_schema=False)
    async def health() -> Response:
        """Whether the process is alive."""
        return JSONResponse({"status": "ok", "version": __version__})

    @app.get("/ready", include_in_schema=False)
    async def ready(request: Request) -> Response:
        """Whether it can answer: the ledger and the tables can be read."""
        desk: Desk = request.app.state.desk

        def look() -> None:
            desk.house.tokens.all()
            for served in desk.house.served.values():
                served.guard.desk.check_open()
                _ = served.guard.desk.left("")

        await desk.asking.read(look)
        return JSONResponse({"status": "ready"})

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        """Metrics for Prometheus; requires a token."""
        desk: Desk = request.app.state.desk
        await desk.caller(request)
        return PlainTextResponse(desk.metrics.text(), media_type=METRICS)


def _refuse(app: FastAPI) -> None:
    """Make every refusal a problem document with a code or, for a browser, a page."""
    from afresh.server.pages.frame import refused

    @app.exception_handler(AfreshError)
    async def ours(request: Request, error: AfreshError) -> Response:
        return refusal(request, error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return refusal(request, InvalidArgument(f"{_mistake(request, error.errors()[0])}. Nothing was charged."))

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> Response:
        return refusal(request, ServiceError(_FAILED))  # and the gate logs it

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        if isinstance(error.__cause__, AfreshError):  # raised while reading a body
            return refusal(request, error.__cause__)
        if error.status_code in (404, 405):
            if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1"):
                return await refused(request, NotFound(f"there is nothing at {request.url.path}."), error.status_code)
            said = f"there is nothing at {request.method} {request.url.path}; see /v1/openapi.json."
            return refusal(request, NotFound(said), error.status_code)
        return refusal(request, InvalidArgument("the body cannot be read as JSON in UTF-8."), error.status_code)


def _mistake(request: Request, error: Any) -> str:
    """What is wrong with a body, in our own words where pydantic's do not say what to do."""
    place, kind = ".".join(str(part) for part in error["loc"] if part != "body"), error["type"]
    if kind == "json_invalid":
        return f"the body cannot be read as JSON: {error['ctx']['error']} at character {error['loc'][-1]}"
    if not place and not request.headers.get("content-type", "").startswith("application/json"):
        return "send the body as JSON, with the header Content-Type: application/json"
    if kind == "extra_forbidden":
        return f"{place} is not known here; leave it out"
    return f"{place or 'the body'}: {error['msg']}"


_Message = dict[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class Gate:
    """Counts bytes as they come in, keeps answers out of caches, and writes one line for every request."""

    def __init__(self, app: Any, config: Config) -> None:
        """Stand before an application."""
        self._app, self._limits = app, config.limits

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, got = time.monotonic(), 0
        status: int | None = None
        scope["path"] = _path(scope)
        most = self._most(scope["path"])
        headers = {name.lower(): value for name, value in scope["headers"]}
        scope.setdefault("state", {})
        declared = headers.get(b"content-length", b"0")
        coming = sys.maxsize if b"transfer-encoding" in headers else int(declared) if declared.isdigit() else 0

        complete = False

        async def counted() -> _Message:
            nonlocal got, complete
            if complete:  # only the client's disconnection is left to receive
                return await receive()
            try:
                async with asyncio.timeout(patience_left(time.monotonic() - began, got, self._limits.seconds)):
                    message = await receive()
            except TimeoutError:
                raise TimedOut("the request body arrived too slowly; nothing was charged.") from None
            got += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if got > most:
                raise too_large(most)
            return message

        async def noted(message: _Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [(b"x-content-type-options", b"nosniff")]
                if not complete and coming > _UNREAD:  # the rest would be received, and thrown away
                    own.append((b"connection", b"close"))
                if not any(name == b"cache-control" for name, _ in message["headers"]):
                    own.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        try:
            if {b"content-length", b"transfer-encoding"} <= headers.keys():  # a proxy in front may use the other one
                both = InvalidArgument("send a Content-Length or chunks, not both.")
                await _answer(scope, receive, noted, both, 400, {"Connection": "close"})
            elif b"content-encoding" in headers:
                packed = InvalidArgument("send the body uncompressed, without a Content-Encoding.")
                await _answer(scope, receive, noted, packed, 415)
            elif declared.isdigit() and int(declared) > most:
                await _answer(scope, receive, noted, too_large(most))
            elif (refused := await self._identify(scope, min(coming, most))) is not None:
                await _answer(scope, receive, noted, refused)
            else:
                await self._app(scope, counted, noted)
        except Exception as unforeseen:  # its message, which a server would log, may quote a row
            log({"event": "error", "kind": type(unforeseen).__name__})
            if status is None:
                await _answer(scope, receive, noted, ServiceError(_FAILED))
        finally:
            self._write(scope, status or 500, time.monotonic() - began)

    async def _identify(self, scope: _Message, size: int) -> AfreshError | None:
        """Identify whoever sends a body to a door for programs, before any of it is read; pages do it themselves."""
        path: str = scope["path"]
        if scope["method"] in _BODILESS or not (path.startswith("/v1/") or path == "/mcp"):
            return None
        try:
            desk: Desk = scope["app"].state.desk
            await desk.caller(_request(scope), 0 if self._is_upload(path) else size)
        except AfreshError as error:
            return error
        return None

    def _most(self, path: str) -> int:
        """How many bytes a request may have."""
        if self._is_upload(path):
            return self._limits.predictions
        if path in ("/sign-in", "/sign-out"):
            return _SIGNING
        if _STUDIES.fullmatch(path):
            return max(self._limits.body, _STUDY)
        return RECEIPTS if path == "/verify" else self._limits.body

    def _is_upload(self, path: str) -> bool:
        """Whether a body is a file or predictions, which wait for their turn before they are read."""
        return path.startswith(("/v1/holdouts/", "/v1/boards/", "/v1/evaluations/")) or bool(_UPLOADS.fullmatch(path))

    def _write(self, scope: _Message, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        if scope["path"].startswith("/v1/") and not route.startswith("/v1/") and route != "other":
            route = f"/v1{route}"  # a later FastAPI leaves a router's prefix out of its routes
        if (app := scope.get("app")) is not None:
            app.state.desk.metrics.requested(route, status)
            if getattr(app.state, "quiet", False):
                return
        line = {"event": "request", "method": scope["method"], "route": route, "status": status}
        state = scope["state"]
        line |= {"token": state.get("who"), "code": state.get("code"), "seconds": round(seconds, 2)}
        log({key: value for key, value in line.items() if value is not None})


def _request(scope: _Message) -> Request:
    return Request(scope)


async def _answer(scope: _Message, receive: _Receive, send: _Send, error: AfreshError, *more: Any) -> None:
    await refusal(_request(scope), error, *more)(scope, receive, send)  # type: ignore[arg-type]


def _path(scope: _Message) -> str:
    """The path of a request, where a slash that is part of a name is still written %2F: it separates nothing."""
    raw: bytes | None = scope.get("raw_path")
    if raw is None or b"%2f" not in raw.lower():
        return str(scope["path"])
    return unquote(re.sub("%(?=2[fF])", "%25", raw.decode("ascii", "replace")))


def too_large(most: int) -> TooLarge:
    """The error for a body with more bytes than the service accepts."""
    return TooLarge(
        f"a body may have at most {most:,} bytes; send less, or fewer questions at once. Nothing was charged."
    )


def log(line: dict[str, Any]) -> None:
    """Log one JSON object per line to stderr: no rows, tokens, questions or unreleased numbers."""
    sys.stderr.write(f"{json.dumps({'at': round(time.time(), 3), **line})}\n")
    sys.stderr.flush()


def from_environment() -> FastAPI:
    """The application of a worker process."""
    return make_app(read_config(os.environ[CONFIG]))
