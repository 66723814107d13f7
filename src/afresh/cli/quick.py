"""Plain options and arguments, read without pydantic.

Typer reads every value with pydantic, which takes as long to import as typer itself. A number in plain digits, a string
and an omitted option do not need it. Everything else is read by typer, which also reports what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from afresh.checks import shown

_PLAIN: dict[Any, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    str: (re.compile(r"[\s\S]*"), str),
    int: (re.compile(r"[+-]?[0-9]{1,18}"), int),
    float: (re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", re.ASCII | re.IGNORECASE), float),
}
_NUMBERS = {int: "a whole number", float: "a number"}


class _Quick:
    """What commands and groups of commands have in common."""

    def get_params(self, context: Any) -> list[Any]:
        """The command's own and --help, each of which looks at its value before typer does."""
        found: list[Any] = super().get_params(context)  # type: ignore[misc] # of the class it is mixed into
        for parameter in found:
            if not isinstance(parameter.process_value, partial):
                parameter.process_value = partial(_read, parameter, parameter.process_value)
        return found

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Read the arguments; every mistake in them knows its command, whose example is then shown."""
        try:
            return super().parse_args(context, arguments)  # type: ignore[misc, no-any-return]
        except TyperException as error:
            if getattr(error, "ctx", None) is None:
                error.ctx = context  # type: ignore[attr-defined]
            raise


class Command(_Quick, TyperCommand):
    """A command whose plain values are read directly."""


class Group(_Quick, TyperGroup):
    """Commands with options of their own."""


def _read(parameter: Any, by_typer: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """The value itself if it is plain, otherwise what typer makes of it. No parameter takes an empty text."""
    if any(isinstance(each, str) and not each.strip() for each in _each(value)):
        raise typer.BadParameter("it is empty.", context, parameter)
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    single = not parameter.multiple and parameter.nargs == 1
    if kind is None or (parameter.required and value is None):
        return _by_typer(parameter, by_typer, context, value)
    if value is None:
        found = () if parameter.multiple or parameter.nargs == -1 else None
    elif single and type(value) is kind is not str:  # a flag, or a default
        found = value
    elif single and kind in _PLAIN and isinstance(value, str) and _PLAIN[kind][0].fullmatch(value):
        found = _PLAIN[kind][1](value)
    else:
        return _by_typer(parameter, by_typer, context, value)
    return found if parameter.callback is None else parameter.callback(context, parameter, found)


def _by_typer(parameter: Any, by_typer: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """What typer makes of a value. Where that is no number, the message names it, as pydantic's does not."""
    try:
        return by_typer(context, value)
    except typer.BadParameter:
        values = _each(value)
        for one, wanted in zip(values, _kinds(parameter, len(values)), strict=False):
            if wanted in _NUMBERS and not _is_number(one, wanted):
                raise typer.BadParameter(f"{shown(one)} is not {_NUMBERS[wanted]}.", context, parameter) from None
        raise


def _each(value: Any) -> Sequence[Any]:
    """The values of a parameter: none if it is missing."""
    return value if isinstance(value, (list, tuple)) else () if value is None else [value]


def _kinds(parameter: Any, count: int) -> Sequence[Any]:
    """What each of a parameter's values must be."""
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is not None:
        return get_args(descriptor.annotation) or [descriptor.annotation] * count
    types = getattr(parameter.type, "types", None) or [parameter.type] * count  # typer before 0.29
    return [{"int": int, "integer": int, "float": float}.get(each.name) for each in types]


def _is_number(value: Any, wanted: Callable[[Any], Any]) -> bool:
    try:
        wanted(value)
    except (TypeError, ValueError):
        return False
    return True
