"""The page of a holdout, to drop predictions, score them, and compare them with earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from afresh.errors import AfreshError, InvalidArgument, NotFound
from afresh.results import show
from afresh.server.api import check_batch, written
from afresh.server.decode import CSV
from afresh.server.house import Served, require
from afresh.server.pages import forms, views
from afresh.server.pages.datasets import enter
from afresh.server.pages.entries import Entries
from afresh.server.pages.frame import HEADERS, PageRoute, desk_of, is_part, render
from afresh.server.predictions import NPY, PARQUET, Submission, read_submission
from afresh.wire.tables import FORMATS

if TYPE_CHECKING:
    from afresh.models.holdout import Holdout
    from afresh.models.verdicts import Comparison, Identical
    from afresh.server.app import Desk
    from afresh.server.pages.sessions import Visitor
    from afresh.server.tokens import Caller

router = APIRouter(route_class=PageRoute, include_in_schema=False)
KINDS = {".csv": CSV, ".npy": NPY, ".parquet": PARQUET}
"""What can be dropped, by the ending of the file's name."""


def _holdout(served: Served, analyst: str) -> Holdout:
    if served.holdout is None:
        raise NotFound(f"{served.name!r} is a dataset without labels, so it cannot score models; ask it questions.")
    return served.holdout.for_analyst(analyst)


@router.get("/datasets/{name}/models")
async def models(request: Request, name: str) -> Response:
    """Where to drop predictions, and what was scored."""
    desk, served, who = await enter(request, name)
    return await _show(request, desk, served, who)


async def _show(
    request: Request, desk: Desk, served: Served, who: Visitor, error: AfreshError | None = None, **came: Any
) -> Response:
    """Show the holdout's page, perhaps with the outcome of a file."""
    name, holdout = served.name, _holdout(served, who.caller.name)

    def look() -> dict[str, Any]:
        entries, data = Entries(desk.house.store), views.overview(served, who.caller, desk.house.freezer.why(name))
        return {
            "data": data | {"changes": f"{data['changes']}-{entries.count(name)}"},
            "entries": entries.all(name),
            "loss": holdout.loss.words,
            "classes": holdout.classes,
            "label": holdout.label,
            "id": served.settings.id,
            "download": served.settings.download,
            "kinds": ", ".join(KINDS),
            "boards": [each for each, posted in desk.house.boards.items() if posted.settings.holdout == name],
        }

    values = await desk.asking.read(look)
    values["forest"] = _forest(values["entries"], values["loss"], holdout.loss.bounds)
    values |= {"answered": [], "said": None, "error": error, **came}
    template = "entries.html" if is_part(request) else "models.html"
    return render(request, template, who, status=200 if error is None else error.status, tab="models", **values)


def _forest(entries: list[Any], loss: str, bounds: tuple[float, float]) -> show.Forest | None:
    marks = [
        show.Mark(f"{place}", each.name, each.value, each.low, each.high, each.loss, f"{each.name}, {each.analyst}")
        for place, each in enumerate(sorted(entries, key=lambda each: each.value)[:40], 1)
    ]
    if not marks:
        return None
    ends = [end for mark in marks for end in (mark.low, mark.high)]
    return show.Forest(marks, show.zoomed(ends, bounds), f"{loss} with its interval; smaller is better")


async def dropped(desk: Desk, served: Served, caller: Caller, file: str, body: bytes) -> Submission:
    """The predictions in a file that was sent; the ending of its name gives its format."""
    media = next((media for end, media in KINDS.items() if file.lower().endswith(end)), None)
    if media is None:
        raise InvalidArgument(f"{file!r} is not one of {', '.join(KINDS)}; send one of these.")
    found = await desk.asking.files.work(
        caller.name, lambda: read_submission(body, media, {}, served.guard.rows, served.places, served.settings.id)
    )
    check_batch(desk, len(found.models))
    return found


