"""Commands for stewards: releases made elsewhere, shares, receipts."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh import errors
from afresh.cli.options import (
    EXIT_ERROR,
    Analyst,
    Data,
    Dates,
    Json,
    LedgerPlace,
    Table,
    opened,
    show,
    without_password,
)
from afresh.escaping import visible

if TYPE_CHECKING:
    from afresh.ledger import Ledger
    from afresh.receipts import Verification


def charge(
    data: Data,
    revealed: Annotated[
        str, typer.Argument(help="What was revealed, in your own words, for the record.", metavar="WORDS")
    ],
    kl: Annotated[float | None, typer.Option(help="Its KL stability, in nats.", metavar="EPS")] = None,
    zcdp: Annotated[float | None, typer.Option(help="Its zero-concentrated privacy.", metavar="RHO")] = None,
    pure_dp: Annotated[float | None, typer.Option(help="Its pure differential privacy.", metavar="EPS")] = None,
    noise_sd: Annotated[
        float | None, typer.Option(help="The Gaussian noise on a published mean of values in [0, 1].", metavar="SD")
    ] = None,
    study: Annotated[
        Path | None, typer.Option(help="The receipt of a finished guard over some of the rows.", metavar="RECEIPT")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="The number of rows it used, if not all.", metavar="M")] = None,
    count: Annotated[int, typer.Option(help="The number of such releases.", metavar="N")] = 1,
    ledger: LedgerPlace = None,
    table: Table = None,
    dates: Dates = None,
    analyst: Analyst = None,
    as_json: Json = False,
) -> None:
    """Record what was revealed about the rows outside the guard, to keep later intervals honest.

    Give one of --kl, --zcdp, --pure-dp, --noise-sd and --study. Charging the
    same text and numbers again is free.

    Example: afresh charge holdout.parquet "noisy mean in the 2025 report" --noise-sd 0.05
    """
    with opened(data, ledger=ledger, table=table, dates=dates, analyst=analyst, must_exist=True) as guard:
        protected = {"kl": kl, "zcdp": zcdp, "pure_dp": pure_dp, "noise_sd": noise_sd}
        show(guard.charge(revealed, study=study, rows=rows, count=count, **protected), as_json)


def divide(
    data: Data,
    shares: Annotated[
        list[str], typer.Argument(help="Analysts, and how many answers each may have.", metavar="NAME=K...")
    ],
    ledger: LedgerPlace = None,
    table: Table = None,
    dates: Dates = None,
    analyst: Analyst = None,
    as_json: Json = False,
) -> None:
    """Divide the budget among named analysts; all others share the rest. A later division replaces this one.

    Example: afresh divide holdout.parquet ann=400 bob=300
    """
    parsed: dict[str, int] = {}
    for share in shares:
        name, separator, count = share.rpartition("=")
        if not separator or not name.strip() or not re.fullmatch(r"\d{1,15}", count):
            from afresh.checks import wrong

            raise wrong("share", share, "of the form NAME=K, for example ann=400")
        if name in parsed:
            raise errors.InvalidArgument(f"{name!r} is named twice.")
        parsed[name] = int(count)
    with opened(data, ledger=ledger, table=table, dates=dates, analyst=analyst, must_exist=True) as guard:
        show(guard.divide(parsed), as_json)


def receipt(
    data: Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The JSON file; an HTML page is written next to it.", metavar="FILE")
    ] = Path("receipt.json"),
    markdown: Annotated[bool, typer.Option(help="Write a Markdown page too.")] = False,
    ledger: LedgerPlace = None,
    table: Table = None,
    dates: Dates = None,
    as_json: Json = False,
) -> None:
    """Write everything that was released to a file that anyone can check, and to a page to read.

    Example: afresh receipt holdout.parquet --out receipt.json
    """
    from afresh.receipts.page import as_html, as_markdown

    if out.suffix in (".html", ".md"):
        raise errors.InvalidArgument(f"--out {out} is the JSON file; the page gets the same name with its own suffix.")
    with opened(data, ledger=ledger, table=table, dates=dates, must_exist=True) as guard:
        made = guard.receipt()
    pages = {out: json.dumps(made, indent=1), out.with_suffix(".html"): as_html(made)}
    if markdown:
        pages[out.with_suffix(".md")] = as_markdown(made)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    if as_json:
        print(json.dumps({"files": [str(path) for path in pages], "head": made["chain"]["head"]}))
    else:
        answers = f"{len(made['answers']):,} answers, head {made['chain']['head']}"
        print(f"Wrote {', '.join(map(visible, pages))}: {answers}\nCheck it anywhere: afresh verify {visible(out)}")


def verify(
    receipt: Annotated[Path, typer.Argument(help="A receipt, as `afresh receipt` writes it.", metavar="RECEIPT")],
    head: Annotated[
        str | None,
        typer.Option(help="A head published earlier, which the receipt's chain must contain.", metavar="HEAD"),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="The guard's own ledger, which must begin with the receipt's records.", metavar="PLACE"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute every charge, interval and derived number in a receipt, without the data or a ledger.

    Example: afresh verify receipt.json --head 3f29...
    """
    from afresh.receipts import verify as check
    from afresh.receipts.format import loads

    try:
        text = receipt.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise errors.InvalidArgument(f"{receipt} is not a receipt: it is not text in UTF-8.") from None
    except FileNotFoundError:
        raise errors.DataError(f"there is no file {receipt}; write one with: afresh receipt DATA.") from None
    records = None if ledger is None else _records(ledger, loads(text))
    outcome: Verification = check(text, head=head, ledger=records)
    show(outcome, as_json)
    if not outcome.passed:
        sys.exit(EXIT_ERROR)


def list_ledger(ledger: LedgerPlace = None, as_json: Json = False) -> None:
    """List what a ledger holds: every dataset with its plan and the budget it has left.

    A ledger recognizes rows by their content, not by where they are stored, so
    look for your dataset by its columns.

    Example: afresh list
    """
    from afresh.ledger import default_place
    from afresh.ledger.known import unveil
    from afresh.planning.plan import Plan
    from afresh.results.holding import Held, Holding

    place = ledger or default_place()
    book = _book(place)
    try:
        held = []
        for opened, terms in book.guards():
            spent, asked, plan = book.spent(terms), book.entries(terms), Plan.thaw(terms.limits)
            held.append(
                Held(
                    data=terms.data,
                    rows=terms.rows,
                    columns=unveil(terms.seed, opened.names),
                    opened_at=opened.at.isoformat(),
                    opened_by=opened.analyst,
                    plan=plan.in_words,
                    fixed=terms.fixed,
                    spent=spent.answers,
                    left=spent.affordable(plan.charge, plan.mechanism.row_charge),
                    last_asked_at=asked[-1].reserved_at.isoformat() if asked else None,
                    simulated=terms.simulated,
                )
            )
    finally:
        book.close()
    show(Holding(without_password(place), held), as_json)


def _book(place: str) -> Ledger:
    """An existing ledger; none is created."""
    from afresh.ledger import is_server, open_ledger

    if not is_server(place) and not Path(place).expanduser().exists():
        raise errors.InvalidArgument(f"there is no ledger at {place}; the first question creates one.")
    return open_ledger(place)


def _records(place: str, document: object) -> list[str]:
    """The records a ledger has of a receipt's rows."""
    from afresh.receipts.format import format_of

    format_of(document)
    data = document.get("data") if isinstance(document, dict) else None
    book = _book(place)
    try:
        return book.published(str(data.get("name")) if isinstance(data, dict) else "")
    finally:
        book.close()
