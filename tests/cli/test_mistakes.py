"""What a mistake in a command line is told, for every command there is and every parameter it has."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer

from afresh.cli.app import app
from cli.program import afresh

Line = tuple[str, ...]


def commands(group: Any, path: Line = ()) -> Iterator[tuple[Line, Any]]:
    for name, each in group.commands.items():
        yield from commands(each, (*path, name)) if hasattr(each, "commands") else [((*path, name), each)]


PROGRAM = typer.main.get_command(app)
COMMANDS = dict(commands(PROGRAM))


def numbers(command: Any) -> set[str]:
    """The parameters that take numbers, by the command's annotations."""

    def parts(kind: Any) -> set[Any]:
        return {kind}.union(*map(parts, get_args(kind)))

    hints = get_type_hints(command.callback)
    return {name for name, kind in hints.items() if parts(kind) & {int, float}}


def given(parameter: Any, value: str) -> Line:
    """A parameter with a value, or with as many as it takes."""
    values = (value,) * max(parameter.nargs, 1)
    return values if parameter.param_type_name == "argument" else (parameter.opts[0], *values)


def is_flag(parameter: Any) -> bool:
    return bool(getattr(parameter, "is_flag", False))


def mistakes(path: Line, command: Any) -> Iterator[tuple[str, Line]]:
    """Every kind of mistake with every parameter, the rest being given; and what the message must name."""
    numeric = numbers(command)
    required = [each for each in command.params if each.required]

    def whole(without: Any = None) -> Line:
        """The command with all it requires, or all but one and the arguments after that one."""
        line = path
        for each in required:
            if each is without and each.param_type_name == "argument":
                return line
            line += () if each is without else given(each, "1" if each.name in numeric else "x")
        return line

    yield "--nothing", (*whole(), "--nothing")
    yield "--nothing", (*path, "--nothing")
    for each in required:
        yield each.opts[0] if each.param_type_name == "option" else each.metavar.rstrip("."), whole(without=each)
    for each in command.params:
        is_option = each.param_type_name == "option"
        named = each.opts[0] if is_option else each.metavar
        if is_flag(each):
            yield named, (*whole(), f"{named}=5")
            continue
        if is_option:
            yield named, (*whole(), named)
        for value in ("", *(("many",) if each.name in numeric else ())):
            yield named, (*whole(without=each), *given(each, value))


def all_mistakes() -> list[Any]:
    found = [(path, *each) for path, command in COMMANDS.items() for each in mistakes(path, command)]
    assert len(found) > 200  # or the walk found no parameters
    return found


@pytest.mark.parametrize("as_json", [False, True])
def test_every_mistake_is_told_in_a_few_lines_with_an_example(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.cli.app.app", PROGRAM)  # which typer would otherwise build again for every line
    for path, named, line in all_mistakes():
        has_json = "--json" in {name for each in COMMANDS[path].params for name in each.opts}
        if as_json and line[-1] == named and named != "--nothing":
            continue  # --json would be the option's value
        done = afresh(line[0], *line[1:], *(["--json"] if as_json else []), folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), (line, done)
        assert named in done.stderr or (as_json and not has_json), (line, done.stderr)
        example = f"Example: afresh {' '.join(path)}"
        if as_json:
            told = json.loads(done.stderr)
            assert (told["code"], told["exit_code"]) == ("invalid-argument", 2)
            notes = told["notes"]
        else:
            first, *notes = [text.strip() for text in done.stderr.splitlines()]
            assert first.startswith("afresh: "), line
        assert len(notes) == 2, (line, notes)
        assert notes[0].startswith(example), (line, notes)
        assert notes[1] == f"Try: afresh {' '.join(path)} --help"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_examples_of_commands_are_read(path: Line) -> None:
    """An example that is shown names no option that does not exist."""
    command = COMMANDS[path]
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    shown = [text.strip() for text in command.help.splitlines() if "Example:" in text]
    assert shown
    for text in shown:
        assert text.startswith(f"Example: afresh {' '.join(path)}")
        assert {word for word in text.split() if word.startswith("--")} <= options
