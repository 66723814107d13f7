"""Every public callable says what it takes, what it gives and how it fails."""

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from afresh import errors
from afresh.results.show import Shown

# What people import: the names these list, all errors, and what the modules of these packages define.
LISTING = (
    *("afresh", "afresh.boards", "afresh.datasets", "afresh.evaluations", "afresh.learn"),
    *("afresh.losses", "afresh.receipts", "afresh.statistics"),
)
PACKAGES = ("afresh.lab", "afresh.integrations")
PARTS = ("afresh.lab.analysts", "afresh.lab.pictures", "afresh.lab.population", "afresh.lab.session")  # of simulations
OPENERS = (
    "afresh.demo.run",
    "afresh.engines.open.open_engine",
    "afresh.ledger.open_ledger",
    "afresh.models.held.Held",
    "afresh.receipts.page.as_html",
    "afresh.receipts.page.as_markdown",
    "afresh.receipts.study.spent_by",
)
# Classes that people construct. The others are results, which afresh makes, or what a simulation is built of.
CONSTRUCTED = ("afresh.losses", "afresh.statistics", "afresh.integrations", "afresh.lab.simulation.Trial")
FILLING = {"a", "an", "and", "for", "from", "in", "is", "it", "its", "of", "or", "the", "this", "to", "whether"}


def listed() -> Iterator[tuple[str, Any]]:
    """Every public thing by its name."""
    for name in LISTING:
        module = importlib.import_module(name)
        yield from ((f"{name}.{each}", getattr(module, each)) for each in module.__all__)
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.AfreshError):
            yield f"afresh.errors.{kind.__name__}", kind
    for package in PACKAGES:
        for found in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            if not found.ispkg:
                module = importlib.import_module(found.name)
                for name, value in vars(module).items():
                    if not name.startswith("_") and getattr(value, "__module__", "") == found.name:
                        yield f"{found.name}.{name}", value
    for opener in OPENERS:
        module_name, name = opener.rsplit(".", 1)
        yield opener, getattr(importlib.import_module(module_name), name)


def room(kind: type) -> list[str]:
    return kind.__module__.split(".")[:2]


def documented_elsewhere(kind: type, name: str, protocols: list[type]) -> bool:
    """Whether a method does what a base class or a protocol of ours says it does."""
    near = [each for each in protocols if each is not kind and room(each) == room(kind)]
    ours = [base for base in kind.__mro__[1:] if base.__module__.startswith("afresh")]
    return any(name in vars(base) for base in (*ours, *near))


def callables() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Every public function and method, and every constructor, with the docstring that is to explain it."""
    public = dict(listed())
    protocols = [each for each in public.values() if isinstance(each, type) and getattr(each, "_is_protocol", False)]
    for name, value in public.items():
        if inspect.isfunction(value):
            yield name, value, inspect.getdoc(value) or ""
        elif isinstance(value, type):
            if name.startswith(CONSTRUCTED) and value not in protocols and not issubclass(value, Shown):
                yield name, value, "\n\n".join(inspect.getdoc(each) or "" for each in (value, *own_init(value)))
            if name.startswith("afresh.lab"):
                continue
            for method, function in vars(value).items():
                plain = getattr(function, "__func__", function)
                public_one = inspect.isfunction(plain) and not method.startswith("_")
                if public_one and not documented_elsewhere(value, method, protocols):
                    yield f"{name}.{method}", plain, inspect.getdoc(plain) or ""


def own_init(kind: type) -> list[Any]:
    return [vars(kind)["__init__"]] if "__init__" in vars(kind) else []


def described() -> Iterator[tuple[str, str]]:
    """Every public class, function, method and property with its docstring."""
    for name, value in listed():
        if isinstance(value, type) or inspect.isfunction(value):
            yield name, inspect.getdoc(value) or ""
        if isinstance(value, type):
            for inner, each in vars(value).items():
                if not inner.startswith("_") and (inspect.isfunction(each) or isinstance(each, property)):
                    yield f"{name}.{inner}", inspect.getdoc(each) or ""


def section(words: str, name: str) -> str | None:
    """The lines under `Args:`, `Returns:` or `Raises:`; None if there is no such section."""
    found = re.search(rf"^{name}:\n((?:[ \t]+.*(?:\n|$)|\n)+)", words, re.MULTILINE)
    return None if found is None else textwrap.dedent(found[1])


def parameters(function: Callable[..., Any]) -> list[str]:
    """Those a caller may give by name."""
    signature = inspect.signature(function).parameters.values()
    return [each.name for each in signature if each.name not in ("self", "cls") and not each.name.startswith("_")]


def returns(function: Callable[..., Any]) -> bool:
    """Whether it gives anything; a constructor gives the object, which goes without saying."""
    return not isinstance(function, type) and str(function.__annotations__.get("return")) not in ("None", "NoReturn")


def raised(function: Callable[..., Any]) -> set[str]:
    """The errors that its own body raises."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [ast.unparse(node.exc.func) for node in ast.walk(tree)
             if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]  # fmt: skip
    names = {"InvalidArgument" if call == "checks.wrong" else call.rsplit(".", 1)[-1] for call in calls}
    return {name for name in names if isinstance(getattr(errors, name, None), type)}


def test_each_says_what_it_takes_gives_and_raises() -> None:
    for name, function, words in callables():
        if not name.startswith(PARTS):
            check_sections(name, function, words)


def check_sections(name: str, function: Callable[..., Any], words: str) -> None:
    if wanted := parameters(function):
        taken = section(words, "Args")
        assert taken is not None, f"{name} says nothing of {', '.join(wanted)}"
        told = re.findall(r"^\*{0,2}(\w+): \S", taken, re.MULTILINE)
        assert told == wanted, name
        assert (section(words, "Returns") is not None) == returns(function), name
    promised = section(words, "Raises")
    named = set() if promised is None else set(re.findall(r"^(\w+): \S", promised, re.MULTILINE))
    assert promised is None or named, name
    assert all(isinstance(getattr(errors, each, getattr(builtins, each, None)), type) for each in named), name
    assert isinstance(function, type) or raised(function) <= named, name


def test_none_merely_repeats_its_name() -> None:
    def plain(text: str) -> set[str]:
        return {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower())} - FILLING

    for name, words in described():
        own = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name.rsplit(".", 1)[-1])
        first = words.strip().split("\n")[0]
        assert first, name
        assert plain(first) - plain(own), f"{name} is explained as {first!r}"
