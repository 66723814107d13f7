"""The static types of operands: what may be combined with what, and the message when it may not."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time

from afresh.errors import QueryError
from afresh.queries.text import readable
from afresh.queries.tree import Call, Literal, Node, Op, Type

Operand = Node | None  # None is NULL, which takes its type from its neighbor

TIMES = (Type.DATE, Type.TIMESTAMP)
# stricter than datetime.fromisoformat, whose grammar grows from one Python version to the next
_ISO = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)
_MONTH = "(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
_DAYS = rf"([0-9]{{1,4}}|{_MONTH})([-/.: ,]+([0-9]{{1,4}}|{_MONTH})){{1,2}}([ T,]+[0-9].*)?"
_LOOKS_DATED = re.compile(rf"(?i)(?=.*[0-9])({_DAYS}|[0-9]{{1,2}}(:[0-9]{{2}}){{1,2}}.*)")
_LOOKS_COUNTED = re.compile(r"[-+(]?\s*[$€£¥]?\s*[-+]?[0-9]{1,3}([,' _][0-9]{3})*([.,][0-9]*)?\s*[%)$€£¥]?")
_NULL = "NULL is allowed only after THEN or ELSE, or in coalesce; to test for it write IS NULL"


def short(text: str) -> str:
    """Text quoted for a message, shortened if it is long."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def expect(node: Operand, kind: Type, where: str) -> Node:
    """Return the node, which must have the type `kind`."""
    if node is None:
        raise QueryError(_NULL)
    if node.type is kind:
        return node
    hint = ""
    if node.type is Type.BOOLEAN and kind is Type.NUMBER:
        hint = "; write CASE WHEN condition THEN 1 ELSE 0 END"
    elif kind is Type.BOOLEAN and node.type is Type.NUMBER:
        hint = "; compare it, as in x <> 0"
    elif kind is Type.NUMBER and node.type is Type.TEXT:
        hint = "; write TRY_CAST(x AS DOUBLE), which is NULL where the text is not a number"
    elif kind is Type.NUMBER and node.type in TIMES:
        hint = "; write year(x) or another date part, or date_diff('day', a, b)"
    elif kind is Type.TEXT and node.type is Type.NUMBER:
        hint = "; write TRY_CAST(x AS VARCHAR), NULL where the number is not whole"
    raise QueryError(f"{where} needs a {kind.value}, but {describe(node)} is a {node.type.value}{hint}")


def need_order(operands: Sequence[Node], where: str) -> None:
    """Refuse to order conditions, and to order text beside what is meant as a date or a number."""
    kind = operands[0].type
    if kind is Type.BOOLEAN:
        raise QueryError(f"conditions have no order ({where}); write NOT a, a = b or a AND b")
    if kind is not Type.TEXT:
        return
    text = next((text for node in operands for text in _texts(node) if _meant(text)), None)
    if text is None:
        return
    other = describe(next((node for node in operands if not isinstance(node, Literal)), operands[0]))
    beside = f"{short(text)} looks like a {_meant(text)}, but {other} is text, and text is ordered letter by letter"
    if _meant(text) == "number":
        remedy = f"'10' comes before '9'. Write TRY_CAST({other} AS DOUBLE), and the number without quotes"
    else:
        remedy = (
            "'12/31/2019' comes after '01/31/2020'. Say how a CSV file writes dates: afresh.CSV(path, "
            'dates="%m/%d/%Y"), or --dates; or make the column a date before you open the data'
        )
    raise QueryError(f"{beside}: {remedy}")


def _texts(node: Node) -> list[str]:
    """The constant texts that an expression may have as its value."""
    if isinstance(node, Literal):
        return [node.value] if isinstance(node.value, str) else []
    if not isinstance(node, Call) or node.op not in (Op.CASE, Op.COALESCE, Op.LEAST, Op.GREATEST):
        return []
    chosen = (*node.args[1:-1:2], node.args[-1]) if node.op is Op.CASE else node.args
    return [text for arg in chosen for text in _texts(arg)]


def _meant(text: str) -> str | None:
    """What a text looks like, if it is not meant as a text."""
    with suppress(ValueError):
        return "number" if math.isfinite(float(text)) else None
    if _LOOKS_COUNTED.fullmatch(text.strip()):
        return "number"
    return "date" if _LOOKS_DATED.fullmatch(text.strip()) else None


def align(left: Operand, right: Operand, where: str) -> tuple[Node, Node]:
    """Two nodes of one type; a text constant next to a date becomes a date if it is one."""
    if left is None or right is None:
        raise QueryError("comparing with NULL is true for no row; write IS NULL or IS NOT NULL")
    if left.type is right.type:
        return left, right
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Literal) and other.type in TIMES:
            changed: Node | None = None
            if isinstance(one.value, str):
                changed = moment(one.value, other.type)
            elif one.type is Type.DATE and isinstance(one.value, date):
                changed = Literal(datetime.combine(one.value, time()), Type.TIMESTAMP)
            if changed is not None:
                return (changed, right) if one is left else (left, changed)
    hint = ""
    if Type.BOOLEAN in (left.type, right.type):
        hint = "; a condition is used by itself (a, NOT a) or turned into a number by CASE WHEN a THEN 1 ELSE 0 END"
    elif {left.type, right.type} == {Type.TEXT, Type.NUMBER}:
        hint = "; text goes in single quotes, numbers go without; a text column is read by TRY_CAST(x AS DOUBLE)"
    elif {left.type, right.type} == set(TIMES):
        hint = "; write date_diff('day', a, b), which takes both"
    raise QueryError(
        f"{where} needs operands of one type, but {describe(left)} is a {left.type.value} and "
        f"{describe(right)} a {right.type.value}{hint}"
    )


def alike(nodes: Sequence[Operand], where: str) -> list[Node]:
    """Operands of one type, where NULL takes the type of the others."""
    typed = [node for node in nodes if node is not None]
    if not typed:
        raise QueryError(f"{where} needs a value besides NULL")
    # a date among texts: the texts must be dates too; a timestamp among dates: constant dates become timestamps
    model = min(typed, key=lambda node: (node.type is not Type.TIMESTAMP, node.type is not Type.DATE))
    return [Literal(None, model.type) if node is None else align(model, node, where)[1] for node in nodes]


def describe(node: Node) -> str:
    """Describe a tree in a message: in words, shortened if there are many."""
    text = readable(node) if node.size < 20 else "the expression"
    return _cut(text)


def moment(text: str, kind: Type) -> Literal:
    """A date or timestamp constant from ISO text."""
    try:
        stripped = text.strip(" ")
        when = datetime.fromisoformat(stripped) if _ISO.fullmatch(stripped) else None
        if when is not None and (kind is Type.TIMESTAMP or when == datetime.combine(when, time())):
            return Literal(when if kind is Type.TIMESTAMP else when.date(), kind)
    except ValueError:
        pass
    example = "DATE '2025-01-31'" if kind is Type.DATE else "TIMESTAMP '2025-01-31 12:00:00' (without a zone)"
    raise QueryError(f"{short(text)} is not a {kind.value}; write {example}")
