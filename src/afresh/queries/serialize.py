"""Trees as text, for sorting and for digests."""

from __future__ import annotations

import json
from datetime import date

from afresh.queries.tree import Call, Column, Literal, Node


def serialize(node: Node) -> str:
    """An injective text of a tree: equal texts, equal trees."""
    return json.dumps(_plain(node), ensure_ascii=True, separators=(",", ":"))


def _plain(node: Node) -> list[object]:
    match node:
        case Column(name, kind):
            return ["column", name, kind.value]
        case Literal(value, kind):
            # repr keeps every double exactly; JSON's own number format is not ours to rely on
            text = repr(value) if isinstance(value, float) else value
            return ["literal", kind.value, text.isoformat() if isinstance(text, date) else text]
        case Call(op, args, kind):
            return [op.value, kind.value, *map(_plain, args)]
