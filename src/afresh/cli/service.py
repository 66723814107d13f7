"""Commands for stewards who serve guards to others."""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.options import HELP, Json
from afresh.cli.quick import Command, Group
from afresh.escaping import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from afresh.server.config import Config
    from afresh.server.tokens import Tokens

tokens = typer.Typer(
    cls=Group, no_args_is_help=True, context_settings=HELP, help="Make, list and revoke the tokens of analysts."
)
ConfigPath = Annotated[str, typer.Option("--config", help="The configuration.", metavar="FILE")]


def serve(
    what: Annotated[str, typer.Argument(help="afresh.toml, or a data file for a first try.", metavar="FILE")],
    questions: Annotated[
        int | None, typer.Option(help="For a data file: the most answers it may ever give.", metavar="K")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on. Default: as configured, or 8765.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the configuration and the data, then exit.")] = False,
) -> None:
    """Serve guards to analysts, who need a token and nothing else.

    Example: afresh serve afresh.toml

    Example: afresh serve customers.parquet --questions 100
    """
    from dataclasses import replace

    from afresh.errors import InvalidArgument
    from afresh.server.config import read_config
    from afresh.server.run import check_free, first_try
    from afresh.server.run import serve as run

    if what.endswith(".toml"):
        if questions is not None:
            raise InvalidArgument("--questions is for a data file; set it in the configuration instead.")
        config = read_config(what)
    else:
        config = first_try(what, questions, 8765)
    if port is not None:
        config = replace(config, port=port)
    if check:
        from afresh.server.app import Desk

        desk = Desk(config)  # what a service opens
        told = desk.house.words
        desk.close()
        print("\n".join([f"{visible(what)} is valid; it serves", *(f"  {visible(line)}" for line in told)]))
        return
    if not what.endswith(".toml"):
        check_free(config)  # or the token would be printed for nothing
        (name,) = config.datasets
        with _tokens_of(config) as of_service:
            made = of_service.new("analyst", days=1)
        _show_secret(f"http://{config.host}:{config.port}/{name}\nAFRESH_TOKEN={made}")
        print("This token is shown once and is valid for a day.", file=sys.stderr)
    run(config, what if what.endswith(".toml") else None)


def _configured(path: str) -> Config:
    """The service's configuration. Only a service that was started with one has tokens to look after."""
    from afresh.errors import InvalidArgument
    from afresh.server.config import read_config

    if not Path(path).exists():
        raise InvalidArgument(
            f"there is no {path} here; give the service's configuration with --config FILE. A service started with "
            "a data file has none, and its only token ends after a day: for more, write an afresh.toml and serve that."
        )
    return read_config(path)


def _tokens(config: str) -> AbstractContextManager[Tokens]:
    return _tokens_of(_configured(config))


@contextmanager
def _tokens_of(config: Config) -> Iterator[Tokens]:
    from afresh.server.store import store_of
    from afresh.server.tokens import Tokens

    store = store_of(config.state, config.ledger)
    try:
        yield Tokens(store)
    finally:
        store.close()


@tokens.command("new", cls=Command)
def new(
    name: Annotated[
        str, typer.Argument(help="The analyst it is for; shares of a budget go by this name.", metavar="NAME")
    ],
    role: Annotated[str, typer.Option(help="steward, analyst or viewer.")] = "analyst",
    dataset: Annotated[
        list[str] | None, typer.Option(help="A dataset it gives access to; may be repeated. Default: all.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="The number of days it is valid. Default: until revoked.")] = None,
    cap: Annotated[int | None, typer.Option(help="The most answers it may spend.", metavar="K")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write it to this new file, which only you can read.", metavar="FILE")
    ] = None,
    config: ConfigPath = "afresh.toml",
) -> None:
    """Make a token. It is printed or written once; the service keeps only a hash.

    Example: afresh token new ann --dataset customers --days 30 --out ann.token
    """
    from afresh.server.tokens import check_datasets

    found = _configured(config)
    check_datasets(dataset or (), [*found.datasets, *found.evaluations])
    with _tokens_of(found) as of_service, _kept(out) as keep:
        keep(of_service.new(name, role, tuple(dataset or ("*",)), days, cap))


@contextmanager
def _kept(out: Path | None) -> Iterator[Callable[[str], object]]:
    """Where a secret goes: a file that is there, and private, before the secret is made; or stdout."""
    if out is None:
        yield _show_secret
        return
    from afresh.errors import InvalidArgument

    try:
        made = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidArgument(f"--out is {str(out)!r}, which already exists; name a new file.") from None
    with open(made, "w", encoding="utf-8") as file:
        try:
            yield lambda secret: file.write(f"{secret}\n")
        except BaseException:
            out.unlink()
            raise


def _show_secret(text: str) -> None:
    """Print a secret; if it goes to a file that others can read, say so."""
    print(text, flush=True)
    with suppress(OSError, ValueError):  # no file at all
        there = os.fstat(sys.stdout.fileno())
        if stat.S_ISREG(there.st_mode) and there.st_mode & 0o077:
            print("Others can read the file that this token went to; run: chmod 600 FILE", file=sys.stderr)


@tokens.command("list", cls=Command)
def list_tokens(config: ConfigPath = "afresh.toml", as_json: Json = False) -> None:
    """List all tokens, without their secrets.

    Example: afresh token list
    """
    from datetime import UTC, datetime

    from afresh.results import show

    with _tokens(config) as of_service:
        found = of_service.all()
    if as_json:
        print(json.dumps(found))
        return

    def when(seconds: int | None) -> str:
        return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(" ", "minutes")[:16]

    header = ["id", "name", "role", "datasets", "expires", "cap", "spent", "revoked"]
    rows = [
        [
            *(each["id"], each["name"], each["role"], " ".join(each["datasets"]), when(each["expires"])),
            *("" if each["cap"] is None else str(each["cap"]), str(each["spent"]), when(each["revoked"])),
        ]
        for each in found
    ]
    print(show.as_text([show.Table(header, rows)]))


@tokens.command("revoke", cls=Command)
def revoke(
    which: Annotated[
        str, typer.Argument(help="A token's id, or an analyst's name for all of that analyst's tokens.", metavar="ID")
    ],
    config: ConfigPath = "afresh.toml",
) -> None:
    """Revoke a token, with immediate effect on all workers.

    Example: afresh token revoke ann
    """
    with _tokens(config) as of_service:
        revoked = of_service.revoke(which)
    for id in revoked:
        print("Revoked with immediate effect on all workers:", file=sys.stderr, end=" ", flush=True)
        print(id)


def backup(
    folder: Annotated[str, typer.Argument(help="A new folder for the copies.", metavar="FOLDER")],
    config: ConfigPath = "afresh.toml",
) -> None:
    """Copy the ledger and the tokens of a service; safe while it runs.

    A copy does not know what was asked after it was made. Keep a receipt
    elsewhere: `afresh verify receipt.json --ledger COPY` shows whether a copy
    is older than the receipt.

    Example: afresh backup copies/monday
    """
    from afresh.server.backup import back_up

    for made in back_up(_configured(config), folder):
        print(visible(made))
