"""The one expression tree that parsers make and engines see; `operations` says what it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from afresh.queries.operations import Op
from afresh.queries.values import Type, Value

__all__ = ["Call", "Column", "Literal", "Node", "Op", "Type", "Value", "columns", "walk"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the data, by its real name."""

    name: str
    type: Type

    @property
    def size(self) -> int:
        """One node."""
        return 1

    @property
    def depth(self) -> int:
        """A leaf."""
        return 1


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; None is a NULL of the given type. Numbers are finite floats, never -0.0."""

    value: Value
    type: Type

    @property
    def size(self) -> int:
        """One node."""
        return 1

    @property
    def depth(self) -> int:
        """A leaf."""
        return 1


@dataclass(frozen=True, slots=True)
class Call:
    """An operation on expressions. `size` and `depth` are stored, so no walk can take long unnoticed.

    `serialized` is stored once it is known: a tree made from parts then needs no second walk over them.
    """

    op: Op
    args: tuple[Node, ...]
    type: Type
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)
    serialized: str | None = field(init=False, compare=False, repr=False, default=None)

    def __post_init__(self) -> None:
        """Measure the tree once, from its parts."""
        object.__setattr__(self, "size", 1 + sum(arg.size for arg in self.args))
        object.__setattr__(self, "depth", 1 + max((arg.depth for arg in self.args), default=0))


Node = Column | Literal | Call


def walk(node: Node) -> Iterator[Node]:
    """Every node of a tree, without recursion."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Call):
            stack.extend(node.args)


def columns(node: Node) -> set[str]:
    """The names of the columns an expression reads."""
    return {part.name for part in walk(node) if isinstance(part, Column)}
