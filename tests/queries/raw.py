"""What a question means, from its text, by nothing the project has: the reference for every rewrite.

A construct of the language is one line of a table: how people write it, and what it gives for Python values. Trees are
made of these lines; their text goes the way of every question (parser, canonical form, `simpler`, SQL or Polars), and
what comes back is compared with the table.

Every construct stands in every place of every other one at least once, so that none is tried only where it is alone.
`python -m queries.fuzz --raw` goes on with larger trees.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from afresh.queries.tree import Call, Column, Node

Meaning = Callable[..., Any]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def strict(value: Meaning) -> Meaning:
    """NULL if an operand is, or if there is no result."""

    def meaning(*args: Any) -> Any:
        if any(arg is None for arg in args):
            return None
        try:
            found = value(*args)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return _finite(found) if isinstance(found, int | float) and not isinstance(found, bool) else found

    return meaning


def both(*args: bool | None) -> bool | None:
    if any(arg is False for arg in args):
        return False
    return None if any(arg is None for arg in args) else True


def either(*args: bool | None) -> bool | None:
    if any(arg is True for arg in args):
        return True
    return None if any(arg is None for arg in args) else False


def case(*args: Any) -> Any:
    """Condition, result, condition, result, ..., otherwise."""
    *pairs, otherwise = args
    while pairs:
        test, result, *pairs = pairs
        if test is True:
            return result
    return otherwise


def skipping(value: Meaning) -> Meaning:
    def meaning(*args: Any) -> Any:
        there = [arg for arg in args if arg is not None]
        return value(there) if there else None

    return meaning


def _round(x: float) -> float:
    down = math.floor(x)
    up = down if down == x else down + 1
    return up if x - down > 0.5 or (x - down == 0.5 and x > 0) else down


def _letters(text: str, first: str, moved: int) -> str:
    """ASCII letters of one case, moved to the other."""
    return "".join(chr(ord(c) + moved) if 0 <= ord(c) - ord(first) < 26 else c for c in text)


def _matches(text: str, pattern: str) -> bool:
    parts = "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.fullmatch(parts, text, re.DOTALL) is not None


def _read(text: str) -> float | None:
    found = re.fullmatch(r" *([+-]?(?:[0-9]{1,50}\.?[0-9]{0,50}|\.[0-9]{1,50})(?:[eE][+-]?[0-9]{1,2})?) *", text)
    return float(found[1]) if found else None


def _written(x: float) -> str | None:
    return f"{x + 0.0:.0f}" if x == math.floor(x) and abs(x) <= 2**53 else None


def _part(unit: str, when: date) -> float:
    clock = (when.hour * 60 + when.minute) * 60 + when.second if isinstance(when, datetime) else 0
    odd = {
        "dow": (when.weekday() + 1) % 7,
        "isodow": when.weekday() + 1,
        "doy": when.timetuple().tm_yday,
        "epoch": (when.toordinal() - 719163) * 86400 + clock,
    }
    return odd[unit] if unit in odd else getattr(when, unit)


def equal(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else a == b


# What each operation of a parsed tree gives, by its name.
MEANINGS: dict[str, Meaning] = {
    "and": both,
    "or": either,
    "not": strict(lambda a: not a),
    "is_true": lambda a: a is True,
    "is_null": lambda a: a is None,
    "equal": equal,
    "less": strict(lambda a, b: a < b),
    "less_equal": strict(lambda a, b: a <= b),
    "in": strict(lambda a, *of: any(a == one for one in of)),
    "like": strict(_matches),
    "starts_with": strict(lambda a, b: a[: len(b)] == b),
    "ends_with": strict(lambda a, b: not b or a[-len(b) :] == b),
    "contains": strict(lambda a, b: a.find(b) >= 0),
    "case": case,
    "coalesce": skipping(lambda there: there[0]),
    "least": skipping(min),
    "greatest": skipping(max),
    "add": strict(lambda a, b: a + b),
    "subtract": strict(lambda a, b: a - b),
    "multiply": strict(lambda a, b: a * b),
    "divide": strict(lambda a, b: a / b),
    "modulo": strict(math.fmod),
    "power": strict(math.pow),
    "negate": strict(lambda a: -a),
    "abs": strict(lambda a: a if a > 0 else -a),
    "sign": strict(lambda a: 0.0 if a == 0 else math.copysign(1.0, a)),
    "floor": strict(math.floor),
    "ceil": strict(math.ceil),
    "round": strict(_round),
    "exp": strict(math.exp),
    "ln": strict(math.log),
    "log10": strict(math.log10),
    "sqrt": strict(math.sqrt),
    "lower": strict(lambda a: _letters(a, "A", 32)),
    "upper": strict(lambda a: _letters(a, "a", -32)),
    "trim": strict(lambda a: re.sub("^ +| +$", "", a)),
    "substring": strict(lambda a, start, length=1e9: a[int(start) - 1 : int(start) - 1 + int(length)]),
    "length": strict(lambda a: len(list(a))),
    "to_number": strict(_read),
    "to_text": strict(_written),
    "date_part": strict(_part),
}
_M = MEANINGS


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _between(a: Any, low: Any, high: Any) -> bool | None:
    return both(_M["less_equal"](low, a), _M["less_equal"](a, high))


def _simple_case(a: Any, *args: Any) -> Any:
    *pairs, otherwise = args
    return case(*(equal(a, arg) if i % 2 == 0 else arg for i, arg in enumerate(pairs)), otherwise)


def _days(a: date, b: date) -> float:
    return b.toordinal() - a.toordinal()


# kind, how it is written, what it gives; {n}umbers, {b}ooleans, {t}exts, {d}ates and {m}oments are its operands
_TABLE: list[tuple[str, str, Meaning]] = [
    ("n", "({n} + {n})", _M["add"]),
    ("n", "({n} - {n})", _M["subtract"]),
    ("n", "({n} * {n})", _M["multiply"]),
    ("n", "({n} / {n})", _M["divide"]),
    ("n", "({n} % {n})", _M["modulo"]),
    ("n", "(- {n})", _M["negate"]),
    *(("n", f"{name}({{n}})", _M[name]) for name in ("abs", "sign", "floor", "ceil", "round", "sqrt")),
    *(("n", f"{name}({{n}})", _M[name]) for name in ("exp", "ln", "log10")),
    ("n", "power({n}, {n})", _M["power"]),
    ("n", "length({t})", _M["length"]),
    ("n", "TRY_CAST({t} AS DOUBLE)", _M["to_number"]),
    ("n", "CAST({b} AS DOUBLE)", strict(float)),
    ("n", "year({d})", strict(lambda d: _part("year", d))),
    ("n", "extract(dow FROM {d})", strict(lambda d: _part("dow", d))),
    ("n", "extract(doy FROM {m})", strict(lambda m: _part("doy", m))),
    ("n", "hour({m})", strict(lambda m: _part("hour", m))),
    ("n", "date_diff('day', {d}, {d})", strict(_days)),
    *(
        ("b", f"({{n}} {sign} {{n}})", meaning)
        for sign, meaning in (
            ("<", _M["less"]),
            ("<=", _M["less_equal"]),
            (">", lambda a, b: _M["less"](b, a)),
            (">=", lambda a, b: _M["less_equal"](b, a)),
        )
    ),
    ("b", "({d} < {d})", _M["less"]),
    ("b", "({m} >= {m})", lambda a, b: _M["less_equal"](b, a)),
    ("b", "({n} BETWEEN {n} AND {n})", _between),
    ("b", "({n} NOT BETWEEN {n} AND {n})", lambda *args: _not(_between(*args))),
    ("b", "({d} BETWEEN {d} AND {d})", _between),
    ("b", "({n} IN (0, 1, 2.5))", strict(lambda a: a in (0, 1, 2.5))),
    ("b", "({n} NOT IN (1, -1))", strict(lambda a: a not in (1, -1))),
    ("b", "({t} IN ('a', 'é', ''))", strict(lambda a: a in ("a", "é", ""))),
    ("b", "({d} IN (DATE '2025-01-31'))", strict(lambda d: d == date(2025, 1, 31))),
    ("b", "({t} LIKE '%a_')", strict(lambda a: _matches(a, "%a_"))),
    ("b", "({t} NOT LIKE 'a%')", strict(lambda a: not _matches(a, "a%"))),
    ("b", "({t} ILIKE '%B%')", strict(lambda a: "b" in a or "B" in a)),
    *(("b", f"{name}({{t}}, {{t}})", _M[name]) for name in ("starts_with", "ends_with", "contains")),
    ("b", "({b} AND {b})", both),
    ("b", "({b} OR {b})", either),
    ("b", "({b} AND {b} AND {b})", both),
    ("b", "({b} OR {b} OR {b})", either),
    ("b", "(NOT {b})", _not),
    ("b", "({b} IS TRUE)", lambda a: a is True),
    ("b", "({b} IS FALSE)", lambda a: a is False),
    ("b", "({b} IS NOT TRUE)", lambda a: a is not True),
    ("b", "({b} IS NOT FALSE)", lambda a: a is not False),
    ("t", "lower({t})", _M["lower"]),
    ("t", "upper({t})", _M["upper"]),
    ("t", "trim({t})", _M["trim"]),
    ("t", "substring({t}, 2)", strict(lambda a: a[1:])),
    ("t", "left({t}, 1)", strict(lambda a: a[:1])),
    ("t", "CAST({n} AS VARCHAR)", _M["to_text"]),
    ("t", "CAST({b} AS VARCHAR)", strict(lambda a: "true" if a else "false")),
]
for _k in "nbtdm":  # what every type has
    _TABLE += [
        ("b", f"({{{_k}}} IS NULL)", lambda a: a is None),
        ("b", f"({{{_k}}} IS NOT NULL)", lambda a: a is not None),
        ("b", f"({{{_k}}} = {{{_k}}})", equal),
        ("b", f"({{{_k}}} <> {{{_k}}})", lambda a, b: _not(equal(a, b))),
        (_k, f"CASE WHEN {{b}} THEN {{{_k}}} ELSE {{{_k}}} END", case),
        (_k, f"CASE WHEN {{b}} THEN {{{_k}}} END", lambda test, value: value if test is True else None),
        (_k, f"CASE WHEN {{b}} THEN {{{_k}}} WHEN {{b}} THEN {{{_k}}} ELSE {{{_k}}} END", case),
        (_k, f"CASE {{{_k}}} WHEN {{{_k}}} THEN {{{_k}}} WHEN {{{_k}}} THEN {{{_k}}} ELSE {{{_k}}} END", _simple_case),
        (_k, f"coalesce({{{_k}}}, {{{_k}}})", _M["coalesce"]),
        (_k, f"nullif({{{_k}}}, {{{_k}}})", lambda a, b: None if equal(a, b) else a),
    ]
for _k in "ntdm":
    _TABLE += [
        (_k, f"least({{{_k}}}, {{{_k}}})", _M["least"]),
        (_k, f"greatest({{{_k}}}, {{{_k}}}, {{{_k}}})", _M["greatest"]),
    ]
_TABLE += [  # what people ask most, of constants alone
    ("n", "CASE WHEN {b} THEN 1 ELSE 0 END", lambda test: 1.0 if test is True else 0.0),
    ("n", "CASE WHEN {b} THEN 0 ELSE 1 END", lambda test: 0.0 if test is True else 1.0),
    ("n", "CASE WHEN {b} THEN 1 WHEN {b} THEN {n} ELSE 0 END", lambda a, b, n: case(a, 1.0, b, n, 0.0)),
    ("n", "CASE WHEN {b} THEN {n} WHEN {b} THEN 1 ELSE 0 END", lambda a, n, b: case(a, n, b, 1.0, 0.0)),
    ("b", "CASE WHEN {b} THEN TRUE WHEN {b} THEN {b} ELSE FALSE END", lambda a, b, c: case(a, True, b, c, False)),
]
LIBRARY = re.compile(r"\b(exp|ln|log10|power)\(")
"""Functions whose last bit depends on a library of mathematics."""


@dataclass(frozen=True, eq=False)
class Construct:
    """One line of the table."""

    kind: str
    form: str
    meaning: Meaning

    @cached_property
    def operands(self) -> list[str]:
        return re.findall(r"\{(\w)\}", self.form)


CONSTRUCTS = [Construct(*line) for line in _TABLE]
BY_KIND = {kind: [one for one in CONSTRUCTS if one.kind == kind] for kind in "nbtdm"}
_NUMBERS = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 3.0, 1e308, 5e-324]
_TEXTS = [None, "", "a", "B", "ab", " 1 ", "é", "2.5", "it's"]
_DAYS = [None, date(2025, 1, 31), date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29)]
_MOMENTS = [None, datetime(2025, 1, 31, 12, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59)]
_FLAGS = [None, True, False]
_POOLS: dict[str, tuple[str, list[Any], pa.DataType]] = {
    "x": ("n", _NUMBERS, pa.float64()),
    "y": ("n", _NUMBERS, pa.float64()),
    "k": ("n", [None, 0, 1, 2, -1, 7, 2**53 + 1], pa.int64()),
    "p": ("b", _FLAGS, pa.bool_()),
    "q": ("b", _FLAGS, pa.bool_()),
    "r": ("b", _FLAGS, pa.bool_()),
    "s": ("t", _TEXTS, pa.string()),
    "u": ("t", _TEXTS, pa.string()),
    "day": ("d", _DAYS, pa.date32()),
    "other": ("d", _DAYS, pa.date32()),
    "moment": ("m", _MOMENTS, pa.timestamp("us")),
}
_dice = random.Random(2018)
ROWS = [{name: _dice.choice(pool) for name, (_, pool, _) in _POOLS.items()} for _ in range(48)]
_LEAVES: dict[str, dict[str, Any]] = {
    "n": {"0": 0.0, "1": 1.0, "-1": -1.0, "0.5": 0.5, "1e308": 1e308},
    "b": {"TRUE": True, "FALSE": False},
    "t": {"''": "", "'a'": "a", "'B'": "B"},
    "d": {"DATE '2025-01-31'": date(2025, 1, 31)},
    "m": {"TIMESTAMP '2025-01-31 12:00:00.000001'": datetime(2025, 1, 31, 12, 0, 0, 1)},
}


def table() -> pa.Table:
    """The rows."""
    return pa.table({name: pa.array([row[name] for row in ROWS], kind) for name, (_, _, kind) in _POOLS.items()})


def _seen(value: Any) -> Any:
    """A value of a column as the language has it."""
    return _finite(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def seen() -> list[dict[str, Any]]:
    """The rows as the language has them."""
    return [{name: _seen(value) for name, value in row.items()} for row in ROWS]


@dataclass(frozen=True, eq=False)
class Tree:
    """A question: its text, and its value on every row."""

    kind: str
    text: str
    values: Sequence[Any]


def leaf(dice: random.Random, kind: str) -> Tree:
    names = [name for name, (of, _, _) in _POOLS.items() if of == kind]
    if dice.random() < 0.7:
        name = dice.choice(names)
        return Tree(kind, name, [_seen(row[name]) for row in ROWS])
    text, value = dice.choice(list(_LEAVES[kind].items()))
    return Tree(kind, text, [value] * len(ROWS))


def made(construct: Construct, operands: Sequence[Tree]) -> Tree:
    """A construct of these operands."""
    texts = iter(operands)
    text = re.sub(r"\{\w\}", lambda _: next(texts).text, construct.form)
    return Tree(construct.kind, text, list(map(construct.meaning, *(one.values for one in operands))))


def grown(dice: random.Random, kind: str, depth: int, start: Construct | None = None) -> Tree:
    """A random tree."""
    if start is None and (depth == 0 or dice.random() < 0.15):
        return leaf(dice, kind)
    construct = start or dice.choice(BY_KIND[kind])
    return made(construct, [grown(dice, of, max(depth - 1, 0)) for of in construct.operands])


def nested(dice: random.Random) -> Iterator[Tree]:
    """Every construct in every place of every other."""
    for outer in CONSTRUCTS:
        for place, kind in enumerate(outer.operands):
            for inner in BY_KIND[kind]:
                operands = [grown(dice, of, 0) for of in outer.operands]
                operands[place] = grown(dice, kind, 1, inner)
                yield made(outer, operands)


def asked(dice: random.Random, tree: Tree) -> Tree:
    """The same as a condition or a number, which alone can be asked about."""
    while tree.kind not in "nb":
        construct = dice.choice([one for one in CONSTRUCTS if one.kind in "nb" and tree.kind in one.operands])
        operands = [grown(dice, of, 0) for of in construct.operands]
        operands[construct.operands.index(tree.kind)] = tree
        tree = made(construct, operands)
    return tree


def values_of(node: Node) -> list[Any]:
    """What a parsed tree gives on every row."""
    if isinstance(node, Column):
        return [_seen(row[node.name]) for row in ROWS]
    if isinstance(node, Call):
        return list(map(MEANINGS[node.op.value], *map(values_of, node.args)))
    return [node.value] * len(ROWS)


def units(tree: Tree, bounds: tuple[float, float], fill: float, within: Tree | None, complement: bool) -> list[float]:
    """What is summed: values in [0, 1], 0 outside the group."""
    low, high = bounds
    found = []
    for i, value in enumerate(tree.values):
        if value is None:
            unit = fill
        elif isinstance(value, bool):
            unit = 1.0 if value else 0.0
        else:
            unit = 0.0 if value <= low else 1.0 if value >= high else (value - low) / (high - low)
        unit = 1.0 - unit if complement else unit
        found.append(unit if within is None or within.values[i] is True else 0.0)
    return found
