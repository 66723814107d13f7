"""What all pages share: templates, headers, the visitor, and the look of a refusal."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Coroutine
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.routing import APIRoute

from afresh.errors import AfreshError, MissingExtra, NotAllowed
from afresh.escaping import visible
from afresh.results import charts, html, show
from afresh.server.pages.sessions import COOKIE, Sessions, Visitor
from afresh.version import __version__
from afresh.wire import problems

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError:
    raise MissingExtra("Jinja2", "server") from None

if TYPE_CHECKING:
    from afresh.server.app import Desk

PART = "x-afresh-part"
"""The header with which the script asks for part of a page, which it then puts in place."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_MEDIA = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@cache
def assets() -> dict[str, tuple[bytes, str, str]]:
    """The files that pages load, by name: content, media type, and a name for this content."""
    found = {}
    for each in sorted((files(__package__) / "static").iterdir(), key=lambda file: file.name):
        content = each.read_bytes()
        if each.name == "pages.css":
            content = html.STYLE.encode() + content
        digest = hashlib.sha256(content).hexdigest()
        found[each.name] = content, _MEDIA[each.name.rpartition(".")[2]], digest
    return found


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else visible(value),
    )
    made.globals |= {"asset": _asset, "version": __version__}
    made.filters |= {"drawn": drawn, "small": _small, "picture": _picture, "made": Markup, "moment": _moment}
    return made


def _asset(name: str) -> str:
    return f"/static/{name}?v={assets()[name][2]}"


def drawn(shown: Any) -> Markup:
    """A result, or blocks, as a notebook draws it."""
    blocks = shown.blocks() if isinstance(shown, show.Shown) else shown
    return Markup(html.part(blocks))  # it escapes everything that is not its own


def _moment(seconds: float | None) -> str:
    """A time in words; there may be none."""
    return "it is revoked" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


def _picture(forest: show.Forest) -> Markup:
    return Markup(charts.both(forest))


def _small(line: Any) -> Markup:
    """The interval of a line, for the cell of a table."""
    return Markup("".join(charts.small_bar(bar) for bar in line.bar))


def desk_of(request: Request) -> Desk:
    """What every door needs."""
    desk: Desk = request.app.state.desk
    return desk


async def visitor(request: Request) -> Visitor:
    """Identify the visitor, or raise `NotAllowed`; the request counts against the token's rate."""
    desk, cookie = desk_of(request), request.cookies.get(COOKIE, "")
    found = await desk.asking.read(lambda: Sessions(desk.house).find(cookie))
    desk.counted(request, found.caller)
    return found


def is_part(request: Request) -> bool:
    """Whether the script is asking for part of a page."""
    return PART in request.headers


def render(
    request: Request, template: str, who: Visitor | None = None, *, status: int = 200, **values: Any
) -> HTMLResponse:
    """Render a page, or part of one."""
    caller = None if who is None else who.caller
    house = desk_of(request).house
    shared = {
        "me": caller,
        "boards_are_served": bool(house.boards),
        "evaluations_are_served": bool(house.judges),
        "form_key": None if who is None else who.form_key,
        "here": request.url.path,
    }
    return HTMLResponse(_environment().get_template(template).render(shared | values), status, HEADERS)


def fragment(markup: str) -> HTMLResponse:
    """Part of a page, as our renderer made it."""
    return HTMLResponse(markup, headers=HEADERS)


def redirect(where: str) -> RedirectResponse:
    """Redirect to another of our pages, by GET."""
    return RedirectResponse(where, 303, HEADERS)


class PageRoute(APIRoute):
    """A door whose refusals are pages: a visitor who has not signed in is sent to do so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The door, with its refusals."""
        door = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await door(request)
            except AfreshError as error:
                request.state.code = error.code
                if is_part(request):  # it is no failure to the script, which shows it where it belongs
                    status = 401 if isinstance(error, NotAllowed) else 200
                    return JSONResponse(problems.to_problem(error), status, HEADERS)
                if isinstance(error, NotAllowed):
                    where = request.url.path if request.method == "GET" else "/"
                    return redirect(f"/sign-in?next={quote(where)}")
                return await refused(request, error)

        return handle


async def refused(request: Request, error: AfreshError, status: int | None = None) -> Response:
    """The page that shows the visitor a refusal."""
    try:
        who = await visitor(request)
    except AfreshError:
        who = None
    return render(request, "refused.html", who, status=status or error.status, error=error)