def _names(given: Submission, title: str, file: str) -> list[str]:
    """Names for the models of a file: the names of its columns, the name that was typed, or the name of the file."""
    if given.names is not None and len(given.models) > 1:
        return given.names
    stem = title.strip() or file.rpartition(".")[0] or "predictions"
    return [stem] if len(given.models) == 1 else [f"{stem} {place}" for place in range(1, len(given.models) + 1)]


@router.post("/datasets/{name}/score")
async def score(request: Request, name: str) -> Response:
    """Score a file, 1 answer per model; with `against`, compare it with an earlier entry for 1 or 2 more."""
    who, fields, file, body = await forms.sent_file(request)
    desk = desk_of(request)
    served = desk.house.find(name, who.caller)
    require(who.caller, "analyst")
    try:
        answered, said = await _scored(desk, served, who.caller, fields, file, body)
    except AfreshError as error:
        if is_part(request):
            raise
        return await _show(request, desk, served, who, error)
    if is_part(request):
        return render(request, "answers.html", who, answered=answered, said=said)
    return await _show(request, desk, served, who, answered=answered, said=said)


async def _scored(
    desk: Desk, served: Served, caller: Caller, fields: Mapping[str, str], file: str, body: bytes
) -> tuple[list[Any], str | None]:
    """The answers, and what may be concluded."""
    name, title, against = served.name, fields.get("title", "")[:200], fields.get("against", "")[:200]
    holdout, entries = _holdout(served, caller.name), Entries(desk.house.store)
    given = await dropped(desk, served, caller, file, body)
    names = _names(given, title, file)
    if against and len(given.models) != 1:
        raise InvalidArgument(f"the file has predictions of {len(given.models)} models; compare one at a time.")
    other = await desk.asking.read(lambda: entries.find(name, against)) if against else None
    scores = await desk.asking.ask(
        served,
        caller,
        ["page score", given.digest, names],
        lambda: holdout.score_many(given.models, names=names),
        lambda: len(given.models),
        lambda found: sum(each.charged for each in found),
    )

    def keep() -> None:
        for each, model, said in zip(names, given.models, scores, strict=True):
            entries.keep(name, each, caller.name, model, said)

    await desk.asking.read(keep)
    if other is None:
        return list(scores), None
    try:
        compared = await desk.asking.ask(
            served,
            caller,
            ["page compare", given.digest, names, against],
            lambda: holdout.compare(other[1], given.models[0], names=(other[0], names[0])),
            lambda: 2,
            lambda found: int(found.charged),
        )
    except AfreshError as error:  # the score is paid for, so it is shown even if the comparison fails
        return list(scores), f"It was scored, but not compared: {error}"
    return [compared, *scores], concluded(compared)


@router.get("/datasets/{name}/features.{form}")
async def features(request: Request, name: str, form: str) -> Response:
    """The features of all rows, to predict from."""
    desk, served, who = await enter(request, name)
    holdout = _holdout(served, who.caller.name)
    if form not in ("csv", "parquet"):
        raise NotFound(f"features are available as csv or parquet, not as {form}.")
    content = await desk.asking.read(lambda: written(served, form, lambda: (holdout.features, None)))
    keep = {"Content-Disposition": f'attachment; filename="{served.name}.{form}"'}
    return Response(content, headers={**HEADERS, **keep}, media_type=FORMATS[form])


def concluded(found: Comparison | Identical) -> str:
    """What may and may not be concluded from a comparison, in a sentence."""
    a, b = found.a, found.b
    if found.low is None or found.high is None:
        return f"{a} and {b} make the same predictions for all rows, so there is no difference to report."
    if found.better is None:
        return (
            f"Cannot tell: do not report {b} as an improvement on {a}, nor as a step back. "
            f"The difference lies between {found.low:.3g} and {found.high:.3g}."
        )
    better, worse = (b, a) if found.better == "B" else (a, b)
    least, most = sorted(map(abs, (found.low, found.high)))
    sure = show.percent(found.confidence or 0.0)
    return (
        f"{better} is better than {worse}: its {found.loss} is smaller by {least:.3g} to {most:.3g}. You may report "
        f"this; it holds together with everything else that was released, at {sure}."
    )
