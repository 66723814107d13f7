"""What the commands share: exit codes, options, opening and showing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import EllipsisType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh import errors
from afresh.escaping import visible
from afresh.mechanisms.names import OFFERED
from afresh.wire.addresses import is_address, refuse_plan

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.guard.guard import Guard

EXIT_ERROR = errors.AfreshError.exit_code
EPILOG = (
    "Exit codes: 0 answered, 1 other error, 2 bad argument, 3 bad question (free), 4 budget exhausted "
    "(nothing charged), 5 another plan is in force."
)
HELP = {"help_option_names": ["-h", "--help"]}

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs.")]
Data = Annotated[
    str,
    typer.Argument(
        help="A Parquet, CSV or DuckDB file, postgresql://user@host/database, or a service's https://host/NAME.",
        metavar="DATA",
    ),
]
Table = Annotated[
    str | None,
    typer.Option(help="The table, in a database or in a DuckDB file that holds several.", metavar="NAME"),
]
Dates = Annotated[
    str | None,
    typer.Option(help="How a CSV file writes dates, if not as 2025-01-31: such as %m/%d/%Y.", metavar="FORM"),
]
LedgerPlace = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="The ledger: a file, or a postgresql:// address. Default: $AFRESH_LEDGER, or a file in your "
        "state directory.",
        metavar="PLACE",
    ),
]
Analyst = Annotated[
    str | None,
    typer.Option(help="Who is asking, for the record. Default: $AFRESH_ANALYST, or your user name.", metavar="NAME"),
]
Method = Annotated[
    str | None,
    typer.Option(
        help=f"One of {', '.join(OFFERED)}. Default: the narrowest promise, or expected widths if they are much "
        "narrower.",
        metavar="METHOD",
        autocompletion=lambda: list(OFFERED),
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        help="The number of rounds you will ask in: each round uses fresh rows, and answers are narrower.",
        metavar="R",
    ),
]
NoEnd = Annotated[
    bool, typer.Option("--no-end", help="Instead of --questions: a budget that never runs out, at some cost in width.")
]
Open = Annotated[
    str | None,
    typer.Option(
        "--open",
        help="The share of rows you will hold yourself (afresh open-rows), such as 0.5; or best, for the share with "
        "the narrowest answers.",
        metavar="SHARE",
    ),
]
Exam = Annotated[
    float | None,
    typer.Option(help="The share of rows kept for a few final questions (afresh exam).", metavar="SHARE"),
]
Deviation = Annotated[
    float | None,
    typer.Option(
        help="The standard deviation you expect numbers to have, as a share of the range between their bounds, such as "
        "0.05: the plan then allows for such numbers.",
        metavar="SD",
    ),
]
Promise = Annotated[bool, typer.Option("--promise", help="Use only methods that promise their widths in advance.")]


def how_many(questions: int | None, no_end: bool) -> int | EllipsisType | None:
    """The value of `questions` for `afresh.open` and `afresh.plan`: None never runs out, and `...` leaves it open."""
    if no_end and questions is not None:
        raise errors.InvalidArgument(f"--no-end replaces --questions {questions}; leave one of them out.")
    return None if no_end else ... if questions is None else questions


def share_open(given: str | None) -> float | None:
    """The value of --open as `afresh.open` takes it."""
    if given is None or given == "best":
        return None if given is None else True
    try:
        return float(given)
    except ValueError:
        raise errors.InvalidArgument(
            f"--open is {given!r}, must be a share of the rows such as 0.5, or best."
        ) from None


@contextmanager
def opened(
    data: str,
    *arguments: Any,
    table: str | None = None,
    dates: str | None = None,
    check: Callable[[Engine], None] = lambda engine: None,
    **options: Any,
) -> Iterator[Guard]:
    """Open the data, show a waiting person that it is being read, and close it. What `check` refuses fixes no plan."""
    from rich.console import Console
    from rich.markup import escape

    from afresh.engines.open import reading_dates
    from afresh.guard.guard import Guard
    from afresh.guard.open import check_opening, open_desk, opened_engine

    if is_address(data):
        from afresh.client.connect import open_address

        options.pop("must_exist", None)
        given = (*arguments, table, dates, *options.values())
        refuse_plan(any(value is not None and value is not False and value is not ... for value in given))
        with open_address(data) as guard:
            yield guard
        return
    reading = f"Reading {escape(visible(without_password(data)))} ..."
    with Console(stderr=True).status(reading):  # silent unless stderr is a terminal
        opening = check_opening(data, *arguments, **options)
        with opened_engine(reading_dates(data, dates), table, opening) as engine:
            check(engine)
            guard = Guard(open_desk(engine, opening), opening.analyst)
    with guard:
        yield guard


def without_password(place: str) -> str:
    """An address that is safe to show."""
    return re.sub(r"([?&]password=)[^&]*", r"\1...", re.sub("(://[^:/@]*):.*@", r"\1@", place))


def show(result: Any, as_json: bool) -> None:
    """Print a result for people or for programs."""
    print(json.dumps(result.to_dict()) if as_json else result, flush=True)  # so that a full disk is noticed here
