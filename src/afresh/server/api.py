"""The doors to datasets. Each reads a request, asks the guard in the caller's name, and shows the answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from afresh.errors import Forbidden, InvalidArgument, TooLarge
from afresh.guard.opened import hand_out, places_of
from afresh.mechanisms.registry import AT_ONCE
from afresh.results.fitted import Task
from afresh.results.transcript import Transcript
from afresh.server.bodies import BodyRoute, Claim, Detected, Fit, Measured, Priced, Question, Questions
from afresh.server.house import Judged, Served, require
from afresh.server.repeats import Again
from afresh.server.schemas import ByName, gives, shows, tells
from afresh.server.tags import tagged
from afresh.server.tokens import Caller
from afresh.wire.arguments import OF_ROWS, to_argument, to_statistic
from afresh.wire.results import to_json
from afresh.wire.tables import FORMATS, to_file

if TYPE_CHECKING:
    from afresh.server.app import Desk

router = APIRouter(tags=["datasets"], route_class=BodyRoute)
_LISTED = {"name": "customers", "kind": "dataset", "description": "Customers of a shop, 2025", "rows": 20000}
_COLUMN = {"type": "number", "description": "What a customer paid", "unit": "CHF", "bounds": None, "categories": None}
_PLAN = {"rows": 20000, "questions": 200, "confidence": 0.95, "method": AT_ONCE, "in_words": "200 questions ..."}
_DESCRIBED = {**_LISTED, "columns": ByName(amount=_COLUMN), "plan": _PLAN, "simulated": False, "download": True}
_DESCRIBED["frozen"] = None


async def enter(request: Request, name: str, role: str) -> tuple[Desk, Served, Caller]:
    """Find the desk, the dataset and the caller, or refuse."""
    desk: Desk = request.app.state.desk
    caller = await desk.caller(request)
    served = desk.house.find(name, caller)
    require(caller, role)
    return desk, served, caller


@router.get("/me", responses=tells({"name": "ann", "role": "analyst", "datasets": ["customers"], "cap": None}))
async def me(request: Request) -> Response:
    """The analyst this token belongs to."""
    caller = await request.app.state.desk.caller(request)
    told = {"name": caller.name, "role": caller.role, "datasets": list(caller.datasets), "cap": caller.cap}
    return JSONResponse(told)


@router.get("/datasets", responses=tells({"datasets": [_LISTED]}))
async def datasets(request: Request) -> Response:
    """The datasets this token gives access to."""
    desk: Desk = request.app.state.desk
    caller = await desk.caller(request)
    seen = [served for name, served in desk.house.served.items() if caller.sees(name)]
    told = [
        {
            "name": served.name,
            "kind": "dataset" if served.holdout is None else "holdout",
            "description": served.settings.description,
            "rows": served.guard.rows,
        }
        for served in seen
    ]
    return JSONResponse({"datasets": told})


@router.get("/datasets/{name}", responses=tells(_DESCRIBED))
async def describe(request: Request, name: str) -> Response:
    """Columns with the data dictionary, rows, and the plan."""
    desk, served, _ = await enter(request, name, "viewer")

    def look() -> bytes:
        return json.dumps({**served.describe(), "frozen": desk.house.freezer.why(name)}).encode()

    return tagged(request, await desk.asking.read(look), "application/json")


@router.post("/datasets/{name}/price", responses=shows("Price"))
async def price(request: Request, name: str, body: Priced) -> Response:
    """Whether a question can be asked, what it would cost, and the half-width to expect. Free."""
    desk, served, caller = await enter(request, name, "analyst")
    guard, schema = served.guard.for_analyst(caller.name), served.guard.desk.schema
    if (body.question is None) == (body.statistic is None):
        raise InvalidArgument("give exactly one of question and statistic.")
    expected: dict[str, Any] = body.model_dump(include={"mean", "share", "exam", "deviation"})

    def look() -> Response:
        if body.question is None:
            return JSONResponse(to_json(guard.price(filled_statistic(served, body.statistic), **expected)))
        question = served.dictionary.fill_question(body.question.given(), schema)
        return JSONResponse(to_json(guard.price(**question, **expected)))

    return await desk.asking.estimate(caller, look)


@router.post("/datasets/{name}/ask", responses=shows("Answer"))
async def ask(request: Request, name: str, body: Question) -> Response:
    """Answer one question. The same question again is free."""
    desk, served, caller = await enter(request, name, "analyst")
    found = await answers(desk, served, caller, [body.given()])
    if not isinstance(found, Again):
        return JSONResponse(to_json(found[0]))
    if found.text is None:
        found.text = _as_json(to_json(found[0])).encode()
    return Response(found.text, media_type="application/json")


_as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode  # as JSONResponse does


@router.post("/datasets/{name}/ask_many", responses=shows("Answer", listed="answers"))
async def ask_many(request: Request, name: str, body: Questions) -> Response:
    """Answer several questions together: all are charged, or none. With rounds, they form one round."""
    desk, served, caller = await enter(request, name, "analyst")
    check_batch(desk, len(body.questions))
    questions = [{"expression": each} if isinstance(each, str) else each.given() for each in body.questions]
    found = await answers(desk, served, caller, questions, body.rows)
    return await _shown(desk, caller, questions, found)


@router.post("/datasets/{name}/exam", responses=shows("Answer", listed="answers"))
async def exam(request: Request, name: str, body: Questions) -> Response:
    """Take the exam, once: a few final questions, answered exactly. Costs no answers."""
    desk, served, caller = await enter(request, name, "analyst")
    check_batch(desk, len(body.questions))
    questions = [{"expression": each} if isinstance(each, str) else each.given() for each in body.questions]
    found = await examined(desk, served, caller, questions)
    return await _shown(desk, caller, questions, found)


async def _shown(desk: Desk, caller: Caller, questions: Sequence[dict[str, Any]], found: Sequence[Any]) -> Response:
    return await desk.asking.think(
        caller, questions, lambda: JSONResponse({"answers": [to_json(each) for each in found]})
    )


async def examined(desk: Desk, served: Served, caller: Caller, questions: Sequence[dict[str, Any]]) -> Any:
    """Take the exam in the caller's name."""
    guard, schema = served.guard.for_analyst(caller.name), served.guard.desk.schema
    filled = await desk.asking.think(
        caller, questions, lambda: [served.dictionary.fill_question(each, schema) for each in questions]
    )
    return await desk.asking.ask(
        served, caller, ["exam", questions], lambda: guard.exam(filled), lambda: 0, lambda found: 0
    )


