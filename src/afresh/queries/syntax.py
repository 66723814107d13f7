"""Text to sqlglot's syntax tree: one expression, no comments, within limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from afresh.errors import QueryError

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

MAX_CHARACTERS = 10_000
MAX_NESTING = 24  # parentheses, calls and CASEs within each other; sqlglot spends some 30 Python frames on each
TOO_DEEP = f"the question is nested too deeply (at most {MAX_NESTING} levels); split it into several questions"


def syntax(text: str) -> Expression:
    """sqlglot's tree of one expression without comments."""
    from sqlglot import exp
    from sqlglot.dialects import DuckDB
    from sqlglot.errors import ParseError, SqlglotError

    dialect = DuckDB()
    problem = ""
    try:
        nesting = 0
        tokens = dialect.tokenize(text)
        for token in tokens:
            kind = token.token_type.name
            if token.comments:
                raise QueryError("comments are not allowed in a question; leave them out")
            if kind == "SEMICOLON":
                raise QueryError("ask one question at a time; ';' is not allowed")
            nesting += kind in ("L_PAREN", "CASE")
            nesting -= kind in ("R_PAREN", "END")
            if nesting > MAX_NESTING:
                raise QueryError(TOO_DEEP)
        if not tokens:
            raise QueryError('the question is empty; write a condition or a number, as in "age < 30"')
        if tokens[0].token_type.name in ("SELECT", "WITH", "FROM"):
            raise QueryError("write only the condition or number itself, without SELECT, FROM or WHERE")
        trees = dialect.parse_into(exp.Condition, text)
        if len(trees) == 1 and isinstance(trees[0], exp.Expression):
            return trees[0]
    except ParseError as error:
        # sqlglot wraps the first error; its details have a position and quote only the question itself
        inner = error.__cause__ if isinstance(error.__cause__, ParseError) else error
        for detail in inner.errors[:1]:
            where = f" near {detail['highlight']!r}" if detail.get("highlight") else ""
            problem = f"{where}, at character {detail['col']}" if detail.get("col") else where
    except SqlglotError:
        problem = "; check the quotes: text goes in single quotes, with '' for a quote inside"
    raise QueryError(f"this is not an expression: {short(text)}{problem}")


def short(text: str) -> str:
    """Text quoted for a message, cut where it is long."""
    return repr(text if len(text) <= 80 else text[:77] + "...")
