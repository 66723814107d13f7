"""Turn what people type into forms into what the library takes; a mistake is shown at its field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from python_multipart.exceptions import FormParserError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from afresh import checks
from afresh.errors import AfreshError, InvalidArgument
from afresh.queries.parse import parse
from afresh.queries.query import parse_group
from afresh.server.api import filled_statistic
from afresh.server.bodies import Claim, Question
from afresh.server.house import Served
from afresh.server.pages.frame import visitor
from afresh.server.pages.sessions import COOKIE, Visitor, check_form

_FORM = "application/x-www-form-urlencoded"
_MOST = 1000  # fields
_UPLOAD = "multipart/form-data"
PLACES = ("bounds", "missing", "precision", "where", "expression")
"""The fields where a mistake can be."""
_OWN = {"Histogram": "edges", "GroupMeans": "categories", "Quantile": "level", "claim": "between"}
STATISTICS = {
    "Histogram": "A histogram: the share of rows in each bin",
    "GroupMeans": "Groups: the share or mean within each",
    "Quantile": "A quantile or the median",
    "StandardDeviation": "The standard deviation",
    "claim": "A claim: pass or fail",
}
"""What can be asked besides shares and means, by its name in `/v1`."""


FORM_KEY = "x-afresh-form"
"""The header that carries a form's key in requests that are not forms."""


async def sent(request: Request) -> tuple[Visitor, dict[str, str]]:
    """The visitor, who is identified before anything is read, and the fields of a form of one of our pages."""
    who = await visitor(request)
    given = await fields(request)
    _check_key(request, given)
    return who, given


async def sent_file(request: Request) -> tuple[Visitor, dict[str, str], str, bytes]:
    """The same for a form with one file: its name and its content."""
    who = await visitor(request)
    given, file, body = await uploaded(request)
    _check_key(request, given)
    return who, given, file, body


def _check_key(request: Request, given: Mapping[str, str]) -> None:
    check_form(request.cookies.get(COOKIE, ""), given.get("form_key", request.headers.get(FORM_KEY)))


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form, each once."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != _FORM:
        raise InvalidArgument(f"Content-Type == {checks.shown(media)}, must be {_FORM}.")
    try:
        pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST)
    except ValueError:
        raise InvalidArgument(f"the form cannot be read: it must be UTF-8, with at most {_MOST} fields.") from None
    return dict(pairs)


async def uploaded(request: Request) -> tuple[dict[str, str], str, bytes]:
    """The fields of a form with one file, the file's name, and its content."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != _UPLOAD:
        raise InvalidArgument(f"Content-Type == {checks.shown(media)}, must be {_UPLOAD}.")
    try:
        async with request.form(max_files=1, max_fields=20) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile) or not file.filename:
                raise InvalidArgument("choose a file first.")
            texts = {name: value for name, value in form.items() if isinstance(value, str)}
            return texts, file.filename[:300], await file.read()
    except (HTTPException, FormParserError):  # the latter with Starlette before 1.0
        raise InvalidArgument("the form cannot be read: it has fields and one file.") from None


def question(given: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `Guard.ask`, as in `/v1`: a question is the same through every door."""
    low, high = number(given, "low"), number(given, "high")
    if (low is None) != (high is None):
        raise InvalidArgument("bounds: give both the lowest and the highest value, or neither.")
    return Question(
        expression=given.get("expression", "").strip(),
        bounds=None if low is None or high is None else (low, high),
        where=given.get("where", "").strip() or None,
        missing=number(given, "missing"),
        precision=number(given, "precision"),
        guess=None,
        about=None,
    ).given()


def several(given: Mapping[str, str]) -> list[dict[str, Any]]:
    """One question on each line."""
    lines = [line.strip() for line in given.get("questions", "").splitlines()]
    return [question({"expression": line}) for line in lines if line]


def statistic(given: Mapping[str, str]) -> dict[str, Any]:
    """A statistic as in `/v1`; the data dictionary fills in empty fields."""
    kind, low, high = given.get("kind", ""), number(given, "low"), number(given, "high")
    found: dict[str, Any] = {"kind": kind, "expression": given.get("expression", "").strip()}
    if where := given.get("where", "").strip():
        found["where"] = where
    if kind == "Histogram":
        return found | {"edges": _listed(given, "edges")}
    if (low is None) != (high is None):
        raise InvalidArgument("bounds: give both the lowest and the highest value, or neither.")
    if low is not None and high is not None:
        found["bounds"] = [low, high]
    match kind:
        case "GroupMeans":
            found["by"] = given.get("by", "").strip()
            if given.get("categories", "").strip():
                found["categories"] = _categories(given["categories"])
        case "Quantile":
            level = number(given, "level")
            found["level"] = 0.5 if level is None else level
    return found


def filled(document: Mapping[str, Any], served: Served) -> Any:
    """The statistic of a form, completed from the data dictionary."""
    check_statistic(document, served)
    return filled_statistic(served, document)


def check_statistic(document: Mapping[str, Any], served: Served) -> None:
    """For anything left out that is not in the data dictionary, say what to write in which field."""
    if document["kind"] == "GroupMeans":
        parse(document["by"], served.guard.desk.schema)
        filled = served.dictionary.fill_statistic(document, served.guard.desk.schema)
        if "categories" not in filled:
            raise InvalidArgument(
                "categories: name the groups, such as CH, DE; the data dictionary does not list them."
            )


def claim(given: Mapping[str, str]) -> Claim:
    """A claim as `/v1` has it."""
    asked = question({**given, "precision": ""})
    between = [number(given, "from"), number(given, "to")]
    names = ("expression", "bounds", "missing", "where")
    return Claim(between=between, **{name: asked[name] for name in names})


def _listed(given: Mapping[str, str], name: str) -> list[float]:
    try:
        return [float(each) for each in given.get(name, "").split(",") if each.strip()]
    except ValueError:
        raise InvalidArgument(f"{name}: {checks.shown(given[name])} is not a list such as 0, 50, 100.") from None


def _categories(text: str) -> list[Any]:
    """Names, or numbers where all are numbers."""
    parts = [each.strip() for each in text.split(",") if each.strip()]
    try:
        return [float(each) for each in parts]
    except ValueError:
        return parts


def whole(given: Mapping[str, str], name: str, least: int = 0) -> int:
    """A whole number."""
    text = given.get(name, "").strip().replace(",", "")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise InvalidArgument(f"{name} == {checks.shown(text)}, must be a whole number of at least {least}.")
    return checks.whole(name, int(text), least)


def number(given: Mapping[str, str], name: str) -> float | None:
    """A number; None if the field is empty."""
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        at = "bounds" if name in ("low", "high") else name
        raise InvalidArgument(f"{at}: {checks.shown(text)} is not a number.") from None


def place_of(error: AfreshError, given: Mapping[str, str], served: Served) -> str:
    """The field that a mistake is about."""
    schema = served.guard.desk.schema
    for name, read in {"expression": parse, "where": parse_group, "by": parse}.items():
        if (text := given.get(name, "").strip()) or name == "expression":
            try:
                read(text, schema)
            except AfreshError:
                return name
    said = str(error)
    if (own := _OWN.get(given.get("kind", ""))) is not None:  # whichever is named first
        return min((each for each in (own, *PLACES) if each in said), key=said.find, default="expression")
    return next((place for place in PLACES if place in said), "expression")