async def answers(
    desk: Desk, served: Served, caller: Caller, questions: Sequence[dict[str, Any]], rows: int | None = None
) -> list[Any]:
    """Ask a guard several questions together in the caller's name. Repeats are returned at once."""
    question = ["ask", questions, rows]
    if (known := await desk.asking.repeat(served, caller, question)) is not None:
        return known
    guard, schema = served.guard.for_analyst(caller.name), served.guard.desk.schema

    def read() -> tuple[list[dict[str, Any]], list[Any]]:
        filled = [served.dictionary.fill_question(each, schema) for each in questions]
        return filled, guard.checked(filled)

    filled, asked = await desk.asking.think(caller, questions, read)
    inner = guard.desk

    def work() -> list[Any]:
        found = guard.ask_checked(asked, rows)
        if inner.plan.mechanism.batch is not None:
            desk.house.rounds.keep(served.name, filled)
        return found

    def alone() -> Awaitable[list[Any]]:
        return desk.asking.ask(
            served,
            caller,
            question,
            work,
            lambda: len(inner.ledger.unpaid(inner.terms, inner.questions(inner.arranged(asked)))),
            lambda found: sum(each.charged for each in found),
        )

    return await (alone() if rows is not None else desk.asking.answer(served, caller, question, asked, alone))


@router.post("/datasets/{name}/measure", responses=shows("Answer", "Measures"))
async def measure(request: Request, name: str, body: Measured) -> Response:
    """A quantile, a variance, a histogram, ... from several answers."""
    desk, served, caller = await enter(request, name, "analyst")
    return JSONResponse(to_json(await measured(desk, served, caller, body.statistic)))


async def measured(desk: Desk, served: Served, caller: Caller, document: dict[str, Any]) -> Any:
    """Ask for a statistic in the caller's name."""
    guard, schema = served.guard.for_analyst(caller.name), served.guard.desk.schema
    statistic = await desk.asking.think(caller, document, lambda: filled_statistic(served, document))
    check_batch(desk, statistic.price)

    def work() -> Any:
        found = guard.measure(statistic)
        if guard.desk.plan.mechanism.batch is not None:
            desk.house.rounds.keep(served.name, to_argument(statistic))
        return found

    return await desk.asking.ask(
        served,
        caller,
        ["measure", document],
        work,
        lambda: statistic.cost(schema),
        lambda found: found.charged,
    )


def filled_statistic(served: Served, document: Any) -> Any:
    """Read a statistic from a document and fill it in from the data dictionary."""
    return to_statistic(served.dictionary.fill_statistic(document, served.guard.desk.schema), OF_ROWS)


@router.post("/datasets/{name}/fit", responses=shows("Fitted"))
async def fit(request: Request, name: str, body: Fit) -> Response:
    """Fit a model: one answer per step where the method releases vectors, and one for its certificate."""
    desk, served, caller = await enter(request, name, "analyst")
    check_batch(desk, body.steps + 1)
    guard, given = served.guard.for_analyst(caller.name), body.given()
    task = Task(**{**given, "features": tuple(body.features)})
    most = (body.steps * (len(body.features) + 1)) + 1
    found = await desk.asking.ask(
        served, caller, ["fit", given], lambda: guard.fit(task), lambda: most, lambda found: found.charged
    )
    return JSONResponse(to_json(found))


@router.post("/datasets/{name}/claim", responses=shows("Claimed"))
async def claim(request: Request, name: str, body: Claim) -> Response:
    """Whether a mean certainly lies between two ends: pass or fail, and nothing else."""
    desk, served, caller = await enter(request, name, "analyst")
    return JSONResponse(to_json(await claimed(desk, served, caller, body)))


