"""Commands about parts of the rows: the open rows, and the rows kept for the exam."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh import errors
from afresh.cli.options import Analyst, Data, Dates, Json, LedgerPlace, Table, opened
from afresh.escaping import visible

if TYPE_CHECKING:
    from afresh.engines.base import Engine


def exam(
    data: Data,
    expressions: Annotated[list[str], typer.Argument(help="Row expressions in SQL.", metavar="EXPR...")],
    ledger: LedgerPlace = None,
    table: Table = None,
    dates: Dates = None,
    analyst: Analyst = None,
    as_json: Json = False,
) -> None:
    """Take the exam, once: a few final questions, answered exactly from rows that nothing else has touched.

    The dataset must have been opened with --exam. Repeating the exam gives the
    same answers.

    Example: afresh exam holdout.parquet "churned" "churned AND tenure < 3"
    """
    from afresh.queries.asked import make_asked

    def check(engine: Engine) -> None:
        for each in expressions:
            make_asked(each, engine.schema)

    with opened(data, ledger=ledger, table=table, dates=dates, analyst=analyst, must_exist=True, check=check) as guard:
        answers = guard.exam(expressions)
    print(json.dumps([each.to_dict() for each in answers]) if as_json else "\n".join(map(str, answers)), flush=True)


def open_rows(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="A Parquet or CSV file to write.", metavar="FILE")],
    ledger: LedgerPlace = None,
    table: Table = None,
    dates: Dates = None,
    analyst: Analyst = None,
) -> None:
    """Write the open rows to a file, for you to inspect, plot and fit models on. This fixes the plan.

    The dataset must have been opened with --open.

    Example: afresh open-rows holdout.parquet --out mine.parquet
    """
    if out.suffix.lower() not in (".parquet", ".csv"):
        raise errors.InvalidArgument(f"--out is {str(out)!r}, must be a .parquet or a .csv file.")
    if out.exists():
        raise errors.InvalidArgument(f"--out is {str(out)!r}, which already exists; name a new file.")
    with opened(data, ledger=ledger, table=table, dates=dates, analyst=analyst, must_exist=True) as guard:
        rows = guard.open_rows("arrow")
    if out.suffix.lower() == ".csv":
        from pyarrow import csv

        csv.write_csv(rows, out)
    else:
        from pyarrow import parquet

        parquet.write_table(rows, out)
    typer.echo(f"Wrote {rows.num_rows:,} open rows to {visible(out)}.", err=True)
