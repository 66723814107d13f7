"""`afresh mcp`: tools for an agent."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from afresh.cli.options import Analyst
from afresh.wire.addresses import is_address


def mcp(
    what: Annotated[
        str, typer.Argument(help="A service (https://host), afresh.toml, or a data file.", metavar="SERVICE|FILE")
    ],
    cap: Annotated[int | None, typer.Option(help="The most answers this session may spend.", metavar="K")] = None,
    questions: Annotated[
        int | None, typer.Option(help="For a data file: the most answers it may ever give.", metavar="K")
    ] = None,
    analyst: Analyst = None,
) -> None:
    """Offer tools to an agent (MCP over stdin and stdout): list, describe, price, ask, score, compare, propose, ...

    For a service, put the token in $AFRESH_TOKEN. A service offers the same
    tools at https://host/mcp.

    Example: afresh mcp https://host --cap 20
    """
    from functools import partial
    from importlib.util import find_spec

    from afresh.errors import MissingExtra

    if find_spec("mcp") is None:  # checked before anything that depends on it is imported
        raise MissingExtra("the MCP SDK", "mcp")
    import anyio

    from afresh import checks
    from afresh.agents.beside import serve_address, serve_config
    from afresh.errors import InvalidArgument

    if cap is not None:
        checks.whole("cap", cap, 0)
    if sys.stdin.isatty():
        print("Waiting for an MCP client, which starts this command itself; see docs/agents.md.", file=sys.stderr)
    if is_address(what):
        if questions is not None or analyst is not None:
            raise InvalidArgument(
                "the service has its own plan, and the token identifies the analyst; give only the address."
            )
        anyio.run(partial(serve_address, what, cap))
        return
    from afresh.guard.open import check_opening
    from afresh.server.config import read_config
    from afresh.server.run import first_try

    if what.endswith(".toml"):
        if questions is not None:
            raise InvalidArgument("--questions is for a data file; set it in the configuration instead.")
        config = read_config(what)
    else:
        config = first_try(what, questions, 8765)
    anyio.run(partial(serve_config, config, check_opening("", analyst=analyst).analyst, cap))
