"""An expression as readable SQL-like text, for people; the digest is made from `canonical.serialize`."""

from __future__ import annotations

from afresh.queries.tree import Call, Column, Literal, Node, Op, Type
from afresh.queries.values import SQL_TYPES

# binding strengths besides those of operations; a part that binds less than its surroundings gets parentheses
_NOT, _COMPARISON, _NEGATE, _ATOM = 3, 4, 7, 8


def number(value: float) -> str:
    """A number as a person would write it: 3, not 3.0."""
    value = float(value)  # a whole number is a float to its type, not to Python before 3.12
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def quote_name(name: str) -> str:
    """A column name, quoted only if it must be."""
    plain = name.isidentifier() and name.isascii() and name.upper() not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


# a column with such a name is quoted; sqlglot would read the bare word as something else
_RESERVED = {
    *("AND", "OR", "NOT", "IN", "IS", "LIKE", "ILIKE", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "TRUE"),
    *("FALSE", "NULL", "DATE", "TIMESTAMP", "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "ALL", "ANY", "SOME"),
    *("CAST", "TRY_CAST", "EXTRACT", "INTERVAL", "EXISTS", "WITH", "DISTINCT", "AS", "COLLATE", "ESCAPE", "ISNULL"),
    *("NOTNULL", "GLOB", "SIMILAR", "MAP", "STRUCT", "LATERAL", "ON", "USING", "UNION", "LIMIT", "HAVING", "TIME"),
}


def readable(node: Node, around: int = 0) -> str:
    """The text of an expression, in parentheses where `around` binds more tightly."""
    text, strength = _write(node)
    return f"({text})" if strength < around else text


def _write(node: Node) -> tuple[str, int]:
    match node:
        case Column(name, _):
            return quote_name(name), _ATOM
        case Literal(value, kind):
            if value is None:
                return f"CAST(NULL AS {SQL_TYPES[kind]})", _ATOM
            if isinstance(value, bool):
                return str(value).upper(), _ATOM
            if isinstance(value, float):
                return number(value), _ATOM if value >= 0 else _NEGATE
            quoted = "'" + str(value).replace("'", "''") + "'"
            return quoted if isinstance(value, str) else f"{kind.name} {quoted}", _ATOM
        case Call(op, args, kind):
            return _write_call(op, args, kind)


def _write_call(op: Op, args: tuple[Node, ...], kind: Type) -> tuple[str, int]:
    if op in (Op.LESS, Op.LESS_EQUAL) and isinstance(args[0], Literal):  # a > 3 reads better than 3 < a
        left, right = (readable(arg, _COMPARISON + 1) for arg in args)
        return f"{right} {'>' if op is Op.LESS else '>='} {left}", _COMPARISON
    if strength := op.row.binds:
        # the left side of a - b needs no parentheses, both sides of a = b do, and no part of a AND b AND c does
        first = strength + (strength == _COMPARISON)
        others = strength + (op not in (Op.AND, Op.OR))
        parts = (readable(arg, others if place else first) for place, arg in enumerate(args))
        return f" {op.row.sign} ".join(parts), strength
    if op is Op.NOT:
        return _write_not(args[0])
    if op in (Op.IS_NULL, Op.IS_TRUE):
        return f"{readable(args[0], _COMPARISON + 1)} {op.row.sign}", _COMPARISON
    if op is Op.IN:
        return _write_in(args, "IN"), _COMPARISON
    if op is Op.NEGATE:
        return "-" + readable(args[0], _ATOM), _NEGATE
    if op is Op.CASE:
        return _write_case(args), _ATOM
    if op in (Op.TO_NUMBER, Op.TO_TEXT):
        return f"CAST({readable(args[0])} AS {SQL_TYPES[kind]})", _ATOM
    return f"{op.value}({', '.join(map(readable, args))})", _ATOM


def _write_case(args: tuple[Node, ...]) -> str:
    # a bare NULL takes the type of the other results, if there are any
    results = (*args[1:-1:2], args[-1])
    bare = any(not _is_null(result) for result in results)
    words = ["NULL" if bare and _is_null(result) else readable(result) for result in results]
    when = " ".join(f"WHEN {readable(test)} THEN {word}" for test, word in zip(args[:-1:2], words[:-1], strict=True))
    return f"CASE {when}{'' if words[-1] == 'NULL' else f' ELSE {words[-1]}'} END"


def _is_null(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is None


def _write_in(args: tuple[Node, ...], word: str) -> str:
    return f"{readable(args[0], _COMPARISON + 1)} {word} ({', '.join(map(readable, args[1:]))})"


def _write_not(node: Node) -> tuple[str, int]:
    if isinstance(node, Call):
        if node.op is Op.EQUAL:
            return " <> ".join(readable(arg, _COMPARISON + 1) for arg in node.args), _COMPARISON
        if node.op is Op.IS_NULL:
            return f"{readable(node.args[0], _COMPARISON + 1)} IS NOT NULL", _COMPARISON
        if node.op is Op.IN:
            return _write_in(node.args, "NOT IN"), _COMPARISON
    return f"NOT {readable(node, _NOT)}", _NOT