async def claimed(desk: Desk, served: Served, caller: Caller, body: Claim) -> Any:
    """Ask in the caller's name whether a claim passes."""
    guard = served.guard.for_analyst(caller.name)
    given = await desk.asking.think(caller, body.given(), lambda: claim_of(served, body))
    return await desk.asking.ask(
        served, caller, ["claim", given], lambda: guard.claim(**given), lambda: 1, lambda found: found.charged
    )


@router.post("/datasets/{name}/detects", responses=tells({"detects": 0.031}))
async def detects(request: Request, name: str, body: Detected) -> Response:
    """How far inside its ends the truth must lie for a claim to pass. Free."""
    desk, served, caller = await enter(request, name, "analyst")
    guard = served.guard.for_analyst(caller.name)
    found = await desk.asking.estimate(caller, lambda: guard.detects(**claim_of(served, body)))
    return JSONResponse({"detects": found})


def claim_of(served: Served, body: Claim) -> dict[str, Any]:
    """The arguments of `Guard.claim`, completed from the data dictionary."""
    given = served.dictionary.fill_question(body.given(), served.guard.desk.schema)
    return {**given, "between": tuple(body.between) if isinstance(body.between, list) else body.between}


Form = Annotated[str, Query(alias="format", pattern="^(parquet|csv|arrow)$")]


@router.get("/datasets/{name}/open_rows", responses=gives(*FORMATS.values()), response_class=Response)
async def open_rows(request: Request, name: str, form: Form = "parquet") -> Response:
    """The open rows, if the dataset was opened with any. The first call fixes the plan."""
    desk, served, caller = await enter(request, name, "analyst")

    def make() -> tuple[Any, Any]:
        table, span = hand_out(served.guard.desk, caller.name)
        return table, places_of(served.guard.desk, span)

    return await handed_out(request, desk, served, form, make)


async def handed_out(
    request: Request, desk: Desk, served: Served, form: str, make: Callable[[], tuple[Any, Any]]
) -> Response:
    """A table and the positions of its rows, as a file response."""
    return tagged(request, await desk.asking.read(lambda: written(served, form, make)), FORMATS[form])


def written(served: Served, form: str, make: Callable[[], tuple[Any, Any]]) -> bytes:
    """The same as bytes; raises `Forbidden` if the steward does not hand it out."""
    if not served.settings.download:
        raise Forbidden(f"the steward does not hand out rows of {served.name} here.")
    table, places = make()
    return to_file(table, form, places)


@router.get("/datasets/{name}/budget", responses=shows("Budget"))
async def budget(request: Request, name: str) -> Response:
    """What was spent, what is left for the caller, and how accurate a further answer will be."""
    desk, served, caller = await enter(request, name, "viewer")
    guard = served.guard.for_analyst(caller.name)
    return JSONResponse(to_json(await desk.asking.read(lambda: guard.budget)))


After = Annotated[int, Query(ge=0, le=2**53, description="How many records to skip.")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="How many to show.")]


@router.get("/datasets/{name}/transcript", responses=shows("Transcript"))
async def transcript(request: Request, name: str, after: After = 0, limit: Limit = 1000) -> Response:
    """Everything that was released, in order, one page at a time: `next` is the `after` of the next page."""
    desk, served, _ = await enter(request, name, "viewer")
    return await released(request, desk, served, after, limit)


async def released(request: Request, desk: Desk, served: Served | Judged, after: int, limit: int) -> Response:
    """One page of a transcript, as a response."""

    def look() -> bytes:
        records, total = served.history.part(after, limit)
        plan, terms = served.guard.plan, served.guard.desk.terms
        page = to_json(Transcript(tuple(records), plan.confidence, terms.simulated))
        page.pop("questions")
        more = after + limit if after + limit < total else None
        return json.dumps({**page, "total": total, "next": more}).encode()

    return tagged(request, await desk.asking.read(look), "application/json")


RECEIPT = tells({"chain": {"head": "5f2b..."}})
"""The response types of a receipt's door."""


@router.get("/datasets/{name}/receipt", responses=RECEIPT)
async def receipt(request: Request, name: str) -> Response:
    """Everything that was released, as a document for `afresh verify`; its ETag is the head of the chain."""
    desk, served, _ = await enter(request, name, "viewer")
    return await vouched(request, desk, served)


async def vouched(request: Request, desk: Desk, served: Served | Judged) -> Response:
    """A receipt as a response, with its ETag."""

    def make() -> Response:
        head, document = served.history.receipt()
        return tagged(request, json.dumps(document).encode(), "application/json", head)

    return await desk.asking.read(make)


def check_batch(desk: Desk, count: int) -> None:
    """Refuse more questions than the service answers at once."""
    most = desk.config.limits.batch
    if count > most:
        raise TooLarge(
            f"this takes {count:,} answers, but a request may ask for at most {most:,}; split it. Nothing was charged."
        )
