"""Turns text into sqlglot's syntax tree: one expression, no comments, within limits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from afresh.errors import QueryError
from afresh.queries.typing import short

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.expressions import Expression

MAX_CHARACTERS = 10_000
MAX_STEPS = 40  # of sqlglot's parser per token: it backtracks, endlessly in struct(struct(...; usually it takes 1 to 3
MAX_NESTING = 24  # nested parentheses, calls and CASEs; sqlglot spends about 30 Python frames on each
TOO_LONG = "this question takes too long to read; write it with fewer nested calls"
TOO_DEEP = f"the question is nested too deeply (at most {MAX_NESTING} levels); split it into several questions"

IF = "if() is not allowed; write CASE WHEN a THEN b ELSE c END"
_TEXT = "text goes in plain single quotes, as in 'abc', with '' for a quote inside"
_JSON = "is not allowed: JSON and functions of lists are not part of a question; ask about plain columns"
# tokens that none of our expressions contain, refused before sqlglot's parser spends time on them
_REFUSED = {
    "SEMICOLON": "ask one question at a time; ';' is not allowed",
    "L_BRACKET": "lists and slices in [ ] are not allowed; write x IN (1, 2, 3), or substring(x, 1, 2)",
    "L_BRACE": "structs in { } are not allowed; ask about plain columns",
    "ARROW": f"-> {_JSON}",
    "DARROW": f"->> {_JSON}",
    "HASH_ARROW": f"#> {_JSON}",
    "DHASH_ARROW": f"#>> {_JSON}",
    "FARROW": f"=> {_JSON}",
    "COLON_EQ": ":= is not allowed; arguments have no names",
    "HEREDOC_STRING": f"$ quotes are not allowed; {_TEXT}",
    "BYTE_STRING": f"e'...' is not allowed; {_TEXT}",
    "RAW_STRING": f"raw text is not allowed; {_TEXT}",
    "NATIONAL_STRING": f"n'...' is not allowed; {_TEXT}",
    "UNICODE_STRING": f"u&'...' is not allowed; {_TEXT}",
    "HEX_STRING": "numbers are written in decimal digits, as 255 or 1.5e3",
    "BIT_STRING": "numbers are written in decimal digits, as 255 or 1.5e3",
    "HINT": "comments are not allowed in a question; leave them out",
}
_CLAUSES = {
    "WHERE": 'WHERE is not part of a question; pass the condition separately: ask("amount", where="tenure < 3"), or '
    "--where on the command line",
    "GROUP_BY": "GROUP BY is not part of a question; for the mean of every group write guard.measure("
    'afresh.statistics.GroupMeans("amount", by="country", categories=["CH", "AT"], bounds=(low, high)))',
    "HAVING": "a question has no groups to pick; leave out HAVING",
}
_STATEMENTS = {
    *("INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "COPY", "ATTACH", "DETACH"),
    *("INSTALL", "LOAD", "PRAGMA", "SET", "EXPLAIN", "DESCRIBE", "SHOW", "CALL", "EXPORT", "IMPORT", "VALUES"),
    *("SUMMARIZE", "VACUUM", "TRUNCATE", "GRANT", "EXECUTE", "PREPARE", "USE", "BEGIN", "COMMIT", "ROLLBACK"),
}


def syntax(text: str) -> Expression:
    """Return sqlglot's tree of one expression without comments."""
    from sqlglot import exp
    from sqlglot.errors import ParseError, SqlglotError

    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"the question has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed")
    if re.search("[\0\ud800-\udfff]", text):
        raise QueryError("the question contains a NUL character or half a surrogate pair, which data never contains")
    dialect = _duckdb()
    problem, first = "", ""
    try:
        tokens = dialect.tokenize(text)
        first = _check_tokens(tokens, text)
        parser = _metered()(dialect=dialect)
        parser.left = MAX_STEPS * (len(tokens) + 1)
        trees = parser.parse_into(exp.Condition, tokens, text)
        if len(trees) == 1 and isinstance(trees[0], exp.Expression):
            return trees[0]
    except ParseError as error:
        # sqlglot wraps the first error; its details have a position and quote only the question itself
        inner = error.__cause__ if isinstance(error.__cause__, ParseError) else error
        for detail in inner.errors[:1]:
            where = f" near {short(detail['highlight'])}" if detail.get("highlight") else ""
            problem = f"{where}, at character {detail['col']}" if detail.get("col") else where
    except SqlglotError:
        problem = f"; check the quotes: {_TEXT}"
    if first in _STATEMENTS:
        raise QueryError(f"{first} is not part of a question; write only the condition or number itself")
    raise QueryError(f"this is not an expression: {short(text)}{problem}")


def uncycle(tree: Expression) -> None:
    """Take the parents from the nodes of a tree that was read: only Python's garbage collector frees cycles."""
    for node in tree.dfs():
        node.parent = None


@cache
def _duckdb() -> Dialect:
    """Return the dialect of questions, which keeps nothing of what it reads."""
    from sqlglot.dialects import DuckDB

    dialect: Dialect = DuckDB()
    return dialect


@cache
def _metered() -> Any:
    """Return parsers that stop after a fixed count of steps, not a time: a question is either always read or never."""

    class Metered(_duckdb().parser_class):  # type: ignore[misc]  # known only when sqlglot is loaded
        left = 0

        def _advance(self, times: int = 1) -> None:
            self.left -= 1
            if self.left < 0:
                raise QueryError(TOO_LONG)
            super()._advance(times)

    return Metered


def _check_tokens(tokens: Sequence[Any], text: str) -> str:
    """Refuse non-expressions, and text too long or too deep for sqlglot; return the first word, in capitals."""
    nesting = chain = 0
    first = clause = None
    for token in tokens:
        kind = token.token_type.name
        if token.comments:
            raise QueryError("comments are not allowed in a question; leave them out")
        if kind in _REFUSED:
            raise QueryError(_REFUSED[kind])
        written = text[token.start : token.end + 1]
        if kind == "NUMBER" and "__" in written:  # most versions of sqlglot read 1__0 as 10, others refuse it
            raise QueryError(f"{short(written)} is not a number; write decimal digits, as 255 or 1.5e3")
        first = token if first is None else first
        clause = _CLAUSES.get(kind) if clause is None and not nesting else clause
        nesting += kind in ("L_PAREN", "CASE")
        nesting -= kind in ("R_PAREN", "END")
        chain = chain + 1 if kind in ("NOT", "DASH", "PLUS", "TILDE") else 0  # - - - x nests without parentheses
        if max(nesting, chain) > MAX_NESTING:
            raise QueryError(TOO_DEEP)
    if first is None:
        raise QueryError('the question is empty; write a condition or a number, as in "age < 30"')
    if first.text.upper() == "IF" and [token.token_type.name for token in tokens[1:2]] != ["L_PAREN"]:
        raise QueryError(IF)  # sqlglot would read a statement, and log it
    if first.token_type.name in ("SELECT", "WITH", "FROM"):
        raise QueryError(
            "write only the condition or number itself, without SELECT and FROM"
            + ("" if clause is None else f"; {clause}")
        )
    if clause is not None:
        raise QueryError(clause)
    return str(first.text).upper()
