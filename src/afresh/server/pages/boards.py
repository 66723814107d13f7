"""The pages of boards: places with honest ties, public if the steward allows it, and a form to enter predictions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response

from afresh.errors import AfreshError, InvalidArgument, NotAllowed, NotFound
from afresh.results import charts, show
from afresh.server import boards as doors
from afresh.server.house import require
from afresh.server.pages import forms
from afresh.server.pages.frame import HEADERS, PageRoute, desk_of, is_part, redirect, render, visitor
from afresh.server.pages.models import dropped

if TYPE_CHECKING:
    from collections.abc import Callable

    from afresh.boards.board import Board
    from afresh.boards.table import BoardTable, Standing
    from afresh.server.app import Desk
    from afresh.server.house import Posted
    from afresh.server.pages.sessions import Visitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_PAGE = 100  # entries


async def _anybody(request: Request) -> Visitor | None:
    """The visitor, if one has signed in."""
    try:
        return await visitor(request)
    except NotAllowed:
        return None


async def _posted(request: Request, name: str) -> tuple[Desk, Posted, Visitor | None]:
    desk, who = desk_of(request), await _anybody(request)
    posted = desk.house.boards.get(name)
    if who is None and not (posted is not None and posted.settings.public):
        raise NotAllowed("sign in first.")
    return desk, doors.find(desk.house, name, None if who is None else who.caller), who


@router.get("/boards")
async def boards(request: Request) -> Response:
    """The boards the visitor may see."""
    desk, who = desk_of(request), await _anybody(request)
    seen = [
        posted.describe()
        for posted in desk.house.boards.values()
        if posted.settings.public or (who is not None and who.caller.sees(posted.settings.holdout))
    ]
    if who is None and not seen:
        raise NotAllowed("sign in first.")
    return render(request, "boards.html", who, boards=seen)


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the table."""

    of: Standing
    value: str
    interval: str
    bar: list[show.Block]
    tier: str | None
    """The heading above the first line of a tier."""
    range: str
    """The places it may have, drawn."""


def _places(table: BoardTable, scale: tuple[float, float]) -> list[Place]:
    found: list[Place] = []
    for each in table.entries:
        value = interval = ""
        bar: list[show.Block] = []
        if each.value is not None and each.low is not None and each.high is not None:
            value, low, high = show.with_interval(each.value, each.low, each.high)
            interval = f"{low} to {high}"
            bar = [show.Bar(each.value, each.low, each.high, scale, strong=each.best)]
        tier = None
        if not found or found[-1].of.tier != each.tier:
            leads = "the best" if table.decided else "may be the best"
            tier = f"Tier {each.tier}" + (f": {leads}" if each.best else "")
        drawn = "" if each.places is None else charts.places(*each.places, table.placed, strong=each.best)
        found.append(Place(each, value, interval, bar, tier, drawn))
    return found


_known: dict[str, tuple[Any, tuple[float, float]]] = {}  # for each board, what took reading all of its entries


def _scale(name: str, table: BoardTable) -> tuple[float, float]:
    """The scale of a table: read once for every state of a long board."""
    if name not in _known or _known[name][0] is not table.entries:
        _known[name] = table.entries, table.scale
    return _known[name][1]


@router.get("/boards/{name}")
async def board(
    request: Request,
    name: str,
    page: Annotated[int, Query(ge=1, le=10**7)] = 1,
    round: Annotated[int | None, Query(ge=1, le=10**6)] = None,
) -> Response:
    """The table, one page at a time."""
    desk, posted, who = await _posted(request, name)
    return await _show(request, desk, posted, who, page, round)


