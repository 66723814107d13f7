"""Why a construct is not a row expression, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from afresh.errors import QueryError

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

FUNCTIONS = (
    "abs, ceil, coalesce, exp, floor, greatest, least, length, ln, log10, lower, nullif, power, round, sign, "
    "sqrt, trim, upper"
)
_SUBQUERY = "a question reads one row at a time, so it cannot contain another query"
_CLOCK = "its value changes, and an answer must mean the same later; write the date or number itself"
_SHARE = (
    "every answer is already a mean over the rows: ask for the condition itself (a share of rows) "
    "or for a number with bounds"
)

# by the name of sqlglot's node; checked in this order before the general categories
_SPECIAL = {
    "Star": "* stands for all columns; name one column",
    "Subquery": _SUBQUERY,
    "Select": _SUBQUERY,
    "Exists": _SUBQUERY,
    "All": _SUBQUERY,
    "Any": "ANY is not allowed; write x IN (1, 2, 3)",
    "Window": "a window function looks at other rows; a question reads one row at a time",
    "Filter": _SHARE,
    "Placeholder": "parameters are not filled in; write the value itself",
    "Parameter": "parameters are not filled in; write the value itself",
    "Cast": "casts are not supported yet; numbers compare as they are, a date is written DATE '2025-01-31'",
    "TryCast": "casts are not supported yet; convert the column before opening the data",
    "IntDiv": "// is not allowed; write floor(a / b)",
    "DPipe": "joining text with || is not allowed; compare the columns one by one",
    "NullSafeEQ": "IS NOT DISTINCT FROM is not allowed; write a = b OR (a IS NULL AND b IS NULL)",
    "NullSafeNEQ": "IS DISTINCT FROM is not allowed; write a <> b, with IS NULL where it matters",
    "Escape": "LIKE has no ESCAPE here; % matches any text and _ one character",
    "RegexpLike": "regular expressions are not supported; write LIKE 'abc%'",
    "SimilarTo": "regular expressions are not supported; write LIKE 'abc%'",
    "Glob": "GLOB is not supported; write LIKE 'abc%'",
    "StartsWith": "starts_with is not supported; write LIKE 'abc%'",
    "Contains": "contains is not supported; write LIKE '%abc%'",
    "If": "if() is not allowed; write CASE WHEN a THEN b ELSE c END",
    "Log": "log means different things in different places; write ln(x) or log10(x)",
    "Interval": "intervals are not supported; compare with the date itself, as DATE '2025-01-31'",
    "Tuple": "a list of values is only allowed after IN",
    "Alias": "a name (AS ...) is not part of a question; leave it out",
    "Distinct": _SHARE,
    "Collate": "collations are not supported; write lower(a) = 'x'",
    "Dot": "columns are written without a table or dots",
    "PositionalColumn": "columns are written by name",
    "Null": "NULL may only stand after THEN or ELSE, or in coalesce; to test for it write IS NULL",
}
_CLOCKS = {
    *(
        "now",
        "today",
        "random",
        "rand",
        "uuid",
        "gen_random_uuid",
        "nextval",
        "currval",
        "setseed",
        "version",
    ),
    *(
        "get_current_time",
        "get_current_timestamp",
        "transaction_timestamp",
        "txid_current",
        "current_setting",
    ),
    *("getvariable", "rowid", "pi"),
}
_AGGREGATES = {
    "quantile",
    "mode",
    "any_value",
    "first",
    "last",
    "list",
    "string_agg",
    "histogram",
    "product",
    "fsum",
}


def refuse(node: Expression) -> QueryError:
    """The error for a node that is not on the allowlist."""
    from sqlglot import exp

    kind = type(node).__name__
    if kind == "Anonymous":
        name = str(node.this)
        if name.lower() in _CLOCKS:
            return QueryError(f"{name}() is not allowed: {_CLOCK}")
        if name.lower() in _AGGREGATES:
            return QueryError(f"{name}() is an aggregate: {_SHARE}")
        return QueryError(f"the function {name}() is not allowed{_nearest(name)}; allowed are {FUNCTIONS}")
    if kind in _SPECIAL:
        return QueryError(_SPECIAL[kind])
    name = node.sql_name().lower() if isinstance(node, exp.Func) else kind
    if isinstance(node, exp.AggFunc):
        return QueryError(f"{name}() is an aggregate: {_SHARE}")
    if kind.startswith(("Current", "Local")) or kind in ("Rand", "Randn", "Uuid"):
        return QueryError(f"{name}() is not allowed: {_CLOCK}")
    if isinstance(node, exp.Func):
        return QueryError(f"the function {name}() is not allowed{_nearest(name)}; allowed are {FUNCTIONS}")
    return QueryError(
        f"{kind} is not allowed in a question; allowed are columns, constants, comparisons, AND, OR, NOT, "
        f"IN, BETWEEN, LIKE, IS NULL, CASE, arithmetic and the functions {FUNCTIONS}"
    )


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), FUNCTIONS.split(", "), 1, 0.7)
    return f" (did you mean {close[0]}?)" if close else ""


def unknown_column(name: str, known: Iterable[str], *, quoted: bool) -> QueryError:
    """The error for a column that is not there, with the nearest ones that are."""
    names = list(known)
    by_lower = {each.lower(): each for each in names}
    close = [by_lower[each] for each in difflib.get_close_matches(name.lower(), by_lower, 3, 0.6)]
    hint = f" did you mean {' or '.join(close)}?" if close else ""
    if name.lower() in ("rowid", "file_row_number", "filename"):
        hint = " rows have no number that a question could read."
    elif quoted and not close:
        hint = f" text goes in single quotes: '{name}'."
    shown = ", ".join(names[:30]) + (f", ... ({len(names)} in all)" if len(names) > 30 else "")
    return QueryError(f"there is no column {name!r};{hint} The columns are: {shown}")
