"""Arithmetic at the ends of the range: what Postgres would refuse is what the hardware gives, bit for bit."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from afresh.engines.sql.postgres import RULES
from afresh.queries.tree import Call, Column, Op, Type
from engines import oracle

LARGEST = 1.7976931348623157e308
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 2.5, -2.5, 3.0, 10.0, 1e15, 123.456, -0.1, 2.0**53, 1e308, LARGEST, -LARGEST]
EDGES += [5e-324, -5e-324, 1e-308, 2.2250738585072014e-308, 3e-162, 1e-200, 1e20, 1e-290, 1e300, -708.5]
EDGES += [2.0**e for e in (1023, 1022, 971, 970, 969, 512, -537, -538, 500, -500)] + [math.nextafter(2.0**1023, 0)]
EDGES += [1024.0, -1074.0, -1075.0, 1.3407807929942596e154, 1.5717277847026288e-162]
EDGES += [709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412]
UNARY = [Op.EXP, Op.LN, Op.LOG10, Op.SQRT, Op.ROUND, Op.FLOOR, Op.CEIL, Op.SIGN, Op.ABS, Op.NEGATE]
BINARY = [Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.MODULO, Op.POWER]


def _anything(rng: random.Random) -> float | None:
    kind = rng.randrange(5)
    if kind < 2:
        return rng.choice([*EDGES, None])
    if kind == 2:
        return rng.uniform(-20, 20) if rng.random() < 0.5 else float(rng.randint(-1000, 1000))
    return rng.choice([1, -1]) * math.ldexp(rng.uniform(1, 2), rng.randint(-1074, 1023))


def _near_the_ends(rng: random.Random) -> list[tuple[float, float]]:
    """Pairs whose sum, product, quotient or power is within a bit of overflow or of half the smallest double."""
    pairs = []
    up, down = math.inf, 0.0
    small = math.ldexp(rng.uniform(1, 2), rng.randint(-1000, -80))
    mantissa, exponent = math.frexp(small)
    if -1075 - exponent > -1022:
        other = math.ldexp(1 / mantissa, -1075 - exponent)
        pairs += [(small, other), (small, math.nextafter(other, up)), (small, math.nextafter(other, down))]
        pairs += [(small, 1 / other)] if 1 / other < LARGEST else []
    large = math.ldexp(rng.uniform(1, 2), rng.randint(10, 1023))
    mantissa, exponent = math.frexp(large)
    other = math.ldexp(1 / mantissa, 1024 - exponent)
    pairs += [(large, other), (large, math.nextafter(other, down)), (large, math.nextafter(other, up))]
    pairs += [(large, 1 / other), (large, math.nextafter(1 / other, up))]
    large = rng.uniform(2.0**1022, LARGEST)
    gap = LARGEST - large
    pairs += [(large, gap), (large, math.nextafter(gap, up)), (large, gap + 2.0**970), (-large, -gap - 2.0**970)]
    pairs += [(large, math.nextafter(gap + 2.0**970, down)), (large, -gap - 2.0**970)]
    base = math.exp(rng.uniform(-3, 3))
    return pairs + [(base, bits * math.log(2) / math.log(base)) for bits in (1024, -1075)]


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    rng = random.Random(4)
    pairs: list[tuple[float | None, float | None]] = [(x, y) for x in EDGES for y in EDGES]
    pairs += [(_anything(rng), _anything(rng)) for _ in range(8000)]
    for _ in range(500):
        pairs += _near_the_ends(rng)
    connection: psycopg.Connection[Any] = psycopg.connect(postgres_url, autocommit=True)
    connection.execute("CREATE TABLE IF NOT EXISTS edges (x float8, y float8)")
    connection.execute("TRUNCATE edges")
    with connection.cursor().copy("COPY edges FROM STDIN") as copy:
        for pair in pairs:
            copy.write_row(pair)
    yield connection
    connection.close()


@pytest.mark.parametrize("op", [*UNARY, *BINARY])
def test_every_bit(connection: psycopg.Connection[Any], op: Op) -> None:
    tree = Call(op, tuple(Column(name, Type.NUMBER) for name in ("x", "y")[: 1 + (op in BINARY)]), Type.NUMBER)
    sql = RULES[op].write(["x", "y"][: len(tree.args)])  # operands are finite or NULL: others never get there
    rows = connection.execute(f"SELECT x, y, {sql} FROM edges")
    wrong = []
    for x, y, found in rows.fetchall():
        expected = oracle.evaluate(tree, {"x": x, "y": y})
        if found != expected and not (op is Op.POWER and _last_bits(found, expected)):
            wrong.append((x, y, expected, found))
    assert wrong == []


def _last_bits(found: float | None, expected: float | None) -> bool:
    """Near the ends `power` is squared from a root: the last bits may differ, and the very largest double is NULL."""
    if found is None or expected is None:
        return found is None and expected == LARGEST
    return abs(found - expected) <= 2 * math.ulp(expected)
