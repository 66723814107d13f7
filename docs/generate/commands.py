"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

INTRODUCTION = """# Command line

Results go to stdout, messages to stderr. Every command that prints a result has `--json`; with it, errors are JSON too.
`afresh COMMAND -h` prints the same text; `afresh --install-completion` lets your shell complete commands and names.
"""


def commands_page() -> str:
    """All commands with their arguments, as Markdown."""
    import typer

    from afresh.cli.app import app
    from afresh.cli.options import EPILOG

    return "\n".join([INTRODUCTION, f"{EPILOG}\n", *_sections(typer.main.get_command(app), "afresh")])


def _sections(command: Any, path: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        if path != "afresh":
            yield f"## {path}\n\n{command.help or ''}\n"
        for name in command.commands:
            yield from _sections(command.commands[name], f"{path} {name}")
        return
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    words = " ".join([path, *(_name(each) for each in arguments), "[OPTIONS]" if options else ""]).strip()
    yield f"## {path}\n\n{_text(command.help or '')}\n\n```text\n{words}\n```\n"
    rows = [(_name(each), each) for each in arguments]
    rows += [(", ".join([*each.opts, *each.secondary_opts]) + _value(each), each) for each in options]
    if rows:
        yield "| | |\n|---|---|"
        yield from (f"| `{name}` | {_cell(_help(each))} |" for name, each in rows)
        yield ""


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _value(option: Any) -> str:
    return "" if option.is_flag else f" {option.metavar or 'VALUE'}"


def _help(option: Any) -> str:
    default = option.default
    told = option.help or ""
    plain = isinstance(default, (int, float, str)) and not isinstance(default, bool) and "efault" not in told
    return f"{told} Default: {default}." if plain and default != "" else told


def _text(words: str) -> str:
    """A docstring with its examples as code."""
    return re.sub(r"^Example: (.*)$", r"Example: `\1`", words, flags=re.MULTILINE)


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")
