"""What responses look like, for the OpenAPI document: the results' own fields, and problems."""

from __future__ import annotations

from typing import Any

from afresh.errors import KINDS
from afresh.wire.problems import MEDIA_TYPE

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was wrong, with the value, and what would be right."},
        "code": {"type": "string", "enum": sorted(KINDS), "description": "The stable name of the error."},
    },
}
_REFUSED = (400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 501, 503, 504)


def shows(*kinds: str, listed: str | None = None) -> dict[int | str, dict[str, Any]]:
    """The responses of a door that shows results of these kinds, or any JSON object."""
    shown = [_result(kind) for kind in kinds] or [{"type": "object"}]
    one = shown[0] if len(shown) == 1 else {"anyOf": shown}
    if listed is not None:
        one = {"type": "object", "required": [listed], "properties": {listed: {"type": "array", "items": one}}}
    problem = {"content": {MEDIA_TYPE: {"schema": _PROBLEM}}}
    told: dict[int | str, dict[str, Any]] = {
        status: {"description": "Refused; nothing was charged.", **problem} for status in _REFUSED
    }
    return {200: {"description": "What was released.", "content": {"application/json": {"schema": one}}}, **told}


def _result(kind: str) -> dict[str, Any]:
    """A result by its class: the names of its fields are required, and `to_dict` adds to them."""
    from dataclasses import fields

    from afresh.wire.results import RESULTS

    names = [each.name for each in fields(RESULTS[kind])]
    if kind == "Transcript":
        names = ["records", "confidence", "simulated", "total", "next"]
    return {
        "title": kind,
        "type": "object",
        "description": (RESULTS[kind].__doc__ or "").partition("\n")[0],
        "required": ["kind", *names],
        "properties": {"kind": {"const": kind}, **{name: {} for name in names}},
    }
