"""Turns what an analyst wrote, SQL text or an Ibis expression, into the one expression tree."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from afresh.errors import QueryError
from afresh.queries.tree import Node, Type


def parse(expression: Any, schema: Mapping[str, Type | None]) -> Node:
    """Return the typed tree of a row expression over the columns of `schema`; `QueryError` says what is wrong."""
    if isinstance(expression, str):
        from afresh.queries.from_sql import from_sql

        return from_sql(expression, schema)
    ibis = sys.modules.get("ibis")  # an Ibis expression exists only if Ibis was imported
    if ibis is not None and isinstance(expression, ibis.Expr | ibis.Deferred):
        from afresh.queries.from_ibis import from_ibis

        return from_ibis(expression, schema)
    raise QueryError(
        "a question is text, as in \"age < 30 AND city = 'Bern'\", or an Ibis expression, as in table.age < 30; "
        f"got {type(expression).__name__}"
    )
