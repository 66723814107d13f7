"""Counts a comparison of a DuckDB file's dates with a constant as they are stored, less those beyond the language.

Rows where it is true of a year beyond the language are counted separately and subtracted. A file knows the least and
largest value of every column in each block, so for most files the second count reads nothing, while a second comparison
in the first count would take a quarter of its time. (For numbers it gains less.)
"""

from __future__ import annotations

from collections.abc import Mapping

from afresh.engines.sql.duckdb import DuckDBDialect, column
from afresh.engines.sql.rendering import end_of, write_constant
from afresh.queries.query import Query
from afresh.queries.tree import Call, Column, Literal, Op

_AS_STORED = {"DATE", "TIMESTAMP"}  # others are cast before they are compared, which blocks cannot use


def count_stored(query: Query, relation: str, columns: Mapping[str, str]) -> str | None:
    """Return SQL for the number of rows, and of rows where such a comparison is true; None for other questions."""
    if query.group is not None or query.fill or query.complement or not isinstance(query.expression, Call):
        return None
    op, (left, right) = query.expression.op, (*query.expression.args, None, None)[:2]
    if op not in (Op.LESS, Op.LESS_EQUAL):
        return None
    if isinstance(left, Column) and isinstance(right, Literal):
        named, constant, sides = left, right, "{0} < {1}"
    elif isinstance(left, Literal) and isinstance(right, Column):
        named, constant, sides = right, left, "{0} > {1}"
    else:
        return None
    if columns[named.name] not in _AS_STORED or constant.value is None:
        return None
    dialect, name = DuckDBDialect(), column(named.name)
    texts = [name if arg is named else write_constant(dialect, constant) for arg in (left, right)]
    compared = dialect.rules[op].write(texts)
    beyond = sides.format(name, end_of(dialect, named.type, 0 if named is left else 1))
    apart = f"(SELECT count(*) FROM {relation} AS d WHERE {beyond})"
    return f"SELECT count(*), count_if({compared}) - {apart} FROM {relation} AS d"
