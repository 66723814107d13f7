"""What responses look like, for the OpenAPI document: the results' own fields, with examples, and problems."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from pydantic import TypeAdapter

from afresh.errors import KINDS
from afresh.wire.problems import MEDIA_TYPE
from afresh.wire.results import RESULTS

_REFS = "#/components/schemas/"
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
    "example": {
        "type": "urn:afresh:error:query-error",
        "title": "A question that is not a row expression",
        "status": 422,
        "detail": "no column 'chrned'; did you mean 'churned'?",
        "code": "query-error",
    },
}
_REFUSED = (400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 501, 502, 503, 504)

Responses = dict[int | str, dict[str, Any]]


def shows(*kinds: str, listed: str | None = None) -> Responses:
    """Describe the responses of a door that shows a result of one of these kinds, or a list of them under a name."""
    shown: list[dict[str, Any]] = [{"$ref": _REFS + kind} for kind in kinds]
    one = shown[0] if len(shown) == 1 else {"anyOf": shown}
    if listed is not None:
        one = {"type": "object", "required": [listed], "properties": {listed: {"type": "array", "items": one}}}
    return _with(one)


def tells(example: Mapping[str, Any]) -> Responses:
    """Describe the responses of a door that returns an object like this; None stands for a value that may be null."""
    return _with(_like(example), {"example": example})


def gives(*media: str) -> Responses:
    """Describe the responses of a door that hands out a file."""
    content = {each: {"schema": {"type": "string", "format": "binary"}} for each in media}
    return {200: {"description": "The file.", "content": content}, 304: _SAME, **_refusals()}


_SAME = {"description": "The client already has it, according to its If-None-Match."}


def _with(schema: Mapping[str, Any], example: Mapping[str, Any] | None = None) -> Responses:
    content = {"application/json": {"schema": schema, **(example or {})}}
    return {200: {"description": "What was asked for.", "content": content}, 304: _SAME, **_refusals()}


def _refusals() -> Responses:
    problem = {"content": {MEDIA_TYPE: {"schema": {"$ref": f"{_REFS}Problem"}}}}
    return {status: {"description": "Refused; nothing was charged.", **problem} for status in _REFUSED}


class ByName(dict[str, Any]):
    """An example of things by name, whatever the names are."""


class AnyObject(dict[str, Any]):
    """An example of an object whose keys are defined elsewhere."""


def _like(example: Any) -> dict[str, Any]:
    """The JSON schema of values like this one."""
    if isinstance(example, AnyObject):
        return {"type": "object"}
    if isinstance(example, ByName):
        return {"type": "object", "additionalProperties": _like(next(iter(example.values())))}
    if isinstance(example, Mapping):
        return {
            "type": "object",
            "required": [name for name, value in example.items() if value is not None],
            "properties": {name: _like(value) for name, value in example.items()},
        }
    if isinstance(example, Sequence) and not isinstance(example, str):
        return {"type": "array", "items": _like(example[0]) if example else {}}
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {} if example is None else {"type": kinds[type(example)]}


@cache
def examples() -> dict[str, Any]:
    """A document of each kind, as returned by a service; `python -m server.examples` in tests/ makes them."""
    found: dict[str, Any] = json.loads(resources.files("afresh.server").joinpath("examples.json").read_text("utf-8"))
    return found


def components() -> dict[str, Any]:
    """The schemas that responses refer to: of every result, by its class, and of a problem."""
    adapters: list[Any] = [(kind, "serialization", TypeAdapter(RESULTS[kind])) for kind in RESULTS]
    _, document = TypeAdapter.json_schemas(adapters, ref_template=_REFS + "{model}")
    found: dict[str, Any] = document["$defs"]
    for kind, result in RESULTS.items():
        schema = found[kind]
        named = {"kind": {"const": kind}, **schema["properties"]}
        if kind == "Transcript":
            named |= {"total": {"type": "integer"}, "next": {"type": ["integer", "null"]}}
        schema |= {"properties": named, "required": [*named], "description": (result.__doc__ or "").partition("\n")[0]}
        if kind in examples():
            schema["example"] = examples()[kind]
    return {**found, "Problem": _PROBLEM}
