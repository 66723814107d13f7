"""`afresh lab`: parse, call, print. Tables go to stdout, messages and progress to stderr."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from afresh.cli.options import HELP
from afresh.cli.quick import Command, Group
from afresh.results.progress import waiting

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    context_settings=HELP,
    help="Attacks, coverage, and figures from the literature.",
)

Folder = Annotated[Path, typer.Option("--out", help="Where to keep results and pictures.", metavar="FOLDER")]
Processes = Annotated[int, typer.Option(help="Worker processes. Default: one per core.", metavar="N")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs.")]
Names = Annotated[list[str] | None, typer.Option(metavar="NAME")]


@app.command(cls=Command)
def coverage(
    rows: Annotated[int, typer.Option(help="n, the rows of every sample.", metavar="N")] = 2000,
    questions: Annotated[int, typer.Option(help="k, the questions of every analyst.", metavar="K")] = 200,
    repeats: Annotated[int, typer.Option(help="Conversations per cell.", metavar="R")] = 100,
    confidence: Annotated[
        float, typer.Option(help="The probability with which intervals should hold.", metavar="C")
    ] = 0.95,
    seed: Annotated[int, typer.Option(help="The seed of everything random.", metavar="SEED")] = 2018,
    mechanism: Names = None,
    analyst: Names = None,
    population: Names = None,
    out: Folder = Path("lab"),
    processes: Processes = 0,
    as_json: Json = False,
) -> None:
    """Measure how often all intervals held at once: one line per mechanism, then every combination.

    Finished parts are kept in FOLDER as Parquet, so an interrupted run
    continues where it stopped.

    Example: afresh lab coverage --rows 2000 --questions 200 --mechanism stabilized --mechanism empirical
    """
    from afresh import checks
    from afresh.lab import coverage as table
    from afresh.lab.analysts import ANALYSTS
    from afresh.lab.mechanisms import MECHANISMS
    from afresh.lab.population import POPULATIONS
    from afresh.planning.request import complement

    wanted = table.trials(
        rows,
        questions,
        mechanism or tuple(MECHANISMS),
        analyst or tuple(ANALYSTS),
        population or tuple(POPULATIONS),
        complement(checks.confidence(confidence)),
        seed,
    )
    for trial in wanted:
        trial.resolved()  # a wrong name or an impossible plan is reported before anything runs
    with waiting("repeats", len(wanted) * repeats) as progress:
        cells = table.coverage(wanted, repeats, out, processes=processes or os.cpu_count() or 1, progress=progress)
    if as_json:
        print(json.dumps([cell.to_dict() for cell in cells]))
    else:
        print(table.markdown(table.SUMMARY, table.summary(cells)))
        print()
        print(table.markdown(table.HEADER, table.lines(cells)))


@app.command(cls=Command)
def frontier(out: Folder = Path("lab"), as_json: Json = False) -> None:
    """Show what each method guarantees, by number of questions: a table, pictures for 95% and 99%, and a guide.

    Example: afresh lab frontier --out lab
    """
    from afresh.lab import frontier as lines
    from afresh.lab import which
    from afresh.lab.coverage import markdown

    steps = len(lines.ROWS) * len(lines.QUESTIONS) * len(lines.FAILURES)
    with waiting("plans", steps) as progress:
        points = lines.frontier(progress=progress)
    pictures = [*lines.draw(points, out), which.draw(out)]
    if as_json:
        print(json.dumps([point.to_dict() for point in points]))
    else:
        names = list(points[0].half_width)
        rows = [
            (
                *(f"{1 - p.failure:.0%}", f"{p.n:,}", f"{p.k:,}", f"{p.mean:g}", p.narrowest),
                *(f"{p.half_width[name]:.4f}" if name in p.half_width else "-" for name in names),
            )
            for p in points
        ]
        print(markdown(("confidence", "n", "k", "mean", "narrowest guarantee", *names), rows))
    _say(pictures)


@app.command(cls=Command)
def goals(
    repeats: Annotated[
        int,
        typer.Option(help="Also measure checked answers at 10,000 rows under the lab's strongest attack.", metavar="R"),
    ] = 0,
    as_json: Json = False,
) -> None:
    """Compute the half-widths of common tasks and compare each with its limit.

    Example: afresh lab goals
    """
    from afresh.lab.coverage import markdown
    from afresh.lab.goals import HEADER, goals, lines

    with waiting("conversations", max(repeats, 1)) as progress:
        found = goals(repeats, progress)
    if as_json:
        print(json.dumps([{**asdict(each), "reached": each.reached} for each in found]))
    else:
        print(markdown(HEADER, lines(found)))


def _say(pictures: list[Path]) -> None:
    for picture in pictures:
        typer.echo(f"Drawn: {picture}", err=True)


@app.command(cls=Command)
def figures(
    repeats: Annotated[int, typer.Option(help="Repeats of Science 2015 (ten times as many of the Ladder).")] = 10,
    seed: Annotated[int, typer.Option(help="The seed of everything random.", metavar="SEED")] = 2018,
    out: Folder = Path("lab"),
    as_json: Json = False,
) -> None:
    """Reproduce the literature: Science 2015 Fig. 1 and 2, the Ladder's boosting attack, Jung et al.'s bound.

    Example: afresh lab figures --out lab
    """
    from afresh.lab.coverage import markdown
    from afresh.lab.figures import reproduce

    with waiting("repeats", 2 * repeats) as progress:
        lines, pictures = reproduce(out, repeats, seed, progress)
    if as_json:
        print(json.dumps([line.to_dict() for line in lines]))
    else:
        rows = [
            (x.figure, x.what, "" if x.published != x.published else f"{x.published:.3f}", f"{x.ours:.3f}")
            for x in lines
        ]
        print(markdown(("figure", "what", "published", "ours"), rows))
    _say(pictures)


@app.command(cls=Command)
def loops(
    runs: Annotated[int, typer.Option(help="Runs of a loop; ten times as many at 5,000 items and 300 steps.")] = 40,
    items: Annotated[list[int] | None, typer.Option(help="A size; may be repeated. Default: 500 to 20,000.")] = None,
    steps: Annotated[list[int] | None, typer.Option(help="A length; may be repeated. Default: 100 to 1,000.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of everything random.", metavar="SEED")] = 2018,
    out: Folder = Path("lab"),
    page: Annotated[
        Path | None, typer.Option(help="A Markdown page to write the tables into, between its marks.", metavar="PAGE")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run editing loops of simulated agents: how naive reuse, gates and exams end, and whether they report the truth.

    Example: afresh lab loops --out docs/lab --page docs/agents.md
    """
    from afresh import checks
    from afresh.lab import loops as looped

    checks.whole("runs", runs, 1, 10_000)
    sizes = [checks.whole("items", n, 100) for n in items or looped.ITEMS]
    wanted = looped.cells(sizes, [checks.whole("steps", k, 50, 100_000) for k in steps or looped.STEPS])
    with waiting("loops", len(wanted)) as progress:
        found = looped.loops(wanted, runs, 10 * runs, seed, progress)
    told = looped.table(found)
    if page is not None:
        looped.write(page, told)
    print(json.dumps([each.to_dict() for each in found]) if as_json else told)
    _say([looped.draw(out, seed=seed)])


