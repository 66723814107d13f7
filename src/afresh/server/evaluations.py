"""The doors to evaluations: open items go out, candidates come in and are run here, and verdicts go out."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from afresh import checks
from afresh.errors import InvalidArgument, TooMany
from afresh.judging.files import ARCHIVES, FILE, Files, files_of, unpacked
from afresh.judging.judge import Judge
from afresh.server.api import RECEIPT, After, Limit, released, vouched
from afresh.server.bodies import BodyRoute, Freeze
from afresh.server.house import require
from afresh.server.schemas import AnyObject, shows, tells
from afresh.wire.results import to_json

if TYPE_CHECKING:
    from afresh.server.app import Desk
    from afresh.server.tokens import Caller

router = APIRouter(tags=["evaluations"], route_class=BodyRoute)
_AT_ONCE = BoundedSemaphore(8)  # requests per worker that run candidates or wait to; others must come back later
_EXAMPLE = {"candidates": [{"name": "shorter", "files": {"prompt.txt": "Answer in one word."}}]}
_CONTENTS = {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}
_CANDIDATE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "A name for the candidate."},
        "file": {**_CONTENTS, "maxProperties": 1, "description": "A single file: its name, and what is in it."},
        "files": {**_CONTENTS, "description": "A folder: what is in each file, by its path."},
        "base64": {"type": "boolean", "default": False, "description": "Whether contents are written in base64."},
    },
    "oneOf": [{"required": ["file"]}, {"required": ["files"]}],
    "additionalProperties": False,
}
_CANDIDATES = {
    "type": "object",
    "required": ["candidates"],
    "properties": {"candidates": {"type": "array", "minItems": 1, "maxItems": 2, "items": _CANDIDATE}},
    "additionalProperties": False,
}
_LISTED = {"name": "qa", "kind": "evaluation", "description": "Questions about a manual", "rows": 400}
_DESCRIBED = {**_LISTED, "open": 200, "guarded": 160, "exam": 40, "margin": 0.0, "confidence": 0.95, "left": 60}
_DESCRIBED |= {"seconds": 600.0, "candidate": 1_000_000, "frozen": None}
_ITEM = AnyObject(id="q17", question="How is it opened?")
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _CANDIDATES, "example": _EXAMPLE},
            **{media: {"schema": {"type": "string", "format": "binary"}} for media in (FILE, *ARCHIVES.values())},
        },
    }
}


async def _enter(request: Request, name: str, role: str = "analyst") -> tuple[Desk, Judge, Caller]:
    desk: Desk = request.app.state.desk
    caller = await desk.caller(request)
    judged = desk.house.judge(name, caller)
    require(caller, role)
    return desk, judged.judge.for_analyst(caller.name), caller


@router.get("/evaluations", responses=tells({"evaluations": [_LISTED]}))
async def evaluations(request: Request) -> Response:
    """The evaluations this token gives access to."""
    desk: Desk = request.app.state.desk
    caller = await desk.caller(request)
    seen = [each.judge for name, each in desk.house.judges.items() if caller.sees(name)]
    return JSONResponse({"evaluations": [_short(each) for each in seen]})


def _short(judge: Judge) -> dict[str, Any]:
    told = {"name": judge.settings.name, "kind": "evaluation", "description": judge.settings.description}
    return {**told, "rows": judge.evaluation.items}


@router.get("/evaluations/{name}", responses=tells(_DESCRIBED))
async def describe(request: Request, name: str) -> Response:
    """How many items the evaluation has, its limits, and the candidates it takes."""
    desk, judge, _ = await _enter(request, name, "viewer")
    opened, evaluator = judge.evaluation, judge.settings.evaluator

    def look() -> dict[str, Any]:
        return {
            **_short(judge),
            "open": opened.open,
            "guarded": opened.guarded,
            "exam": int(opened.dealt.exam.sum()),
            "margin": judge.settings.margin,
            "confidence": opened.guard.plan.confidence,
            "left": opened.guard.desk.left(opened.guard.analyst),
            "seconds": evaluator.seconds,
            "candidate": evaluator.candidate,
            "frozen": desk.house.freezer.why(name),
        }

    return JSONResponse(await desk.asking.read(look))


@router.get("/evaluations/{name}/items", responses=tells({"items": [_ITEM]}))
async def items(request: Request, name: str) -> Response:
    """The open items, in full."""
    desk, judge, _ = await _enter(request, name)
    return JSONResponse({"items": await desk.asking.read(judge.open_items)})


@router.get("/evaluations/{name}/budget", responses=shows("Budget"))
async def budget(request: Request, name: str) -> Response:
    """What was spent, and what is left for the caller."""
    desk, judge, _ = await _enter(request, name, "viewer")
    return JSONResponse(to_json(await desk.asking.read(lambda: judge.evaluation.budget)))


@router.get("/evaluations/{name}/transcript", responses=shows("Transcript"))
async def transcript(request: Request, name: str, after: After = 0, limit: Limit = 1000) -> Response:
    """Everything that was released and that the clock has let leave, one page at a time."""
    desk, _, _ = await _enter(request, name, "viewer")
    return await released(request, desk, desk.house.judges[name], after, limit)


@router.get("/evaluations/{name}/receipt", responses=RECEIPT)
async def receipt(request: Request, name: str) -> Response:
    """The same as a document for `afresh verify`; its ETag is the head of the chain."""
    desk, _, _ = await _enter(request, name, "viewer")
    return await vouched(request, desk, desk.house.judges[name])


@router.get("/evaluations/{name}/check", responses=shows("Checked"))
async def check(request: Request, name: str) -> Response:
    """What the gate can detect, before the first proposal. Free."""
    return JSONResponse(to_json(await _run(request, name, "check", 0, lambda judge, files: judge.check())))


@router.post("/evaluations/{name}/try", responses=shows("Tried"), openapi_extra=_BODY)
async def try_open(request: Request, name: str) -> Response:
    """Run a candidate on the open items, and show everything. Free."""
    return JSONResponse(to_json(await _run(request, name, "try", 1, lambda judge, files: judge.try_open(*files))))


@router.post("/evaluations/{name}/propose", responses=shows("Proposed"), openapi_extra=_BODY)
async def propose(request: Request, name: str) -> Response:
    """Propose a candidate: it is accepted or not. Costs 1 answer; the same candidate again is free."""
    return JSONResponse(to_json(await _run(request, name, "propose", 1, lambda judge, files: judge.propose(*files))))


@router.post("/evaluations/{name}/score", responses=shows("Scored"), openapi_extra=_BODY)
async def score(request: Request, name: str) -> Response:
    """The mean score of a candidate, with its interval. Costs 1 answer."""
    return JSONResponse(to_json(await _run(request, name, "score", 1, lambda judge, files: judge.score(*files))))


@router.post("/evaluations/{name}/compare", responses=shows("Compared"), openapi_extra=_BODY)
async def compare(request: Request, name: str) -> Response:
    """Whether the second candidate is better than the first. Costs 1 answer."""
    return JSONResponse(to_json(await _run(request, name, "compare", 2, lambda judge, files: judge.compare(*files))))


@router.post("/evaluations/{name}/exam", responses=shows("Examined"), openapi_extra=_BODY)
async def exam(request: Request, name: str) -> Response:
    """Take the exam with the final candidate, once."""
    return JSONResponse(to_json(await _run(request, name, "exam", 1, lambda judge, files: judge.exam(*files))))


@router.put("/evaluations/{name}/freeze", responses=tells({"frozen": "the study has ended."}))
async def freeze(request: Request, name: str, body: Freeze) -> Response:
    """Answer nothing new until it is thawed, on all workers."""
    desk, _, _ = await _enter(request, name, "steward")
    await desk.asking.read(lambda: desk.house.freezer.freeze(name, body.why))
    return JSONResponse({"frozen": body.why})


@router.delete("/evaluations/{name}/freeze", responses=tells({"frozen": None}))
async def thaw(request: Request, name: str) -> Response:
    """Answer again."""
    desk, _, _ = await _enter(request, name, "steward")
    await desk.asking.read(lambda: desk.house.freezer.thaw(name))
    return JSONResponse({"frozen": None})


_FREE = ("check", "try", "exam")


async def _run(request: Request, name: str, what: str, count: int, work: Callable[[Judge, list[Files]], Any]) -> Any:
    desk, judge, caller = await _enter(request, name)
    media, query, files = request.headers.get("content-type", ""), dict(request.query_params), list[Files]()
    if count:
        files = await desk.asking.files.take(
            caller.name, request.body, lambda body: _candidates(body, media, query, count, judge.most)
        )
    served: Any = desk.house.judges[name]  # everything that asking needs to know about what is served
    price = 0 if what in _FREE else 1

    def at_once() -> Any:
        if not _AT_ONCE.acquire(blocking=False):
            raise TooMany("other candidates are running; propose again later. Nothing was charged.")
        try:
            return work(judge, files)
        finally:
            _AT_ONCE.release()

    def charged(found: Any) -> int:
        return int(found.charged) if price else 0

    given = [[each.name, each.digest] for each in files]
    return await desk.asking.ask(served, caller, [what, given], at_once, lambda: price, charged)


def _candidates(body: bytes, media: str, query: dict[str, str], count: int, most: int) -> list[Files]:
    """The candidates that were uploaded: a file or an archive as it is, or several in JSON."""
    kind = media.partition(";")[0].strip().lower()
    if kind != "application/json":
        if unknown := query.keys() - {"name", "file"}:
            raise InvalidArgument(f"unknown option {checks.shown(min(unknown))}; the options are name and file.")
        if count != 1:
            raise InvalidArgument(f"this takes {count} candidates; send them as JSON, such as {json.dumps(_EXAMPLE)}.")
        file = query.get("file", "candidate")
        return [unpacked(body, kind, file, most, checks.text("name", query.get("name", file), "a name"))]
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidArgument("the body cannot be read as JSON in UTF-8.") from None
    given = document.get("candidates") if isinstance(document, dict) and len(document) == 1 else None
    if not isinstance(given, list) or len(given) != count:
        raise InvalidArgument(f"the body must have {count} candidates, such as {json.dumps(_EXAMPLE)}.")
    return [_candidate(each, most) for each in given]


def _candidate(given: Any, most: int) -> Files:
    known = ("name", "file", "files", "base64")
    if not isinstance(given, dict) or given.keys() - {*known} or ("files" in given) == ("file" in given):
        raise InvalidArgument(f"a candidate is an object such as {json.dumps(_EXAMPLE['candidates'][0])}.")
    packed = checks.flag("base64", given.get("base64", False))
    found = given.get("files", given.get("file"))
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise checks.wrong("files", found, "an object of names and contents")
    try:
        contents = {
            name: base64.b64decode(text, validate=True) if packed else text.encode() for name, text in found.items()
        }
    except (binascii.Error, ValueError):
        raise InvalidArgument("the contents are neither base64 nor valid UTF-8 text.") from None
    name = checks.text("name", given.get("name", next(iter(found), "candidate")), "what to call the candidate")
    return files_of(name, contents, folder="files" in given, most=most)
