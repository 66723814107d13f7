"""Results as JSON and back. A document has everything in `to_dict`, and every field of the result by its own name.

`kind` names the class. What is read back is equal to what was written: the same repr, text and page.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from afresh.boards.table import BoardTable, Standing, Submitted
from afresh.errors import ServiceError
from afresh.evaluations.verdicts import Compared, Examined, Proposed, Scored
from afresh.judging.results import Checked, Tried
from afresh.models.verdicts import Comparison, Identical, Ranked, Ranking
from afresh.results.answer import Answer, Interval
from afresh.results.budget import Budget, Coarser
from afresh.results.claims import Claimed, Contested
from afresh.results.fitted import Fitted
from afresh.results.price import Price
from afresh.results.transcript import Record, Transcript
from afresh.statistics.base import Measures

RESULTS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        Answer,
        BoardTable,
        Budget,
        Checked,
        Claimed,
        Compared,
        Comparison,
        Contested,
        Examined,
        Fitted,
        Identical,
        Measures,
        Price,
        Proposed,
        Ranking,
        Record,
        Scored,
        Submitted,
        Transcript,
        Tried,
    )
}
_NESTED = (Interval, Coarser, Ranked, Standing)


def to_json(result: Any) -> dict[str, Any]:
    """A result as a JSON-ready document."""
    told = result.to_dict() if hasattr(result, "to_dict") else {}
    return {"kind": type(result).__name__, **told, **_fields(result)}


def _fields(record: Any) -> dict[str, Any]:
    return {name: _plain(getattr(record, name)) for name in _names(record.__class__)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | float | int):  # most are
        return value
    if type(value).__name__ in RESULTS:
        return to_json(value)
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else repr(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def from_json(document: Any) -> Any:
    """The result that a document describes."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in RESULTS:
        raise ServiceError(
            f"the service sent a result of kind {kind!r}, which this afresh does not know; update afresh."
        )
    return _made(RESULTS[kind], document)


@cache
def _hints(kind: type) -> dict[str, Any]:
    modules = {each.__name__: each for each in (*RESULTS.values(), *_NESTED)}
    return get_type_hints(kind, localns=modules)


def _made(kind: type, document: Any) -> Any:
    try:
        given = {each.name: document[each.name] for each in fields(kind) if each.name in document}
        return kind(**{name: _read(_hints(kind)[name], value) for name, value in given.items()})
    except (TypeError, KeyError, ValueError):
        pass
    raise ServiceError(f"the service sent a {kind.__name__} that this afresh cannot read; update afresh.")


def _read(hint: Any, value: Any) -> Any:
    """Read a JSON value as a value of the given type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _read(next(each for each in inner if each is not type(None)), value)
    if origin is tuple:
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_read(each, item) for each, item in zip(kinds, value, strict=True))
    if origin is dict:
        return {(float(key) if inner[0] is float else key): _read(inner[1], item) for key, item in value.items()}
    if is_dataclass(hint):
        return _made(hint, value)  # type: ignore[arg-type]
    return float(value) if hint is float else value
