"""Open rows: the part of the rows that an analyst holds in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afresh.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from afresh.guard.desk import Desk
    from afresh.moments import Span

KINDS = ("pandas", "polars", "arrow")


def hand_out(desk: Desk, analyst: str) -> tuple[Any, Span]:
    """Return the open rows as an Arrow table, in the data's order.

    The plan is fixed first: otherwise someone who has seen these rows could choose other rows, or all, to guard an
    answer.
    """
    desk.check_open()
    span = desk.plan.mechanism.open_rows
    if span is None:
        raise InvalidArgument(
            "this dataset was opened without open rows; open another dataset with, for example, open=0.5."
        )
    desk.engine.check_unchanged()
    desk.ledger.fix(desk.terms, analyst)
    table = desk.engine.hand_out(span)
    return table.drop_columns([name for name in table.column_names if name in desk.hidden]), span


def places_of(desk: Desk, span: Span) -> Any:
    """Return the positions of these rows in the data; None for a database table, which has no order."""
    from afresh.engines.embedded.engine import EmbeddedEngine
    from afresh.engines.embedded.rowwise import rows_of_span

    return rows_of_span(desk.engine, span) if isinstance(desk.engine, EmbeddedEngine) else None


def as_kind(kind: str, table: Any, places: Callable[[], Any]) -> Any:
    """Return an Arrow table as a frame of this kind; the index of a pandas frame shows which rows these are."""
    if kind == "arrow":
        return table
    if kind == "polars":
        import polars as pl

        return pl.from_arrow(table)
    try:
        import pandas  # noqa: F401 - to_pandas needs it
    except ImportError:
        return table
    frame, index = table.to_pandas(), places()
    if index is not None:
        frame.index = index
    return frame


def kind_of(data: object) -> str:
    """Return the kind of frame, by the package of its class."""
    package = type(data).__module__.partition(".")[0]
    return {"polars": "polars", "pyarrow": "arrow"}.get(package, "pandas")
