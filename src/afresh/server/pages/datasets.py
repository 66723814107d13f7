"""The pages of datasets: the list, one with its question box, its history, and each answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from afresh.errors import AfreshError, NotFound
from afresh.server.api import answers, check_batch, claim_of, claimed, examined, measured
from afresh.server.history import Wanted
from afresh.server.house import Judged, Served, require
from afresh.server.pages import forms, views
from afresh.server.pages.frame import HEADERS, PageRoute, desk_of, is_part, render, visitor
from afresh.wire import problems

if TYPE_CHECKING:
    from afresh.server.app import Desk
    from afresh.server.pages.sessions import Visitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_LATEST = 10  # lines under the question box


async def enter(request: Request, name: str, role: str = "viewer") -> tuple[Desk, Served, Visitor]:
    """Find the desk, the dataset and the visitor, or refuse."""
    desk, who = desk_of(request), await visitor(request)
    served = desk.house.find(name, who.caller)
    require(who.caller, role)
    return desk, served, who


async def sent(request: Request, name: str, role: str) -> tuple[Desk, Served, Visitor, dict[str, str]]:
    """Do the same for a form that was sent, and read its fields."""
    who, given = await forms.sent(request)
    desk = desk_of(request)
    served = desk.house.find(name, who.caller)
    require(who.caller, role)
    return desk, served, who, given


@router.get("/")
async def all_datasets(request: Request) -> Response:
    """The datasets the visitor may see."""
    desk, who = desk_of(request), await visitor(request)
    seen = [served for name, served in desk.house.served.items() if who.caller.sees(name)]

    def look() -> list[dict[str, Any]]:
        return [views.overview(each, who.caller, desk.house.freezer.why(each.name)) for each in seen]

    return render(request, "datasets.html", who, datasets=await desk.asking.read(look))


@router.get("/datasets/{name}")
async def dataset(request: Request, name: str) -> Response:
    """One dataset."""
    desk, served, who = await enter(request, name)
    return await show_dataset(request, desk, served, who)


async def show_dataset(
    request: Request,
    desk: Desk,
    served: Served,
    who: Visitor,
    given: Mapping[str, str] | None = None,
    answered: list[Any] | None = None,
    error: AfreshError | None = None,
) -> Response:
    """Show the dataset's page, perhaps with a question and its outcome."""

    def look() -> dict[str, Any]:
        frozen = desk.house.freezer.why(served.name)
        page = served.history.page(1, size=_LATEST)
        lines = views.lines(served.history, page.records, views.address(served))
        found = {"data": views.overview(served, who.caller, frozen), "lines": lines}
        return found | {"total": page.total, "columns": served.dictionary.describe(served.guard.desk.schema)}

    values = await desk.asking.read(look)
    values["completions"] = json.dumps([[name, each["type"]] for name, each in values["columns"].items()])
    values |= {"given": given or {}, "answered": answered or [], "error": error, "tab": "ask"}
    values |= {"statistics": forms.STATISTICS, "exam": served.guard.plan.exam, "claims": takes_claims(served)}
    values["place"] = None if error is None else await _place(desk, who, error, given or {}, served)
    template = "latest.html" if is_part(request) else "dataset.html"
    return render(request, template, who, status=200 if error is None else error.status, **values)


@router.post("/datasets/{name}/price")
async def price(request: Request, name: str) -> Response:
    """What a question would cost, while it is typed. Free."""
    desk, served, who, given = await sent(request, name, "analyst")
    guard, schema = served.guard.for_analyst(who.caller.name), served.guard.desk.schema
    try:
        if given.get("kind") == "claim":
            claim = forms.claim(given)
            least = await desk.asking.estimate(who.caller, lambda: guard.detects(**claim_of(served, claim)))
            words = f"Costs 1 answer. It passes if the truth is about {least:.3g} or more inside these ends."
            return JSONResponse({"words": words, "question": "Claim"}, headers=HEADERS)
        if "kind" in given:
            statistic = forms.statistic(given)
            found = await desk.asking.estimate(who.caller, lambda: guard.price(forms.filled(statistic, served)))
        else:
            question = forms.question(given)
            found = await desk.asking.estimate(
                who.caller, lambda: guard.price(**served.dictionary.fill_question(question, schema))
            )
    except AfreshError as error:
        return await _misplaced(desk, who, error, given, served)
    told = {"words": found.words, "question": found.question, "answers": found.answers, "half_width": found.half_width}
    return JSONResponse(told, headers=HEADERS)


def takes_claims(served: Served) -> bool:
    """Whether its method answers claims."""
    return bool(served.guard.plan.mechanism.symbols)


