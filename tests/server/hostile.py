"""Bodies with one hostile value each, at every place of a good body for every door of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from afresh.wire.arguments import LOSSES, OF_MODELS, OF_ROWS, STATISTICS

HOSTILE = (
    *("null", "true", "0", "-1", "1e999", "-1e999", "NaN", "Infinity", "5e-324", "1" + "0" * 400, "-" + "9" * 5000),
    *('""', '" "', '"churned"', '"\\ud800"', '"\\u0000"', '"\\u202e\\u0661"', f'"{"x" * 300}"', '"(((("'),
    *("[]", "[[]]", "[null, null]", "[1, 0]", '["a", {}]', "[" * 60 + "]" * 60, "[0.5, 0.5, 0.5]"),
    *("{}", '{"kind": {}}', '{"kind": "AUC"}', '{"": 1}', '{"\\ud800": "\\ud800"}', '{"a": ' * 60 + "1" + "}" * 60),
)
"""Values that no schema expects, as JSON."""

_USUAL: dict[str, Any] = {
    "expression": "tenure",
    "x": "tenure",
    "y": "amount",
    "by": "country",
    "bounds": [0, 120],
    "where": "churned",
    "bounds_x": [0, 120],
    "bounds_y": [0, 500],
    "edges": [0.2, 0.6],
    "level": 0.5,
    "categories": ["CH", "DE"],
    "expressions": ["churned", "tenure < 5"],
    "radius": 1.5,
    "centre": 0.5,
    "within": 3.0,
    "points": 4,
    "missing": 0,
    "missing_x": 0,
    "missing_y": 0,
    "thresholds": [0.5],
    "positive": True,
    "clip": 3.0,
    "quantile": 0.5,
    "costs": [[0, 1], [1, 0]],
}


_SHORT = {"steps": 1, "rows": None, "guess": [0.5, 0.1], "norm": 2.0}


def _document(kind: str, made: Any) -> dict[str, Any]:
    """A statistic or a loss with all that it takes."""
    return {"kind": kind, **{each.name: _USUAL[each.name] for each in fields(made)}}


def good(schemas: dict[str, Any], told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Bodies that a door takes, with every key that it knows."""
    (shown,) = [each for media, each in told["requestBody"]["content"].items() if media == "application/json"]
    schema = shown["schema"]
    schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "example" in shown:
        yield dict(shown["example"])
        return
    made = {name: _value(schemas, each) for name, each in schema["properties"].items()} | _SHORT
    made = {name: made[name] for name in schema["properties"]}
    always = {*schema.get("required", ()), *({"question"} & made.keys())}
    least = {name: made[name] for name in made if name in always}
    for name in made.keys() - always - {"statistic"}:
        yield {**least, name: made[name]}
    for kind in OF_ROWS if "statistic" in made else ():
        yield {"statistic": _document(kind, STATISTICS[kind])}
        for name in made.keys() - {"statistic", "question"}:
            yield {"statistic": _document(kind, STATISTICS[kind]), name: made[name]}
    if not made.keys() - always:
        yield least


def _value(schemas: dict[str, Any], schema: dict[str, Any]) -> Any:
    """Some value of a schema: its example, where it has one."""
    if "$ref" in schema:
        return _value(schemas, schemas[schema["$ref"].rpartition("/")[2]])
    if schema.get("examples"):
        return schema["examples"][0]
    if "anyOf" in schema:
        return _value(schemas, schema["anyOf"][0])
    if "properties" in schema:
        return {name: _value(schemas, each) for name, each in schema["properties"].items()}
    if "prefixItems" in schema:
        return list(range(len(schema["prefixItems"])))
    plain = {"string": "churned", "integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}}
    return schema.get("default") or plain[schema["type"]]


def of_models(rows: int) -> Iterator[dict[str, Any]]:
    """Predictions with every option."""
    predictions = {"a": [0, 1] * (rows // 2), "b": [1, 0] * (rows // 2)}
    options = {"names": ["a", "b"], "kinds": ["predictions", "predictions"], "precision": 0.1, "by": 0.0}
    options |= {"between": [0.1, None], "challenge": False, "incumbent": False, "bins": 4, "disagreement": 0.5}
    options |= {"among": 2, "binned": True}
    yield {"predictions": predictions, **options}
    for kind, made in LOSSES.items():
        yield {"predictions": predictions, "loss": _document(kind, made)}
    for kind in OF_MODELS:
        yield {"predictions": {"a": predictions["a"]}, "statistic": _document(kind, STATISTICS[kind])}
    yield {"predictions": {"a": predictions["a"]}, "statistic": _document("Variance", STATISTICS["Variance"])}


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document, of a long list only the first two."""
    yield path
    if isinstance(document, dict):
        for name, value in document.items():
            yield from places(value, (*path, name))
    elif isinstance(document, list):
        for place, value in enumerate(document[:2]):
            yield from places(value, (*path, place))


MARK = "the hostile value"


def replaced(document: Any, path: tuple[Any, ...]) -> Any:
    """The document with the mark at one place."""
    if not path:
        return MARK
    if isinstance(document, dict):
        return {**document, path[0]: replaced(document[path[0]], path[1:])}
    changed = list(document)
    changed[path[0]] = replaced(document[path[0]], path[1:])
    return changed
