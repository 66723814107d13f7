"""The pages of evaluations: a description, what is left of the budget, and every verdict of the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response

from afresh.server.history import Wanted
from afresh.server.pages import views
from afresh.server.pages.datasets import kept_receipt
from afresh.server.pages.frame import PageRoute, desk_of, render, visitor

if TYPE_CHECKING:
    from afresh.server.app import Desk
    from afresh.server.house import Judged
    from afresh.server.tokens import Caller

router = APIRouter(route_class=PageRoute, include_in_schema=False)


def _overview(desk: Desk, judged: Judged, caller: Caller) -> dict[str, Any]:
    opened, settings = judged.judge.evaluation, judged.judge.settings
    return {
        "name": judged.name,
        "kind": "evaluation",
        "description": settings.description,
        "rows": opened.items,
        "open": opened.open,
        "guarded": opened.guarded,
        "exam": int(opened.dealt.exam.sum()),
        "margin": settings.margin,
        "plan": views.plan_in_words(judged.guard.desk),
        "gauges": views.gauges(judged.guard.desk, caller),
        "frozen": desk.house.freezer.why(judged.name),
        "address": f"/evaluations/{quote(judged.name, '')}",
        "changes": "-".join(map(str, judged.history.state())),
    }


@router.get("/evaluations")
async def evaluations(request: Request) -> Response:
    """The evaluations the visitor may see."""
    desk, who = desk_of(request), await visitor(request)
    seen = [judged for name, judged in desk.house.judges.items() if who.caller.sees(name)]

    def look() -> list[dict[str, Any]]:
        return [_overview(desk, each, who.caller) for each in seen]

    return render(request, "evaluations.html", who, evaluations=await desk.asking.read(look))


@router.get("/evaluations/{name}")
async def evaluation(request: Request, name: str, page: Annotated[int, Query(ge=1, le=2**53)] = 1) -> Response:
    """One evaluation and its history, newest first."""
    desk, who = desk_of(request), await visitor(request)
    judged = desk.house.judge(name, who.caller)

    def look() -> dict[str, Any]:
        found, data = judged.history.page(page), _overview(desk, judged, who.caller)
        lines = views.lines(judged.history, found.records, data["address"])
        return {"data": data, "lines": lines, "page": found, "steps": views.steps(found, Wanted(), "own")}

    return render(request, "evaluation.html", who, **await desk.asking.read(look))


@router.get("/evaluations/{name}/answers/{number}")
async def answer(request: Request, name: str, number: int) -> Response:
    """One verdict, as a notebook shows it."""
    desk, who = desk_of(request), await visitor(request)
    judged = desk.house.judge(name, who.caller)

    def look() -> dict[str, Any]:
        shown = views.answer_shown(judged.history, number, name, judged.guard.plan.confidence)
        return {"data": _overview(desk, judged, who.caller), "records": shown}

    return render(request, "verdict.html", who, number=number, **await desk.asking.read(look))


@router.get("/evaluations/{name}/receipt.{form}")
async def receipt(request: Request, name: str, form: str) -> Response:
    """Everything that was released, to download: as JSON for `afresh verify`, or as a page."""
    desk, who = desk_of(request), await visitor(request)
    return await kept_receipt(desk, desk.house.judge(name, who.caller), form)