async def _show(
    request: Request,
    desk: Desk,
    posted: Posted,
    who: Visitor | None,
    page: int = 1,
    round: int | None = None,
    error: AfreshError | None = None,
    **came: Any,
) -> Response:
    """Show the board's page, perhaps with the outcome of an entry."""
    name = posted.settings.name

    def look() -> dict[str, Any]:
        table = posted.board.table(round)
        scale, count = _scale(name, table), len(table.entries)
        pages = max(-(-count // _PAGE), 1)
        here = min(page, pages)
        shown = table.page((here - 1) * _PAGE, _PAGE)
        return {
            "table": shown,
            "count": count,
            "places": _places(shown, scale),
            "scale": scale,
            "page": here,
            "pages": pages,
            "state": f"{count}-{table.separated}-{table.sealed}-{len(table.others)}",
        }

    values = await desk.asking.read(look)
    given = "" if round is None else f"round={round}&"
    sees = who is not None and who.caller.sees(posted.settings.holdout)
    enters = sees and who is not None and who.caller.may("analyst")
    steward = sees and who is not None and who.caller.may("steward")
    final = steward and posted.board.holdout.guard.plan.exam is not None and not values["table"].final
    template = "table.html" if is_part(request) else "board.html"
    values |= {"board": posted.describe(), "address": _address(name), "given": given, "enters": enters}
    values |= {"reveals": steward and bool(values["table"].sealed), "finals": final, "error": error}
    values |= {"answered": [], "said": None, **came}
    return render(request, template, who, status=200 if error is None else error.status, **values)


def _address(name: str) -> str:
    return f"/boards/{quote(name, '')}"


@router.get("/boards/{name}/table.{form}")
async def export(request: Request, name: str, form: str) -> Response:
    """The whole table, to download."""
    desk, posted, _ = await _posted(request, name)
    if form not in ("csv", "json"):
        raise NotFound(f"the table is available as csv or json, not as {form}.")
    table = await desk.asking.read(posted.board.table)
    content = table.to_csv() if form == "csv" else json.dumps(table.to_dict())
    keep = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return Response(
        content, headers={**HEADERS, **keep}, media_type="text/csv" if form == "csv" else "application/json"
    )


@router.post("/boards/{name}/submit")
async def submit(request: Request, name: str) -> Response:
    """Enter the predictions of one model."""
    who, fields, file, body = await forms.sent_file(request)
    desk = desk_of(request)
    posted = doors.find(desk.house, name, who.caller)
    served = desk.house.find(posted.settings.holdout, who.caller)
    require(who.caller, "analyst")
    try:
        given = await dropped(desk, served, who.caller, file, body)
        if len(given.models) != 1:
            raise InvalidArgument(f"the file has predictions of {len(given.models)} models; enter one at a time.")
        entry, rules = fields.get("title", "").strip()[:200] or file.rpartition(".")[0], posted.board.rules
        found = await desk.asking.ask(
            served,
            who.caller,
            ["page board", name, given.digest, entry],
            lambda: posted.board.submit(entry, given.models[0], entrant=who.caller.name),
            lambda: 1 + 2 * rules.against,
            lambda found: int(found.charged),
        )
    except AfreshError as error:
        if is_part(request):
            raise
        return await _show(request, desk, posted, who, error=error)
    if is_part(request):
        return render(request, "answers.html", who, answered=[found], said=None)
    return await _show(request, desk, posted, who, answered=[found])


@router.post("/boards/{name}/reveal")
async def reveal(request: Request, name: str) -> Response:
    """End the round. For stewards."""
    return await _steward(request, name, "reveal", lambda board: board.reveal)


@router.post("/boards/{name}/final")
async def final(request: Request, name: str) -> Response:
    """Hold the final among all entries that may be the best, once. For stewards."""
    return await _steward(request, name, "final", lambda board: board.final)


async def _steward(request: Request, name: str, what: str, door: Callable[[Board], Callable[[], Any]]) -> Response:
    who, _ = await forms.sent(request)
    desk = desk_of(request)
    posted = doors.find(desk.house, name, who.caller)
    served = desk.house.find(posted.settings.holdout, who.caller)
    require(who.caller, "steward")
    try:
        await desk.asking.ask(served, who.caller, [what, name], door(posted.board), lambda: 0, lambda found: 0)
    except AfreshError as error:
        return await _show(request, desk, posted, who, error=error)
    return redirect(_address(name))
