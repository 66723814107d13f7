"""What people type into forms, as the library takes it; a mistake is told at its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request

from afresh import checks
from afresh.errors import AfreshError, InvalidArgument
from afresh.queries.parse import parse
from afresh.queries.query import parse_group
from afresh.server.bodies import Question
from afresh.server.house import Served

_FORM = "application/x-www-form-urlencoded"
_MOST = 1000  # fields
PLACES = ("bounds", "missing", "precision", "where", "expression")
"""Where a mistake can be."""


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


def question(given: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `Guard.ask`, as `/v1` has them: a question is the same through every door."""
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


def whole(given: Mapping[str, str], name: str, least: int = 0) -> int:
    """A whole number."""
    text = given.get(name, "").strip().replace(",", "")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise InvalidArgument(f"{name} == {checks.shown(text)}, must be a whole number of at least {least}.")
    return checks.whole(name, int(text), least)


def number(given: Mapping[str, str], name: str) -> float | None:
    """A number; None of an empty field."""
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
    for name, read in {"expression": parse, "where": parse_group}.items():
        if (text := given.get(name, "").strip()) or name == "expression":
            try:
                read(text, schema)
            except AfreshError:
                return name
    said = str(error)
    return next((place for place in PLACES if place in said), "expression")
