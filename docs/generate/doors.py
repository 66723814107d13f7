"""The reference of the service's HTTP interface, from its OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

INTRODUCTION = """# HTTP

A service answers below `/v1` ([how to run one](../service.md)). Send the token with every request, as
`Authorization: Bearer TOKEN`. A question asked twice is free, so every request may be repeated. A refusal is a problem
document (`application/problem+json`) with a `code`. A running service gives the machine-readable description at
`/v1/openapi.json`; this page is made from it.
"""


def doors_page() -> str:
    """Every door of the service, as Markdown."""
    from afresh.server.app import make_app
    from afresh.server.config import Config

    document = make_app(Config({})).openapi()
    return "\n".join([INTRODUCTION, *_doors(document)])


def _doors(document: dict[str, Any]) -> Iterator[str]:
    for path, doors in document["paths"].items():
        for verb, door in doors.items():
            yield f"## {verb.upper()} {path}\n\n{door.get('description') or door.get('summary', '')}\n"
            rows = [
                f"| `{each['name']}` | {each['in']} | {_kind(each.get('schema', {}))} | {each.get('description', '')} |"
                for each in door.get("parameters", ())
            ]
            for kind, body in door.get("requestBody", {}).get("content", {}).items():
                rows += [
                    f"| {name} | body, `{kind}` | {what} | {told} |" for name, what, told in _fields(document, body)
                ]
            if rows:
                yield "\n".join(["| name | where | kind | |", "|---|---|---|---|", *rows, ""])
            codes = ", ".join(f"`{code}` {answer['description']}" for code, answer in door["responses"].items())
            yield f"Answers: {codes}.\n"


def _fields(document: dict[str, Any], body: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    schema = body.get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    needed = schema.get("required", ())
    for name, each in schema.get("properties", {}).items():
        yield f"`{name}`" + (" (required)" if name in needed else ""), _kind(each), each.get("description", "")
    if "properties" not in schema:
        yield "", _kind(schema), schema.get("description", "")


def _kind(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