@app.command(cls=Command)
def boards(
    runs: Annotated[int, typer.Option(help="Runs of each board.")] = 40,
    seed: Annotated[int, typer.Option(help="The seed of everything random.", metavar="SEED")] = 2018,
    page: Annotated[
        Path | None, typer.Option(help="A Markdown page to write the table into, between its marks.", metavar="PAGE")
    ] = None,
    rules: Annotated[
        bool, typer.Option("--rules", help="Compare the rules for rounds and improvements instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Simulate boards with 200 entries, 80 of them by climbers: what each board claims, and whether it is true.

    Example: afresh lab boards --runs 400 --page docs/boards.md
    """
    from afresh import checks
    from afresh.lab import boards as climbed
    from afresh.lab import ruled
    from afresh.lab.climbing import BOARDS

    checks.whole("runs", runs, 1, 10_000)
    if rules:
        with waiting("runs", len(ruled.RULES) * runs) as progress:
            kept = [ruled.ruled(name, runs, seed, progress) for name in ruled.RULES]
        told = ruled.table(kept)
        if page is not None:
            climbed.write(page, told, "boards --rules")
        print(json.dumps([each.to_dict() for each in kept]) if as_json else told)
        return
    with waiting("runs", len(BOARDS) * runs) as progress:
        found = [climbed.climb(name, runs, seed, progress) for name in BOARDS]
    told = climbed.table(found)
    if page is not None:
        climbed.write(page, told)
    print(json.dumps([each.to_dict() for each in found]) if as_json else told)
