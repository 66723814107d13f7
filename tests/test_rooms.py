"""The house stays in order: few modules at the top, and no module that needs itself."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import afresh

ROOT = Path(afresh.__file__).parent
NOT_OURS = {
    "os._exit",  # public, for a child that must run nothing else
    "table.get_backend()._session",  # Ibis gives its session in no other way
    "frame._jdf",  # pyspark shows the plan of a DataFrame in no other way
}
TOP = {"__init__", "__main__", "checks", "errors", "lazy", "escaping", "moments", "version"}


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


def private_uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names with a leading underscore that are taken from something which is not the module's own."""
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if node.attr in ("_make", "_asdict", "_replace", "_fields"):  # public, of every named tuple
                continue
            mine = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not mine and node.attr not in own and ast.unparse(node) not in NOT_OURS:
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("afresh"):
            yield from ((node.lineno, each.name) for each in node.names if re.match("_[a-z]", each.name))


def test_no_private_name_is_used_across_modules() -> None:
    uses = {name: list(private_uses(ast.parse(path.read_text()))) for name, path in MODULES.items()}
    assert {name: found for name, found in uses.items() if found} == {}


def test_no_name_is_both_a_function_and_a_module() -> None:
    for package in (path.parent for path in ROOT.rglob("__init__.py")):
        tree = ast.parse((package / "__init__.py").read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        given = {each.asname or each.name for node in imports if node.module != "afresh" for each in node.names}
        given |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert not given & {path.stem for path in package.iterdir()}, package
