"""Random trees whose conditions and results repeat, where a rewrite is most easily wrong.

A thousand run with the tests. At length, and with other dice each time:

    cd tests && python -m queries.fuzz --canonical --trees 1000000

What must hold of every tree: its canonical form has its value on every row, bit by bit; and trees of one digest,
of all that were ever made, agree on every row. The oracle says what a tree means.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from afresh.queries.canonical import canonical
from afresh.queries.query import Query
from afresh.queries.tree import Call, Column, Literal, Node, Op, Type
from engines import oracle

SCHEMA: dict[str, Type | None] = {
    **dict.fromkeys("pqr", Type.BOOLEAN),
    **dict.fromkeys("xy", Type.NUMBER),
    "s": Type.TEXT,
}
_X = (None, 0.0, 1.0, -1.0, 2.0, 0.2, 1e308)
_S = (None, "CH", "AT", "", "Chur")
# all values of three conditions, twice, each with other values beside them
ROWS = [
    {"p": p, "q": q, "r": r, "x": _X[i % 7], "y": _X[(i * 3 + i // 7) % 7], "s": _S[i % 5]}
    for i, (_, p, q, r) in enumerate(product(range(2), *[(True, False, None)] * 3))
]


def _call(op: Op, *args: Node, kind: Type = Type.BOOLEAN) -> Call:
    return Call(op, args, kind)


def _text(value: str) -> Literal:
    return Literal(value, Type.TEXT)


P, Q, R = (Column(name, Type.BOOLEAN) for name in "pqr")
X, Y, S = Column("x", Type.NUMBER), Column("y", Type.NUMBER), Column("s", Type.TEXT)
TRUE, FALSE, NEVER = (Literal(value, Type.BOOLEAN) for value in (True, False, None))
ZERO, ONE, FIFTH = (Literal(value, Type.NUMBER) for value in (0.0, 1.0, 0.2))
NOTHING = Literal(None, Type.NUMBER)
_CONDITIONS: tuple[Node, ...] = (
    *(P, Q, R, P, Q, R),
    *(_call(Op.EQUAL, X, ZERO), _call(Op.EQUAL, ONE, X), _call(Op.LESS, X, ONE), _call(Op.LESS_EQUAL, ONE, X)),
    *(_call(Op.EQUAL, S, _text("CH")), _call(Op.EQUAL, _text("AT"), S), _call(Op.IN, S, _text("CH"), _text("AT"))),
    *(_call(Op.LIKE, S, _text("CH%")), _call(Op.STARTS_WITH, S, _text("CH")), _call(Op.IN, X, ONE, ZERO, ONE)),
    *(_call(Op.IS_NULL, P), _call(Op.IS_NULL, X), _call(Op.IS_TRUE, Q), TRUE, FALSE, NEVER),
)
_NUMBERS: tuple[Node, ...] = (ZERO, ONE, FIFTH, X, Y, NOTHING, ZERO, ONE)


@dataclass
class Garden:
    """Grows one tree: a few conditions and results of its own, drawn again and again."""

    dice: random.Random
    conditions: list[Node] = field(default_factory=list)
    numbers: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Half of the conditions are made of those before them, so that one may be the OR of two others."""
        dice = self.dice
        self.conditions = [dice.choice(_CONDITIONS) for _ in range(2)]
        for _ in range(dice.randint(0, 3)):
            one, other = dice.choice(self.conditions), dice.choice(self.conditions)
            op = dice.choice((Op.OR, Op.OR, Op.AND, Op.NOT, Op.IS_TRUE, None))
            made = dice.choice(_CONDITIONS) if op is None else _call(op, one, other)
            self.conditions.append(_call(op, one) if op in (Op.NOT, Op.IS_TRUE) else made)
        self.numbers = [dice.choice(_NUMBERS) for _ in range(3)]

    def condition(self, depth: int) -> Node:
        """A condition."""
        dice = self.dice
        if depth == 0 or dice.random() < 0.25:
            return dice.choice(self.conditions)
        op = dice.choice((Op.AND, Op.OR, Op.NOT, Op.IS_TRUE, Op.IS_NULL, Op.EQUAL, Op.COALESCE, Op.CASE, Op.CASE))
        if op is Op.CASE:
            return self._case(depth, Type.BOOLEAN)
        count = {Op.NOT: 1, Op.IS_TRUE: 1, Op.IS_NULL: 1, Op.EQUAL: 2}.get(op) or dice.randint(2, 4)
        return _call(op, *(self.condition(depth - 1) for _ in range(count)))

    def number(self, depth: int) -> Node:
        """A number."""
        dice = self.dice
        if depth == 0 or dice.random() < 0.2:
            return dice.choice(self.numbers)
        if dice.random() < 0.6:
            return self._case(depth, Type.NUMBER)
        op = dice.choice((Op.COALESCE, Op.COALESCE, Op.LEAST, Op.GREATEST, Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.NEGATE))
        count = {Op.NEGATE: 1, Op.ADD: 2, Op.SUBTRACT: 2, Op.MULTIPLY: 2}.get(op) or dice.randint(2, 4)
        return _call(op, *(self.number(depth - 1) for _ in range(count)), kind=Type.NUMBER)

    def _case(self, depth: int, kind: Type) -> Node:
        dice = self.dice
        value = self.number if kind is Type.NUMBER else self.condition
        plain = self.numbers if kind is Type.NUMBER else (TRUE, FALSE, NEVER, *self.conditions[:1])
        parts = []
        for _ in range(dice.randint(1, 5)):
            parts.append(dice.choice(self.conditions) if dice.random() < 0.7 else self.condition(depth - 1))
            parts.append(dice.choice(plain) if dice.random() < 0.8 else value(depth - 1))
        return _call(Op.CASE, *parts, dice.choice(plain) if dice.random() < 0.6 else value(depth - 1), kind=kind)


def grow(dice: random.Random) -> Node:
    """A random tree."""
    garden = Garden(dice)
    return dice.choice((garden.condition, garden.number))(dice.randint(1, 3))


def values(tree: Node) -> tuple[Any, ...]:
    """What a tree is on every row; zero has no sign that any operation could see."""
    found = oracle.evaluate_all(tree, ROWS)
    return tuple(value + 0.0 if isinstance(value, float) else value for value in found)


@dataclass
class Register:
    """What every digest seen so far means."""

    seen: dict[bytes, bytes] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def check(self, tree: Node) -> str | None:
        """What is wrong with a tree, if anything is."""
        self.counts["trees"] += 1
        expected = values(tree)
        if values(canonical(tree)) != expected:
            return f"the canonical form of {Query(tree).text} has another meaning"
        meaning = hashlib.blake2b(repr(expected).encode(), digest_size=8).digest()
        digest = bytes.fromhex(Query(tree).digest)[:16]
        if self.seen.setdefault(digest, meaning) != meaning:
            return f"{Query(tree).text} shares its digest with a question of another meaning"
        return None
