"""The doors to datasets. Each reads a request, asks the guard in the caller's name, and shows what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from afresh.errors import InvalidArgument, TooLarge
from afresh.results.transcript import Transcript
from afresh.server.bodies import Claim, Detected, Measured, Priced, Question, Questions
from afresh.server.house import Served, require
from afresh.server.schemas import shows
from afresh.server.tokens import Caller
from afresh.wire.arguments import OF_ROWS, to_statistic
from afresh.wire.results import to_json

if TYPE_CHECKING:
    from afresh.server.app import Desk

router = APIRouter(tags=["datasets"])


async def enter(request: Request, name: str, role: str) -> tuple[Desk, Served, Caller]:
    """The desk, a dataset and who asks for it; or a refusal."""
    desk: Desk = request.app.state.desk
    caller = await desk.caller(request)
    served = desk.house.find(name, caller)
    require(caller, role)
    return desk, served, caller


@router.get("/me", responses=shows())
async def me(request: Request) -> Response:
    """Whom the token belongs to."""
    caller = await request.app.state.desk.caller(request)
    told = {"name": caller.name, "role": caller.role, "datasets": list(caller.datasets), "cap": caller.cap}
    return JSONResponse(told)


@router.get("/datasets", responses=shows())
async def datasets(request: Request) -> Response:
    """What there is for this token."""
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


@router.get("/datasets/{name}", responses=shows())
async def describe(request: Request, name: str) -> Response:
    """Columns with the data dictionary, rows, and the plan."""
    desk, served, _ = await enter(request, name, "viewer")

    def look() -> dict[str, Any]:
        return {**served.describe(), "frozen": desk.house.freezer.why(name)}

    return JSONResponse(await desk.asking.read(look))


@router.post("/datasets/{name}/price", responses=shows("Price"))
async def price(request: Request, name: str, body: Priced) -> Response:
    """Whether it can be asked, what it would cost, and the half-width to expect. Free."""
    desk, served, caller = await enter(request, name, "analyst")
    guard, schema = served.guard.for_analyst(caller.name), served.guard.desk.schema
    if (body.question is None) == (body.statistic is None):
        raise InvalidArgument("give exactly one of question and statistic.")
    if body.question is None:
        statistic = to_statistic(served.dictionary.fill_statistic(body.statistic, schema), OF_ROWS)
        return JSONResponse(to_json(await desk.asking.read(lambda: guard.price(statistic))))
    question = served.dictionary.fill_question(body.question.given(), schema)
    expected: dict[str, Any] = body.model_dump(include={"mean", "share", "exam", "deviation"})
    found = await desk.asking.read(lambda: guard.price(**question, **expected))
    return JSONResponse(to_json(found))


@router.post("/datasets/{name}/ask", responses=shows("Answer"))
async def ask(request: Request, name: str, body: Question) -> Response:
    """Answer one question. The same question again is free."""
    desk, served, caller = await enter(request, name, "analyst")
    (answer,) = await answers(desk, served, caller, [body.given()])
    return JSONResponse(to_json(answer))


@router.post("/datasets/{name}/ask_many", responses=shows("Answer", listed="answers"))
async def ask_many(request: Request, name: str, body: Questions) -> Response:
    """Answer several together: all are charged, or none. In rounds they are one round."""
    desk, served, caller = await enter(request, name, "analyst")
    check_batch(desk, len(body.questions))
    questions = [{"expression": each} if isinstance(each, str) else each.given() for each in body.questions]
    found = await answers(desk, served, caller, questions, body.rows)
    return JSONResponse({"answers": [to_json(each) for each in found]})


@router.post("/datasets/{name}/exam", responses=shows("Answer", listed="answers"))
async def exam(request: Request, name: str, body: Questions) -> Response:
    """Take the exam: a few final questions, answered exactly, once, at no answer of the budget."""
    desk, served, caller = await enter(request, name, "analyst")
    check_batch(desk, len(body.questions))
    guard, schema = served.guard.for_analyst(caller.name), served.guard.desk.schema
    questions = [{"expression": each} if isinstance(each, str) else each.given() for each in body.questions]
    filled = [served.dictionary.fill_question(each, schema) for each in questions]
    found = await desk.asking.ask(
        served, caller, ["exam", questions], lambda: guard.exam(filled), lambda: 0, lambda found: 0
    )
    return JSONResponse({"answers": [to_json(each) for each in found]})


async def answers(
    desk: Desk, served: Served, caller: Caller, questions: Sequence[dict[str, Any]], rows: int | None = None
) -> list[Any]:
    """What a guard says to some questions, asked together in the caller's name. Repeats leave at once."""
    question = ["ask", questions, rows]
    if (known := await desk.asking.repeat(served, caller, question)) is not None:
        return known
    guard, schema = served.guard.for_analyst(caller.name), served.guard.desk.schema
    asked, inner = guard.checked([served.dictionary.fill_question(each, schema) for each in questions]), guard.desk
    return await desk.asking.ask(
        served,
        caller,
        question,
        lambda: guard.ask_checked(asked, rows),
        lambda: len(inner.ledger.unpaid(inner.terms, inner.questions(map(inner.arranged, asked)))),
        lambda found: sum(each.charged for each in found),
    )


