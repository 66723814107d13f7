"""The steward's doors: shares, what was revealed elsewhere, freezing, tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from afresh.server.api import enter
from afresh.server.bodies import BodyRoute, Charge, Division, Freeze, NewToken
from afresh.server.house import require
from afresh.server.schemas import shows, tells
from afresh.server.tokens import check_datasets
from afresh.wire.results import to_json

if TYPE_CHECKING:
    from afresh.results.answer import Answer
    from afresh.server.app import Desk

router = APIRouter(tags=["steward"], route_class=BodyRoute)
_TOKEN = {"id": "5f2b9c01", "name": "ann", "role": "analyst", "datasets": ["customers"], "expires": None, "cap": None}


@router.post("/datasets/{name}/divide", responses=shows("Budget"))
async def divide(request: Request, name: str, body: Division) -> Response:
    """Divide the budget among named analysts; all others share the rest."""
    desk, served, caller = await enter(request, name, "steward")
    guard = served.guard.for_analyst(caller.name)
    return JSONResponse(to_json(await desk.asking.read(lambda: guard.divide(body.shares))))


@router.post("/datasets/{name}/charge", responses=shows("Budget"))
async def charge(request: Request, name: str, body: Charge) -> Response:
    """Record what was revealed about the rows elsewhere."""
    desk, served, caller = await enter(request, name, "steward")
    guard = served.guard.for_analyst(caller.name)
    return JSONResponse(to_json(await desk.asking.read(lambda: guard.charge(**body.given()))))


@router.post("/datasets/{name}/close_rounds", responses=shows("Answer", listed="answers"))
async def close_rounds(request: Request, name: str) -> Response:
    """Take the final look: answer everything asked so far once more, from all rows. It ends the rounds for everyone."""
    desk, served, caller = await enter(request, name, "steward")
    guard = served.guard.for_analyst(caller.name)

    def work() -> list[Answer]:
        desk.house.rounds.ask_again(name, guard)
        return guard.close_rounds()

    found = await desk.asking.ask(served, caller, ["close_rounds"], work, lambda: 0, lambda found: 0)
    return JSONResponse({"answers": [to_json(each) for each in found]})


@router.put("/datasets/{name}/freeze", responses=tells({"frozen": "the study has ended."}))
async def freeze(request: Request, name: str, body: Freeze) -> Response:
    """Answer nothing new until it is thawed, on all workers."""
    desk, served, _ = await enter(request, name, "steward")
    await desk.asking.read(lambda: desk.house.freezer.freeze(served.name, body.why))
    return JSONResponse({"frozen": body.why})


@router.delete("/datasets/{name}/freeze", responses=tells({"frozen": None}))
async def thaw(request: Request, name: str) -> Response:
    """Answer again."""
    desk, served, _ = await enter(request, name, "steward")
    await desk.asking.read(lambda: desk.house.freezer.thaw(served.name))
    return JSONResponse({"frozen": None})


async def _steward(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    require(await desk.caller(request), "steward")
    return desk


@router.get("/tokens", responses=tells({"tokens": [_TOKEN]}))
async def tokens(request: Request) -> Response:
    """All tokens, without their secrets."""
    desk = await _steward(request)
    return JSONResponse({"tokens": await desk.asking.read(desk.house.tokens.all)})


@router.post("/tokens", responses=tells({"token": "afresh_..."}))
async def new_token(request: Request, body: NewToken) -> Response:
    """Make a token, which is shown only once."""
    desk = await _steward(request)
    given: dict[str, Any] = body.given()
    check_datasets(body.datasets, [*desk.config.datasets, *desk.config.evaluations])
    return JSONResponse({"token": await desk.asking.read(lambda: desk.house.tokens.new(**given))})


@router.delete("/tokens/{which}", responses=tells({"revoked": ["5f2b9c01"]}))
async def revoke(request: Request, which: str) -> Response:
    """Revoke a token by its id, or all of an analyst's by name, with immediate effect on all workers."""
    desk = await _steward(request)
    return JSONResponse({"revoked": await desk.asking.read(lambda: desk.house.tokens.revoke(which))})
