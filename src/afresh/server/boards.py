"""The doors to boards: predictions come in, tables go out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from afresh.errors import InvalidArgument, NotAllowed, NotFound
from afresh.server.bodies import PREDICTIONS
from afresh.server.house import require
from afresh.server.predictions import Submission, read_submission
from afresh.server.schemas import gives, shows, tells
from afresh.wire.results import to_json

if TYPE_CHECKING:
    from afresh.boards.board import Board
    from afresh.boards.table import BoardTable
    from afresh.server.app import Desk
    from afresh.server.house import House, Posted, Served
    from afresh.server.tokens import Caller

router = APIRouter(tags=["boards"])
_RULES = {"reveal": "at once", "against": 10, "limit": None, "per": None, "every": None}
_BOARD = {"name": "spring", "holdout": "churn", "description": "Who leaves?", "public": True, "loss": None}
_BOARD |= {"rules": _RULES, "words": "Every entry is compared ..."}
_PAGE = 1000  # entries in one response, unless fewer are asked for


def find(house: House, name: str, caller: Caller | None) -> Posted:
    """Find a board, if it exists for the caller; without a token, only if its table is public."""
    found = house.boards.get(name)
    if found is None or not (found.settings.public or (caller is not None and caller.sees(found.settings.holdout))):
        raise NotFound(f"there is no board {name!r} for this token.")
    return found


async def _visitor(request: Request, name: str) -> tuple[Desk, Posted]:
    """The desk, and a board that the caller may look at."""
    desk: Desk = request.app.state.desk
    try:
        caller = await desk.caller(request)
    except NotAllowed:
        posted = desk.house.boards.get(name)
        if posted is None or not posted.settings.public:
            raise
        return desk, posted
    return desk, find(desk.house, name, caller)


async def _entrant(request: Request, name: str, role: str) -> tuple[Desk, Served, Caller, Board]:
    desk: Desk = request.app.state.desk
    caller = await desk.caller(request)
    posted = desk.house.boards.get(name)
    if posted is None or not caller.sees(posted.settings.holdout):
        raise NotFound(f"there is no board {name!r} for this token.")
    require(caller, role)
    return desk, desk.house.served[posted.settings.holdout], caller, posted.board


@router.get("/boards", responses=tells({"boards": [_BOARD]}))
async def boards(request: Request) -> Response:
    """The boards this token gives access to."""
    desk: Desk = request.app.state.desk
    caller = await desk.caller(request)
    seen = [each.describe() for each in desk.house.boards.values() if caller.sees(each.settings.holdout)]
    return JSONResponse({"boards": seen})


@router.get("/boards/{name}", responses=tells(_BOARD))
async def describe(request: Request, name: str) -> Response:
    """A board's rules."""
    _, posted = await _visitor(request, name)
    return JSONResponse(posted.describe())


@router.get("/boards/{name}/table", responses=shows("BoardTable"))
async def table(
    request: Request,
    name: str,
    first: Annotated[int, Query(ge=0, le=10**9)] = 0,
    count: Annotated[int, Query(ge=1, le=100_000)] = _PAGE,
    round: Annotated[int | None, Query(ge=1, le=10**6)] = None,
    format: Annotated[str, Query(pattern="^(json|csv)$")] = "json",
) -> Response:
    """The table, or some of its entries; CSV always has all of them."""
    desk, posted = await _visitor(request, name)
    found: BoardTable = await desk.asking.read(lambda: posted.board.table(round))
    if format == "csv":
        return Response(found.to_csv(), media_type="text/csv; charset=utf-8")
    return JSONResponse(to_json(found.page(first, count)))


@router.get("/boards/{name}/badge.svg", responses=gives("image/svg+xml"), response_class=Response)
async def badge(request: Request, name: str) -> Response:
    """A small picture to embed elsewhere."""
    desk, posted = await _visitor(request, name)
    shown = await desk.asking.read(lambda: posted.board.table().badge())
    return Response(shown, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})


@router.post("/boards/{name}/submit", responses=shows("Submitted"), openapi_extra=PREDICTIONS)
async def submit(request: Request, name: str) -> Response:
    """Enter the predictions of one model under its name."""
    desk, served, caller, board = await _entrant(request, name, "analyst")
    media, query = request.headers.get("content-type", ""), request.query_params

    def read(body: bytes) -> Submission:
        return read_submission(body, media, query, served.guard.rows, served.places, served.settings.id)

    given = await desk.asking.files.take(caller.name, request.body, read)
    if len(given.models) != 1 or given.names is None:
        raise InvalidArgument('an entry is the predictions of one model, with its name: {"predictions": {"name": []}}.')
    entry = given.names[0]

    def work() -> Any:
        return board.submit(entry, given.models[0], entrant=caller.name)

    price: Callable[[], int] = lambda: 1 + 2 * board.rules.against  # noqa: E731 - what `ask` takes
    found = await desk.asking.ask(
        served, caller, ["board", name, given.digest], work, price, lambda found: int(found.charged)
    )
    return JSONResponse(to_json(found))


@router.post("/boards/{name}/reveal", responses=shows("BoardTable"))
async def reveal(request: Request, name: str) -> Response:
    """End the round. For stewards."""
    desk, served, caller, board = await _entrant(request, name, "steward")
    found = await desk.asking.ask(served, caller, ["reveal", name], board.reveal, lambda: 0, lambda found: 0)
    return JSONResponse(to_json(found.page(0, _PAGE)))


@router.post("/boards/{name}/final", responses=shows("BoardTable"))
async def final(request: Request, name: str) -> Response:
    """Hold the final among all entries that may be the best. For stewards."""
    desk, served, caller, board = await _entrant(request, name, "steward")
    found = await desk.asking.ask(served, caller, ["final", name], board.final, lambda: 0, lambda found: 0)
    return JSONResponse(to_json(found.page(0, _PAGE)))