@router.post("/datasets/{name}/ask")
async def ask(request: Request, name: str) -> Response:
    """Ask one question, a statistic, a claim, or several questions together, one on each line."""
    desk, served, who, given = await sent(request, name, "analyst")
    try:
        found = await _answered(desk, served, who, given)
    except AfreshError as error:
        if is_part(request):
            return await _misplaced(desk, who, error, given, served)
        return await show_dataset(request, desk, served, who, given, error=error)
    if is_part(request):
        return render(request, "answers.html", who, answered=found)
    return await show_dataset(request, desk, served, who, given, found)


async def _answered(desk: Desk, served: Served, who: Visitor, given: Mapping[str, str]) -> list[Any]:
    """Ask what a form says, and show the outcome."""
    if given.get("kind") == "claim":
        return [await claimed(desk, served, who.caller, forms.claim(given))]
    if "kind" in given:
        document = forms.statistic(given)
        await desk.asking.think(who.caller, document, lambda: forms.check_statistic(document, served))
        return [await measured(desk, served, who.caller, document)]
    questions = forms.several(given) if "questions" in given else [forms.question(given)]
    check_batch(desk, len(questions))
    if "exam" in given:
        return list(await examined(desk, served, who.caller, questions))
    return await answers(desk, served, who.caller, questions)


async def _place(desk: Desk, who: Visitor, error: AfreshError, given: Mapping[str, str], served: Served) -> str:
    """The field that a mistake is about."""
    return await desk.asking.think(who.caller, given, lambda: forms.place_of(error, given, served))


async def _misplaced(
    desk: Desk, who: Visitor, error: AfreshError, given: Mapping[str, str], served: Served
) -> Response:
    """A refusal that names its field. It is no failure to the script, which shows it at that field."""
    place = await _place(desk, who, error, given, served)
    return JSONResponse({**problems.to_problem(error), "place": place}, headers=HEADERS)


@router.get("/datasets/{name}/history")
async def history(
    request: Request,
    name: str,
    words: Annotated[str, Query(max_length=1000)] = "",
    analyst: Annotated[str, Query(max_length=1000)] = "",
    round: Annotated[str, Query(max_length=20)] = "",
    scale: Annotated[str, Query(max_length=20)] = "own",
    page: Annotated[int, Query(ge=1, le=2**53)] = 1,
) -> Response:
    """Everything that was released, newest first, as a plot and as a table."""
    desk, served, who = await enter(request, name)
    wanted = Wanted(words, analyst, round)

    def look() -> dict[str, Any]:
        found = served.history.page(page, wanted)
        return {
            "data": views.overview(served, who.caller, desk.house.freezer.why(name)),
            "lines": views.lines(served.history, found.records, views.address(served)),
            "forests": views.forests(served, found.records, standard=scale == "standard"),
            "page": found,
            "steps": views.steps(found, wanted, scale),
            "analysts": served.history.analysts,
            "rounds": served.history.rounds,
        }

    values = await desk.asking.read(look)
    template = "released.html" if is_part(request) else "history.html"
    return render(request, template, who, wanted=wanted, scale=scale, tab="history", **values)


@router.get("/datasets/{name}/answers/{number}")
async def answer(request: Request, name: str, number: int) -> Response:
    """One answer, as a notebook shows it."""
    desk, served, who = await enter(request, name)

    def look() -> dict[str, Any]:
        shown = views.answer_shown(served.history, number, name, served.guard.plan.confidence)
        return {"data": views.overview(served, who.caller, desk.house.freezer.why(name)), "records": shown}

    return render(request, "answer.html", who, number=number, tab="history", **await desk.asking.read(look))


@router.get("/datasets/{name}/receipt.{form}")
async def receipt(request: Request, name: str, form: str) -> Response:
    """Everything that was released, to download: as JSON for `afresh verify`, or as a page."""
    desk, served, _ = await enter(request, name)
    return await kept_receipt(desk, served, form)


async def kept_receipt(desk: Desk, served: Served | Judged, form: str) -> Response:
    """A receipt to download."""
    if form not in ("json", "html"):
        raise NotFound(f"the receipt is available as json or html, not as {form}.")

    def make() -> str:
        from afresh.receipts.page import as_html

        _, document = served.history.receipt()
        return json.dumps(document, indent=1) if form == "json" else as_html(document)

    content = await desk.asking.read(make)
    media = "application/json" if form == "json" else "text/html; charset=utf-8"
    keep = {"Content-Disposition": f'attachment; filename="receipt-{served.name}.{form}"'}
    return Response(content, headers={**HEADERS, **keep}, media_type=media)
