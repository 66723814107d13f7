"""The way in and out (sign in with a token, sign out), and the files that pages load."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from afresh.errors import AfreshError, NotAllowed, NotFound
from afresh.server.pages import forms
from afresh.server.pages.frame import PageRoute, assets, desk_of, redirect, render
from afresh.server.pages.sessions import COOKIE, Sessions, check_form, form_key, new_cookie

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/sign-in")
async def form(request: Request, next: Annotated[str, Query(max_length=2000)] = "/") -> Response:
    """The form for a token."""
    return _form(request, _ours(next))


def _form(request: Request, where: str, error: AfreshError | None = None) -> Response:
    cookie = request.cookies.get(COOKIE) or new_cookie()
    status = 200 if error is None else error.status
    found = render(request, "sign_in.html", status=status, form_key=form_key(cookie), next=where, error=error)
    if COOKIE not in request.cookies:
        _keep(request, found, cookie, 3600)
    return found


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Present a token, and get a cookie for it."""
    given, cookie, desk = await forms.fields(request), request.cookies.get(COOKIE, ""), desk_of(request)
    where, token = _ours(given.get("next", "/")), given.get("token", "").strip()
    try:
        check_form(cookie, given.get("form_key"))
        if not token:
            raise NotAllowed("enter your token in the field; the steward gives you one.")
        caller = await desk.presented(token)
        made, seconds = await desk.asking.read(lambda: Sessions(desk.house).start(caller, cookie))
    except AfreshError as error:
        request.state.code = error.code
        return _form(request, where, error)
    found = redirect(where)
    _keep(request, found, made, seconds)
    return found


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End the session."""
    desk = desk_of(request)
    await forms.sent(request)
    await desk.asking.read(lambda: Sessions(desk.house).end(request.cookies.get(COOKIE, "")))
    found = redirect("/sign-in")
    found.delete_cookie(COOKIE, path="/")
    return found


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """The stylesheet, the script, the icon."""
    if name not in assets():
        raise NotFound(f"there is no {name!r}.")
    content, media, _ = assets()[name]
    kept = {"Cache-Control": "public, max-age=31536000, immutable", "Cross-Origin-Resource-Policy": "same-origin"}
    return Response(content, headers=kept, media_type=media)


def _ours(where: str) -> str:
    """A path of this service, and of no other."""
    plain = where.startswith("/") and not where.startswith(("//", "/\\")) and where.isprintable() and "\\" not in where
    return where if plain else "/"


def _keep(request: Request, response: Response, cookie: str, seconds: int) -> None:
    """Set the cookie; for https only, if the browser, or the proxy in front, uses https."""
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").lower() == "https"
    response.set_cookie(COOKIE, cookie, max_age=seconds, path="/", secure=secure, httponly=True, samesite="lax")
