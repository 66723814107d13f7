"""The steward's pages: tokens, shares, what was revealed elsewhere, freezing, and an audit of the ledger."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from afresh.errors import AfreshError, InvalidArgument
from afresh.ledger.records import decode, kind_of
from afresh.server.house import Served, require
from afresh.server.pages import forms, views
from afresh.server.pages.datasets import enter, sent
from afresh.server.pages.frame import PageRoute, desk_of, redirect, render, visitor
from afresh.server.pages.verify import checked
from afresh.server.tokens import ALL, ROLES

if TYPE_CHECKING:
    from afresh.server.app import Desk
    from afresh.server.pages.sessions import Visitor

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_RECORDS = 100  # records per page of an audit
_PROTECTED = {
    "kl": "KL stability, in nats",
    "zcdp": "zero-concentrated differential privacy, rho",
    "pure_dp": "pure differential privacy, epsilon",
    "noise_sd": "Gaussian noise on a mean in [0, 1], its standard deviation",
}


@router.get("/steward")
async def house(request: Request) -> Response:
    """Tokens, and what is served."""
    desk, who = desk_of(request), await visitor(request)
    require(who.caller, "steward")
    return await _house(request, desk, who)


async def _house(
    request: Request, desk: Desk, who: Visitor, made: str | None = None, error: AfreshError | None = None
) -> Response:
    tokens = await desk.asking.read(desk.house.tokens.all)
    served = {name: views.address(each, "steward") for name, each in desk.house.served.items()}
    values: dict[str, Any] = {"tokens": tokens[::-1], "served": served, "roles": ROLES, "made": made, "error": error}
    return render(request, "house.html", who, status=200 if error is None else error.status, **values)


@router.post("/steward/tokens")
async def tokens(request: Request) -> Response:
    """Make a token, which is shown only this once, or revoke some."""
    who, given = await forms.sent(request)
    desk = desk_of(request)
    require(who.caller, "steward")
    try:
        if "revoke" in given:
            await desk.asking.read(lambda: desk.house.tokens.revoke(given["revoke"]))
            return redirect("/steward")
        wishes = _token(given)
        made = await desk.asking.read(lambda: desk.house.tokens.new(**wishes))
    except AfreshError as error:
        return await _house(request, desk, who, error=error)
    return await _house(request, desk, who, made)


def _token(given: dict[str, str]) -> dict[str, Any]:
    datasets = [name.strip() for name in given.get("datasets", "").split(",") if name.strip()]
    return {
        "name": given.get("name", "").strip(),
        "role": given.get("role", "analyst"),
        "datasets": datasets or [ALL],
        "days": forms.whole(given, "days", 1) if given.get("days", "").strip() else None,
        "cap": forms.whole(given, "cap") if given.get("cap", "").strip() else None,
    }


@router.get("/datasets/{name}/steward")
async def dataset(request: Request, name: str) -> Response:
    """Shares, charges and freezing of one dataset."""
    desk, served, who = await enter(request, name, "steward")
    return await _dataset(request, desk, served, who)


async def _dataset(
    request: Request, desk: Desk, served: Served, who: Visitor, error: AfreshError | None = None, place: str = ""
) -> Response:
    def look() -> dict[str, Any]:
        inner = served.guard.desk
        with inner.ledger.reading(inner.terms) as account:
            shares, outside = dict(account.shares), list(account.charged)
            spent = {name: each.answers for name, each in account.purse.by_analyst.items() if name}
            elsewhere = account.purse.outside.answers
        tokens = [each["name"] for each in desk.house.tokens.all() if each["revoked"] is None]
        names = dict.fromkeys([*shares, *spent, *(name for name in tokens if name not in shares)])
        return {
            "data": views.overview(served, who.caller, desk.house.freezer.why(served.name)),
            "questions": served.guard.plan.questions,
            "shares": [(name, shares.get(name), spent.get(name, 0)) for name in names],
            "others": sum(count for name, count in spent.items() if name not in shares) + elsewhere,
            "outside": outside,
            "kinds": _PROTECTED,
            "boards": [each for each, posted in desk.house.boards.items() if posted.settings.holdout == served.name],
        }

    values = await desk.asking.read(look)
    status = 200 if error is None else error.status
    return render(request, "steward.html", who, status=status, tab="steward", error=error, place=place, **values)


@router.post("/datasets/{name}/divide")
async def divide(request: Request, name: str) -> Response:
    """Divide the budget: `name0`, `share0`, `name1`, ...; an empty share means no share."""
    desk, served, who, given = await sent(request, name, "steward")
    guard = served.guard.for_analyst(who.caller.name)
    try:
        shares: dict[str, int] = {}
        for key, analyst in given.items():
            number = key.removeprefix("name")
            if key.startswith("name") and analyst.strip() and given.get(f"share{number}", "").strip():
                if analyst.strip() in shares:
                    raise InvalidArgument(f"{analyst.strip()} appears twice; give each analyst one share.")
                shares[analyst.strip()] = forms.whole(given, f"share{number}")
        await desk.asking.read(lambda: guard.divide(shares))
    except AfreshError as error:
        return await _dataset(request, desk, served, who, error, "shares")
    return redirect(views.address(served, "steward"))


@router.post("/datasets/{name}/charge")
async def charge(request: Request, name: str) -> Response:
    """Record what was revealed elsewhere."""
    desk, served, who, given = await sent(request, name, "steward")
    guard = served.guard.for_analyst(who.caller.name)
    try:
        kind, amount = given.get("kind", ""), forms.number(given, "amount")
        if kind not in _PROTECTED or amount is None:
            raise InvalidArgument("state how it was protected, and by how much.")
        rows = forms.whole(given, "rows", 1) if given.get("rows", "").strip() else None
        count = forms.whole(given, "count", 1) if given.get("count", "").strip() else 1
        wishes: dict[str, Any] = {kind: amount, "rows": rows, "count": count}
        await desk.asking.read(lambda: guard.charge(given.get("revealed", ""), **wishes))
    except AfreshError as error:
        return await _dataset(request, desk, served, who, error, "charge")
    return redirect(views.address(served, "steward"))


@router.post("/datasets/{name}/freeze")
async def freeze(request: Request, name: str) -> Response:
    """Freeze or thaw a dataset."""
    desk, served, _, given = await sent(request, name, "steward")
    if "thaw" in given:
        await desk.asking.read(lambda: desk.house.freezer.thaw(served.name))
    else:
        why = given.get("why", "").strip()[:1000] or "The steward has frozen it."
        await desk.asking.read(lambda: desk.house.freezer.freeze(served.name, why))
    return redirect(views.address(served, "steward"))


@router.get("/datasets/{name}/audit")
async def audit(request: Request, name: str, page: Annotated[int, Query(ge=1, le=2**53)] = 1) -> Response:
    """Every record of the ledger, newest first, and whether the whole ledger verifies."""
    desk, served, who = await enter(request, name, "steward")

    def look() -> dict[str, Any]:
        inner = served.guard.desk
        chain = inner.ledger.chain(inner.terms)
        pages = max(-(-len(chain) // _RECORDS), 1)
        here = min(page, pages)
        end = len(chain) - (here - 1) * _RECORDS
        rows = [(place, *_told(chain[place - 1].text)) for place in range(end, max(end - _RECORDS, 0), -1)]
        verified = checked(json.dumps(served.guard.receipt()).encode())
        head = {"head": chain[-1].hash, "length": len(chain), "pages": pages, "page": here}
        data = views.overview(served, who.caller, desk.house.freezer.why(name))
        return {"data": data, "records": rows, "verified": verified, **head}

    return render(request, "audit.html", who, tab="steward", **await desk.asking.read(look))


def _told(text: str) -> tuple[str, str, str, str]:
    """When, who, what kind of record, and what it says."""
    record = decode(text)
    about = getattr(record, "text", None) or getattr(record, "shares", None) or ""
    if isinstance(about, dict):
        about = ", ".join(f"{name} {share:,}" for name, share in about.items())
    if not about and (number := getattr(record, "number", None)):
        about = f"answer {number}"
    return record.at.isoformat(" ", "seconds")[:19], getattr(record, "analyst", ""), kind_of(record), about
