"""Trees as text, for sorting and for digests."""

from __future__ import annotations

import json
from datetime import date

from afresh.queries.tree import Call, Column, Literal, Node


def serialize(node: Node) -> str:
    """Return an injective text of a tree, in JSON: equal texts mean equal trees."""
    match node:
        case Column(name, kind):
            return _plain(["column", name, kind.value])
        case Literal(value, kind):
            # repr keeps every double exactly; JSON's own number format is not ours to rely on
            text = repr(value) if isinstance(value, float) else value
            return _plain(["literal", kind.value, text.isoformat() if isinstance(text, date) else text])
        case Call(op, args, kind):
            if node.serialized is None:
                parts = (_plain(op.value), _plain(kind.value), *map(serialize, args))
                object.__setattr__(node, "serialized", f"[{','.join(parts)}]")
            assert node.serialized is not None
            return node.serialized


_plain = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode
