"""The program and its commands for analysts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.exceptions import TyperException

from afresh import errors
from afresh.cli import agents, evaluate, lab, parts, service, steward
from afresh.cli.failing import failed
from afresh.cli.options import (
    EPILOG,
    HELP,
    Analyst,
    Data,
    Dates,
    Deviation,
    Exam,
    Json,
    LedgerPlace,
    Method,
    NoEnd,
    Open,
    Promise,
    Rounds,
    Table,
    how_many,
    opened,
    share_open,
    show,
)
from afresh.cli.quick import Command, Group
from afresh.mechanisms.names import GUESSING, HINTED

if TYPE_CHECKING:
    from afresh.engines.base import Engine

app = typer.Typer(
    name="afresh",
    cls=Group,
    no_args_is_help=True,
    context_settings=HELP,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog=EPILOG,
    help="Ask one dataset as many questions as you like, each chosen after seeing the last answer, "
    "and get error bars that still hold.",
)


def main() -> NoReturn:
    """Run the command line, and turn errors into a message and an exit code."""
    try:
        found = app(prog_name="afresh", standalone_mode=False)
    except (TyperException, typer.Abort, OSError, errors.AfreshError) as error:
        sys.exit(failed(error, as_json="--json" in sys.argv))
    sys.exit(found if isinstance(found, int) else 0)  # --help exits with 0, for example, and Ctrl-C with 130


def _version(wanted: bool) -> None:
    if wanted:
        from afresh.version import __version__

        print(f"afresh {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command(cls=Command, epilog=EPILOG)
def plan(
    rows: Annotated[int | None, typer.Option(help="The number of rows in the dataset.", metavar="N")] = None,
    questions: Annotated[int | None, typer.Option(help="The most answers you will need.", metavar="K")] = None,
    confidence: Annotated[
        float, typer.Option(help="The probability that all intervals hold at once.", metavar="C")
    ] = 0.95,
    width: Annotated[
        float | None,
        typer.Option(
            help="A half-width, instead of --rows (how many do I need?) or --questions (how many can I ask?).",
            metavar="W",
        ),
    ] = None,
    mean: Annotated[float, typer.Option(help="The mean that --width refers to.", metavar="P")] = 0.5,
    answers: Annotated[
        int | None,
        typer.Option(help="The most answers if some are coarser (default: --questions).", metavar="M"),
    ] = None,
    no_end: NoEnd = False,
    rounds: Rounds = None,
    method: Method = None,
    typical: Annotated[
        list[float] | None,
        typer.Option(
            help="A mean you expect answers to have; may be repeated. Default: 0.5, 0.1 and 0.01.", metavar="P"
        ),
    ] = None,
    open: Open = None,
    exam: Exam = None,
    deviation: Deviation = None,
    promise: Promise = False,
    everything: Annotated[bool, typer.Option("--all", help="Also show all methods and constants.")] = False,
    as_json: Json = False,
) -> None:
    """Show how wide answers will be, before you touch the data, and what would make them narrower.

    Give two of --rows, --questions and --width. With all three you get the
    most --rounds that keep the width or, with --open best, the largest share
    of rows that can be open.

    Example: afresh plan --rows 100000 --questions 1000
    """
    from afresh.planning.choose import plan as make_plan

    wishes: dict[str, Any] = {"answers": answers, "method": method, "rounds": rounds, "promise": promise}
    wishes |= {"typical": typical or None, "open": share_open(open), "exam": exam, "deviation": deviation}
    made = make_plan(rows, how_many(questions, no_end), confidence, width=width, mean=mean, **wishes)
    show(made.details if everything else made, as_json)


@app.command(cls=Command, epilog=EPILOG)
def ask(
    data: Data,
    expressions: Annotated[
        list[str] | None,
        typer.Argument(
            help="Row expressions in SQL, each a condition or a number. Several are asked together, as one round.",
            metavar="EXPR...",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A file with more of them, one on each line; # begins a comment.", metavar="FILE"),
    ] = None,
    questions: Annotated[
        int | None,
        typer.Option(
            help="The most answers the dataset may ever give; fixed by the first question (default 100).",
            metavar="K",
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="The probability that all intervals hold at once; fixed by the first question (default 0.95).",
            metavar="C",
        ),
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Clip numbers to this range, chosen without looking at the data. Required unless EXPR implies it.",
            metavar="LO HI",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help="Ask for the mean among these rows only; costs two answers.", metavar="EXPR"),
    ] = None,
    missing: Annotated[
        float | None,
        typer.Option(
            help="What NULL, NaN and infinite numbers count as. By default rows without the number are left out, which "
            "costs two answers; with X it costs one. In a condition NULL counts as false, or with 1 as true.",
            metavar="X",
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(help="A half-width that is enough: more noise, a lower charge.", metavar="W"),
    ] = None,
    guess: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help=f"With --method {' or '.join(GUESSING)}, a value and a half-width of your own, to be checked.",
            metavar="V W",
        ),
    ] = None,
    about: Annotated[
        float | None,
        typer.Option(
            help=f"With --method {' or '.join(HINTED)}, roughly what the answer will be: the noise follows it.",
            metavar="P",
        ),
    ] = None,
    answers: Annotated[
        int | None,
        typer.Option(
            help="The most answers if some are asked with --precision; fixed by the first question "
            "(default: as many as --questions).",
            metavar="M",
        ),
    ] = None,
    no_end: NoEnd = False,
    rounds: Rounds = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the price and the width to expect; ask nothing.")
    ] = False,
    share: Annotated[
        float | None,
        typer.Option(help="With --dry-run and --where, the share of rows you expect in the group.", metavar="P"),
    ] = None,
    method: Method = None,
    open: Open = None,
    exam: Exam = None,
    deviation: Deviation = None,
    promise: Promise = False,
    allow_wide: Annotated[
        bool,
        typer.Option("--allow-wide", help="Accept very wide intervals: wider than ±0.25, or as wide as noise."),
    ] = False,
    new_rows: Annotated[
        str | None,
        typer.Option(help="Why these rows are not the similar ones already in the ledger; recorded.", metavar="WORDS"),
    ] = None,
    ledger: LedgerPlace = None,
    table: Table = None,
    dates: Dates = None,
    analyst: Analyst = None,
    as_json: Json = False,
) -> None:
    """Ask for the share of rows that satisfy a condition, or for the mean of a number.

    Several questions are answered together: all are charged, or none.
    The first answer fixes the plan for good. The same question again is free.

    Example: afresh ask holdout.parquet "churned AND tenure < 3" --questions 1000

    Example: afresh ask holdout.parquet amount --bounds 0 500 --where "country = 'CH'"

    Example: afresh ask holdout.parquet "churned" "tenure < 3" --rounds 5
    """
    from afresh.queries.asked import Asked, make_asked

    texts = [*(expressions or []), *([] if source is None else _lines(source))]
    if not texts:
        raise errors.InvalidArgument(
            'give a question, such as "churned AND tenure < 3", or a file of them with --from.'
        )
    if len(texts) > 1 and (guess is not None or about is not None):
        raise errors.InvalidArgument(f"--guess and --about are for one question, but there are {len(texts)}.")
    arguments: dict[str, Any] = {"bounds": bounds, "where": where, "missing": missing, "precision": precision}
    arguments |= {"guess": guess, "about": about}
    asking = [{"expression": text, **arguments} for text in texts]
    asked: list[Asked] = []

    def checked(engine: Engine) -> None:  # a mistake must not fix a plan
        asked.extend(make_asked(each, engine.schema) for each in asking)

    if guess is not None and method not in (None, *GUESSING):
        raise errors.InvalidArgument(f"--guess goes with --method {' or '.join(GUESSING)}, not with {method}.")
    if about is not None and method not in (None, *HINTED):
        raise errors.InvalidArgument(f"--about goes with --method {' or '.join(HINTED)}, not with {method}.")
    if share is not None and not dry_run:
        raise errors.InvalidArgument("--share goes with --dry-run: it is what you expect, not part of a question.")
    options: dict[str, Any] = {"answers": answers, "rounds": rounds, "analyst": analyst, "new_rows": new_rows}
    options["allow_wide"] = allow_wide
    options |= {"promise": promise, "open": share_open(open), "exam": exam, "deviation": deviation}
    # The default method can neither check a guess nor follow a hint.
    options["must_exist"] = (guess is not None or about is not None) and method is None
    many = how_many(questions, no_end)
    with opened(data, many, confidence, ledger, method, table=table, dates=dates, check=checked, **options) as guard:
        if dry_run:
            for each in asking:
                show(guard.price(**each, share=share), as_json)
            return
        found = guard.ask_checked(asked or guard.checked(asking))  # a service checks them itself
        show(found if len(found) > 1 else found[0], as_json)


def _lines(source: Path) -> list[str]:
    """The questions in a file."""
    try:
        lines = source.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise errors.InvalidArgument(f"--from is {str(source)!r}, which cannot be read as a text file.") from None
    found = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not found:
        raise errors.InvalidArgument(f"--from is {str(source)!r}, which has no question; write one on each line.")
    return found


@app.command(cls=Command, epilog=EPILOG)
def budget(
    data: Data,
    ledger: LedgerPlace = None,
    table: Table = None,
    dates: Dates = None,
    analyst: Analyst = None,
    as_json: Json = False,
) -> None:
    """Show what is spent, what is left, and how wide further answers will be.

    Example: afresh budget holdout.parquet
    """
    with opened(data, ledger=ledger, table=table, dates=dates, analyst=analyst, must_exist=True) as guard:
        show(guard.budget, as_json)


@app.command(cls=Command, epilog=EPILOG)
def log(
    data: Data,
    parts: Annotated[bool, typer.Option("--parts", help="Show the answers behind each derived number.")] = False,
    ledger: LedgerPlace = None,
    table: Table = None,
    dates: Dates = None,
    as_json: Json = False,
) -> None:
    """Show everything released about a dataset: who asked what, when, and the answers.

    Example: afresh log holdout.parquet --parts
    """
    with opened(data, ledger=ledger, table=table, dates=dates, must_exist=True) as guard:
        transcript = guard.transcript
    if parts and not as_json:
        print(transcript.with_parts(), flush=True)
    else:
        show(transcript, as_json)


@app.command(cls=Command, epilog=EPILOG)
def pvalue(
    value: Annotated[float, typer.Argument(help="The p-value, as if the test had been fixed in advance.", metavar="P")],
    information: Annotated[
        float | None, typer.Option(help="What the exploration may have revealed, in nats.", metavar="NATS")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Take the nats from this dataset's plan instead.", metavar="DATA")
    ] = None,
    ledger: LedgerPlace = None,
    table: Table = None,
    dates: Dates = None,
    as_json: Json = False,
) -> None:
    """Correct the p-value of a test that was chosen after exploring the same data.

    Valid for one test chosen from released answers. A p-value computed on the
    guarded rows is exact and was not charged, so it must be the last thing
    released about them. Give --information or --data.

    Example: afresh pvalue 1e-12 --information 0.5
    """
    from afresh.theory.information import correct_pvalue

    if (information is None) == (data is None):
        raise errors.InvalidArgument("give either --information or --data.")
    if data is not None:
        with opened(data, ledger=ledger, table=table, dates=dates, must_exist=True) as guard:
            information, method = guard.plan.information, guard.plan.method
        if information is None:
            raise errors.InvalidArgument(
                f"this dataset was opened with method={method!r}, whose answers bound no information about all rows; "
                "test on rows that no question has used."
            )
    assert information is not None
    corrected = correct_pvalue(value, information)
    if as_json:
        print(json.dumps({"pvalue": value, "corrected": corrected, "information": information}))
    else:
        print(f"p = {corrected:.6g}   (chosen under {information:.4g} nats; fixed in advance: {value:.6g})")


@app.command(cls=Command, epilog=EPILOG)
def demo(
    folder: Annotated[
        Path, typer.Option("--out", help="Where to write the data and the pictures.", metavar="FOLDER")
    ] = Path("demo"),
    as_json: Json = False,
) -> None:
    """See what afresh does in a minute, on real flights: a false lead refused, a real effect found, a loop of edits.

    Example: afresh demo --out demo
    """
    from afresh.demo import run

    story = run(folder, talk=sys.stderr if as_json else sys.stdout)
    if as_json:
        print(json.dumps(story))


for command in (
    parts.exam,
    parts.open_rows,
    steward.charge,
    steward.divide,
    steward.receipt,
    steward.verify,
    service.serve,
    service.backup,
):
    app.command(cls=Command, epilog=EPILOG)(command)
app.command("list", cls=Command, epilog=EPILOG)(steward.list_ledger)
app.command(cls=Command, epilog=evaluate.EPILOG)(evaluate.evaluate)
app.command(cls=Command, epilog=EPILOG)(agents.mcp)
app.add_typer(lab.app, name="lab")
app.add_typer(service.tokens, name="token")
