"""Casts: all of them are try-casts, which give NULL on failure."""

from __future__ import annotations

from afresh.errors import QueryError
from afresh.queries.build import call, case, number
from afresh.queries.tree import Literal, Node, Op, Type
from afresh.queries.typing import Operand, moment
from afresh.queries.values import SQL_TYPES

# the SQL names of the types a cast may give, in sqlglot's spelling
KINDS = {name: kind for kind, name in SQL_TYPES.items()} | {"TEXT": Type.TEXT, "TIMESTAMPNTZ": Type.TIMESTAMP}
_WHOLE = {
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "INT128", "MEDIUMINT"),
    *("UTINYINT", "USMALLINT", "UINT", "UBIGINT", "UINT128"),
}


def cast(value: Operand, to: str) -> Node:
    """CAST(value AS to), by sqlglot's name for the type; NULL if the value cannot be read as one."""
    kind = KINDS.get(to, Type.NUMBER if to in _WHOLE else None)
    if kind is None:
        hint = {
            "FLOAT": "write DOUBLE; every number is a double here",
            "DECIMAL": "write round(x, digits); every number is a double here",
        }.get(to, "values can be cast to DOUBLE and VARCHAR, constants also to DATE and TIMESTAMP")
        raise QueryError(f"a cast to {to} is not allowed; {hint}")
    if value is None:
        return Literal(None, kind)
    if to in _WHOLE and value.type is not Type.BOOLEAN:
        raise QueryError(
            f"a cast to {to} would round, differently on each engine; write round(x), floor(x) or ceil(x)"
            + (" of TRY_CAST(x AS DOUBLE)" if value.type is Type.TEXT else "")
        )
    if value.type is kind:
        return value
    match value.type, kind:
        case Type.TEXT, Type.NUMBER:
            return call(Op.TO_NUMBER, value)
        case Type.NUMBER, Type.TEXT:
            return call(Op.TO_TEXT, value)
        case Type.BOOLEAN, Type.NUMBER:
            return case([value, call(Op.NOT, value)], [number(1), number(0), None])
        case Type.BOOLEAN, Type.TEXT:
            return case([value, call(Op.NOT, value)], [Literal("true", kind), Literal("false", kind), None])
        case Type.TEXT, Type.DATE | Type.TIMESTAMP if isinstance(value, Literal) and isinstance(value.value, str):
            return moment(value.value, kind)
    hints = {
        Type.BOOLEAN: "compare it instead, as in x <> 0 or x = 'true'",
        Type.NUMBER: "write year(x) or another date part, or date_diff('day', a, b)",
        Type.TEXT: "write year(x) or another date part, or compare it with DATE '2025-01-31'",
        Type.DATE: "dates are read from columns of dates, or written DATE '2025-01-31'; convert the column before "
        "opening the data",
    }
    hint = hints[Type.DATE if kind is Type.TIMESTAMP else kind]
    raise QueryError(f"a cast of a {value.type.value} to {to} is not allowed; {hint}")
