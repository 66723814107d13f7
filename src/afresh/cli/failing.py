"""What a failed command prints: a message for people or, with --json, a document for programs; both on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from typer.exceptions import TyperException

from afresh.errors import AfreshError, InvalidArgument
from afresh.escaping import visible


def failed(error: Exception, as_json: bool) -> int:
    """Say what went wrong, and return the exit code.

    The document is the one a service sends, plus the exit code and any notes added to the message.
    """
    if type(error).__name__ == "NoArgsIsHelpError":  # help was printed
        return int(getattr(error, "exit_code", InvalidArgument.exit_code))
    message, notes, code = _told(error)
    if as_json:
        from afresh.wire.problems import to_problem

        ours = error if isinstance(error, AfreshError) else _as_ours(error, message)
        document: dict[str, Any] = to_problem(ours) | {"exit_code": code, "notes": notes}
        del document["status"]  # HTTP only
        print(json.dumps(document), file=sys.stderr)
    elif message:
        print(f"afresh: {message}", *(f"  {visible(note)}" for note in notes), sep="\n", file=sys.stderr)
    return code


def _told(error: Exception) -> tuple[str, list[str], int]:
    """The message, its notes, and the exit code."""
    if isinstance(error, TyperException):
        context = getattr(error, "ctx", None)
        command = "afresh" if context is None else context.command_path
        notes = [*_examples(context), f"Try: {command} --help"]
        return visible(error.format_message()), notes, error.exit_code
    if isinstance(error, AfreshError):
        return str(error), list(getattr(error, "__notes__", ())), error.exit_code
    if isinstance(error, OSError):
        return visible(_of_system(error)), [], AfreshError.exit_code
    return "", [], AfreshError.exit_code  # interrupted by the user, who knows


def _examples(context: Any) -> list[str]:
    """The first example in a command's help, if it has one."""
    text = "" if context is None else context.command.help or ""
    return [line.strip() for line in text.splitlines() if line.strip().startswith("Example: ")][:1]


def _of_system(error: OSError) -> str:
    """What the system refused, without the number of its error."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}."


def _as_ours(error: Exception, message: str) -> AfreshError:
    """An error from the system or the parser, as one that has a document."""
    kind = InvalidArgument if isinstance(error, TyperException) else AfreshError
    return kind(message)
