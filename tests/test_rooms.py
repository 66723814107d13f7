"""The house stays in order: few modules at the top, and no module that needs itself."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import afresh

ROOT = Path(afresh.__file__).parent
TOP = {"__init__", "checks", "demo", "errors", "escaping", "moments", "version"}


def name_of(path: Path) -> str:
    return ".".join(("afresh", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(node: ast.AST) -> Iterator[str]:
    """The modules of ours that are imported when a module runs, be it inside a function; not those for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (each.name for each in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            for each in child.names:
                inner = f"{child.module}.{each.name}"
                yield inner if inner in MODULES else child.module
        yield from imported(child)


def test_the_top_has_few_modules() -> None:
    assert {path.stem for path in ROOT.glob("*.py")} == TOP


def test_no_module_needs_itself() -> None:
    graph = {name: {*imported(ast.parse(path.read_text()))} & {*MODULES} - {name} for name, path in MODULES.items()}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the modules


def test_every_room_says_what_it_is_for() -> None:
    for path in ROOT.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path