@router.post("/datasets/{name}/measure", responses=shows("Answer", "Measures"))
async def measure(request: Request, name: str, body: Measured) -> Response:
    """A quantile, a variance, a histogram, ... from several answers."""
    desk, served, caller = await enter(request, name, "analyst")
    guard, schema = served.guard.for_analyst(caller.name), served.guard.desk.schema
    statistic = to_statistic(served.dictionary.fill_statistic(body.statistic, schema), OF_ROWS)
    check_batch(desk, statistic.price)
    found = await desk.asking.ask(
        served,
        caller,
        ["measure", body.statistic],
        lambda: guard.measure(statistic),
        lambda: statistic.cost(schema),
        lambda found: found.charged,
    )
    return JSONResponse(to_json(found))


@router.post("/datasets/{name}/claim", responses=shows("Claimed"))
async def claim(request: Request, name: str, body: Claim) -> Response:
    """Whether a mean certainly lies between two ends: pass or fail, and nothing else."""
    desk, served, caller = await enter(request, name, "analyst")
    guard, given = served.guard.for_analyst(caller.name), _claimed(served, body)
    found = await desk.asking.ask(
        served, caller, ["claim", given], lambda: guard.claim(**given), lambda: 1, lambda found: found.charged
    )
    return JSONResponse(to_json(found))


@router.post("/datasets/{name}/detects", responses=shows())
async def detects(request: Request, name: str, body: Detected) -> Response:
    """How far inside its ends the truth must lie for a claim to pass. Free."""
    desk, served, caller = await enter(request, name, "analyst")
    guard, given = served.guard.for_analyst(caller.name), _claimed(served, body)
    return JSONResponse({"detects": await desk.asking.read(lambda: guard.detects(**given))})


def _claimed(served: Served, body: Claim) -> dict[str, Any]:
    return served.dictionary.fill_question(body.given(), served.guard.desk.schema)


@router.get("/datasets/{name}/budget", responses=shows("Budget"))
async def budget(request: Request, name: str) -> Response:
    """What was spent, what is left for the caller, and what a further answer is worth."""
    desk, served, caller = await enter(request, name, "viewer")
    guard = served.guard.for_analyst(caller.name)
    return JSONResponse(to_json(await desk.asking.read(lambda: guard.budget)))


@router.get("/datasets/{name}/transcript", responses=shows("Transcript"))
async def transcript(
    request: Request,
    name: str,
    after: Annotated[int, Query(ge=0, le=2**53, description="How many records to leave out.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000, description="How many to show.")] = 1000,
) -> Response:
    """Everything that was released, in order, a page at a time: `next` is the `after` of the next page."""
    desk, served, _ = await enter(request, name, "viewer")
    records, total = await desk.asking.read(lambda: served.history.part(after, limit))
    plan, terms = served.guard.plan, served.guard.desk.terms
    found = to_json(Transcript(tuple(records), plan.confidence, terms.simulated))
    found.pop("questions")
    more = after + limit if after + limit < total else None
    return JSONResponse({**found, "total": total, "next": more})


@router.get("/datasets/{name}/receipt", responses={**shows(), 304: {"description": "Nothing was added since."}})
async def receipt(request: Request, name: str) -> Response:
    """Everything that was released, as a document for `afresh verify`; its ETag is the head of the chain."""
    desk, served, _ = await enter(request, name, "viewer")

    head, document = await desk.asking.read(served.history.receipt)
    tag = f'"{head}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return JSONResponse(document, headers=headers)


def check_batch(desk: Desk, count: int) -> None:
    """Refuse more than the service answers at once."""
    most = desk.config.limits.batch
    if count > most:
        raise TooLarge(
            f"this takes {count:,} answers, and a request may ask for {most:,}; split it. Nothing was charged."
        )
