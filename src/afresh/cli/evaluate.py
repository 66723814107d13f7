"""`afresh evaluate`: the steward's evaluator runs a candidate, and only the verdict comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh import errors
from afresh.cli.options import Json, show
from afresh.wire.addresses import is_address

if TYPE_CHECKING:
    from afresh.client.evaluation import RemoteJudge
    from afresh.judging.judge import Judge

NOT_ACCEPTED = 10
EPILOG = (
    "Exit codes: 0 accepted (or done, with --open, --score, --exam or --check), 10 not accepted, 1 the evaluator "
    "failed on open items, its machine failed it, or another error, 2 bad argument, 4 budget exhausted, 5 another plan "
    "is in force."
)


def evaluate(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="The candidate: a file, a folder or an archive (.zip, .tar, .tar.gz). To use a "
            "service instead of --config, put its https://host/NAME first.",
            metavar="[ADDRESS] CANDIDATE",
        ),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", help="The evaluation (default: evaluation.toml).", metavar="FILE")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="A name for the candidate. Default: its file name.", metavar="NAME")
    ] = None,
    tried: Annotated[
        bool, typer.Option("--open", help="Run on the open items only, and show what happened there. Free.")
    ] = False,
    scored: Annotated[
        bool,
        typer.Option("--score", help="Print the mean score with its interval instead of a verdict. Costs 1 answer."),
    ] = False,
    exam: Annotated[
        bool, typer.Option("--exam", help="Take the exam with the final candidate, once: the number to publish.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check the evaluation, run the baseline, and show what the gate can detect.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Propose a candidate: the steward's evaluator runs it on items its author cannot see, and accepts it or not.

    The open items run first; whatever goes wrong there is shown, and is free.
    Nothing is shown of the guarded items.

    Example: afresh evaluate --config evaluation.toml prompt.txt

    Example: afresh evaluate https://host/qa prompt.txt
    """
    given = list(arguments or ())
    address = given.pop(0) if given and is_address(given[0]) else None
    if address is not None and config is not None:
        raise errors.InvalidArgument("give either --config or an address, not both.")
    if tried + scored + exam + check > 1:
        raise errors.InvalidArgument("give at most one of --open, --score, --exam and --check.")
    if len(given) != (0 if check else 1):
        wanted = "--check takes no candidate" if check else "give one candidate, such as prompt.txt"
        raise errors.InvalidArgument(f"{wanted}; there are {len(given)}.")
    with _judge(address, config) as judge:
        if check:
            _checked(judge, as_json)
            return
        files = judge.read(given[0], name)
        try:
            found: Any = (
                judge.try_open(files)
                if tried
                else judge.score(files)
                if scored
                else judge.exam(files)
                if exam
                else judge.propose(files)
            )
        except errors.EvaluatorFailed as error:
            for line in error.output.splitlines():
                error.add_note(line)
            raise
        show(found, as_json)
        if not (tried or scored or exam or found.accepted):
            raise typer.Exit(NOT_ACCEPTED)


def _judge(address: str | None, config: str | None) -> Judge | RemoteJudge:
    if address is not None:
        from afresh.client.connect import judge_address

        return judge_address(address)
    from afresh.judging.judge import open_judge
    from afresh.judging.settings import read_settings

    return open_judge(read_settings(config or "evaluation.toml"))


def _checked(judge: Any, as_json: bool) -> None:
    show(judge.check(again=True), as_json)
