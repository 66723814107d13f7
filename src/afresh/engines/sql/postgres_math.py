"""Arithmetic on which Postgres cannot fail.

Postgres raises an error where IEEE 754 gives an infinity, NaN, or a zero that stands for something smaller than the
smallest double. So every operation checks its operands first, and decides exactly what the hardware would have given:
NULL in place of an infinity or NaN, zero in place of an underflow. The operands are finite doubles or NULL.

Even so, two rules are needed to keep Postgres from raising. The planner computes constants in advance, even in a
branch never taken, unless the condition of that branch is constant too; so every step that could raise is guarded by
a condition on its own operands. And only CASE fixes an order of evaluation; AND does not.

The common case comes first and costs a few comparisons. Operands near the ends of the range are handled in a
subquery (`OFFSET 0` keeps the planner from dissolving it), which runs only for the rows that need it.
"""

from __future__ import annotations

from collections.abc import Sequence


def double(value: float) -> str:
    """A finite double, exactly; a bare number would be a NUMERIC."""
    return f"float8 '{value!r}'"


_MAX = double(1.7976931348623157e308)
_LEAST = double(5e-324)
_ZERO, _HALF, _ONE, _TWO = map(double, (0.0, 0.5, 1.0, 2.0))
_BIG, _SMALL = double(2.0**500), double(2.0**-500)
_DOWN, _UP = double(2.0**-600), double(2.0**600)


def _calm(x: str) -> str:
    """The condition that x is far enough from the ends of the range for any product or quotient of two such numbers."""
    return f"abs({x}) BETWEEN {_SMALL} AND {_BIG}"


def _either_null(a: str, b: str) -> str:
    return f"{a} IS NULL OR {b} IS NULL"


def _sum(a: str, b: str, sign: str) -> str:
    """a + b or a - b. Only the sum of two magnitudes can overflow, and only if one is 2^1023 or more.

    It overflows if it reaches the midpoint between the largest double and 2^1024, that is, if
    small >= (max - big) + 2^970, where both steps are exact.
    """
    result, big, small = f"{a} {sign} {b}", f"greatest(abs({a}), abs({b}))", f"least(abs({a}), abs({b}))"
    opposite = f"({a} < {_ZERO}) {'<>' if sign == '+' else '='} ({b} < {_ZERO})"
    return (
        f"(CASE WHEN abs({a}) < {double(2.0**1022)} AND abs({b}) < {double(2.0**1022)} THEN {result} "
        f"WHEN {_either_null(a, b)} THEN NULL WHEN {opposite} THEN {result} "
        f"WHEN {big} < {double(2.0**1023)} THEN {result} "
        f"WHEN {small} < ({_MAX} - {big}) + {double(2.0**970)} THEN {result} END)"
    )


def add(args: Sequence[str]) -> str:
    """a + b, NULL if it overflows."""
    return _sum(args[0], args[1], "+")


def subtract(args: Sequence[str]) -> str:
    """a - b, NULL if it overflows."""
    return _sum(args[0], args[1], "-")


def _scaled(x: str) -> str:
    """x times a power of two that brings it into [2^-500, 2^500]; exact."""
    return f"CASE WHEN abs({x}) >= {_BIG} THEN {x} * {_DOWN} WHEN abs({x}) < {_SMALL} THEN {x} * {_UP} ELSE {x} END"


def _shift(x: str) -> str:
    """The power of two that `_scaled` took out."""
    return f"CASE WHEN abs({x}) >= {_BIG} THEN 600 WHEN abs({x}) < {_SMALL} THEN -600 ELSE 0 END"


def _extreme(a: str, b: str, sign: str) -> str:
    """a * b or a / b of non-zero operands anywhere in the range.

    Their scaled result z is rounded as the real one would be if exponents had no limit. So the real one overflows
    exactly if z reaches 2^1024, and vanishes exactly if z is at most 2^-1075, half the smallest double. A product may
    have been rounded to exactly that number; then its rounding error decides (Dekker's exact product). A quotient of
    doubles is never rounded to a power of two unless it is one.
    """
    result, shifts = f"{a} {sign} {b}", "+" if sign == "*" else "-"
    limit, vanishing = f"power({_TWO}, 1024 - e)", f"power({_TWO}, -1075 - e)"
    tie = f"WHEN abs(z) = {vanishing} AND {_error('p', 'q', 'z')} * sign(z) > {_ZERO} THEN sign(z) * {_LEAST} "
    return (
        f"(SELECT CASE WHEN e > 0 THEN CASE WHEN abs(z) < {limit} THEN {result} END "
        f"WHEN e < 0 THEN CASE WHEN abs(z) > {vanishing} THEN {result} {tie if sign == '*' else ''}ELSE {_ZERO} END "
        f"ELSE {result} END FROM (SELECT p, q, e, p {sign} q AS z FROM (SELECT {_scaled(a)} AS p, {_scaled(b)} AS q, "
        f"({_shift(a)}) {shifts} ({_shift(b)}) AS e OFFSET 0) AS s OFFSET 0) AS s)"
    )


def _error(p: str, q: str, z: str) -> str:
    """p * q - z for z = p * q as rounded: a double, computed exactly from halves of 26 bits."""

    def high(x: str) -> str:
        return f"({x} * {double(134217729.0)} - ({x} * {double(134217729.0)} - {x}))"

    ph, qh = high(p), high(q)
    pl, ql = f"({p} - {ph})", f"({q} - {qh})"
    return f"((({ph} * {qh} - {z}) + {ph} * {ql}) + {pl} * {qh} + {pl} * {ql})"


def multiply(args: Sequence[str]) -> str:
    """a * b, NULL if it overflows."""
    a, b = args
    return (
        f"(CASE WHEN {_calm(a)} AND {_calm(b)} THEN {a} * {b} WHEN {_either_null(a, b)} THEN NULL "
        f"WHEN {a} = {_ZERO} OR {b} = {_ZERO} THEN {_ZERO} ELSE {_extreme(a, b, '*')} END)"
    )


def divide(args: Sequence[str]) -> str:
    """a / b, NULL if b is zero or the quotient overflows."""
    a, b = args
    return (
        f"(CASE WHEN {_calm(a)} AND {_calm(b)} THEN {a} / {b} WHEN {_either_null(a, b)} THEN NULL "
        f"WHEN {b} = {_ZERO} THEN NULL WHEN {a} = {_ZERO} THEN {_ZERO} ELSE {_extreme(a, b, '/')} END)"
    )


def modulo(args: Sequence[str]) -> str:
    """C's fmod, which Postgres lacks. Whole numbers use %; others are divided as integers m * 2^e."""
    a, b = args
    whole = " AND ".join(f"{x} = floor({x}) AND abs({x}) < {double(2.0**53)}" for x in (a, b))

    def bits(x: str) -> str:
        return f"('x' || encode(float8send(abs({x})), 'hex'))::bit(64)::bigint"

    def parts(x: str) -> str:
        """Mantissa and exponent of the double with the bits x."""
        fraction, implied = 2**52 - 1, 2**52
        mantissa = f"CASE WHEN {x} < {implied} THEN {x} ELSE ({x} & {fraction}) | {implied} END"
        return f"({mantissa})::numeric AS m{x}, greatest({x} >> 52, 1)::integer - 1075 AS e{x}"

    # here |a| >= |b|, so a's exponent is not the smaller one; the remainder is below b's 53 bits: exact
    remainder = "mod(mi * power(2::numeric, ei - ej), mj)::float8"
    exact = (
        f"(SELECT sign({a}) * ({remainder} * power({_TWO}, ej)) FROM (SELECT {parts('i')}, {parts('j')} "
        f"FROM (SELECT {bits(a)} AS i, {bits(b)} AS j OFFSET 0) AS s OFFSET 0) AS s)"
    )
    return (
        f"(CASE WHEN {_either_null(a, b)} THEN NULL WHEN {b} = {_ZERO} THEN NULL WHEN abs({a}) < abs({b}) THEN {a} "
        f"WHEN {whole} THEN ({a}::bigint % {b}::bigint)::float8 ELSE {exact} END)"
    )


def power(args: Sequence[str]) -> str:
    """a to the b, NULL if it overflows or is not real.

    |b ln a| shows when `power` is safe. Near the ends of the range the square root h of the result, which is safe,
    decides: h >= 2^512 means an infinity, h <= 2^-537.5 a zero. Within 2^-40 of these, `power` is not called.
    """
    a, b = args
    top, bottom = 2.0**512, 2.0**-537.5
    odd = f"{a} < {_ZERO} AND {b} / {_TWO} <> floor({b} / {_TWO})"
    signed = f"CASE WHEN {odd} THEN {double(-1.0)} ELSE {_ONE} END"
    extreme = (
        f"(SELECT CASE WHEN w > {double(711.0)} THEN NULL WHEN w < {double(-747.0)} THEN {_ZERO} "
        f"ELSE (SELECT CASE WHEN h >= {double(top)} THEN NULL "
        f"WHEN h > {double(top * (1 - 2.0**-40))} THEN {signed} * (h * h) "
        f"WHEN h <= {double(bottom)} THEN {_ZERO} "
        f"WHEN h < {double(bottom * (1 + 2.0**-40))} THEN {signed} * {_LEAST} "
        f"ELSE power({a}, {b}) END FROM (SELECT power(abs({a}), {b} / {_TWO}) AS h OFFSET 0) AS s) END "
        f"FROM (SELECT {b} * ln(abs({a})) AS w OFFSET 0) AS s)"
    )
    return (
        f"(CASE WHEN {_either_null(a, b)} THEN NULL WHEN {b} = {_ONE} THEN {a} "
        f"WHEN {a} = {_ZERO} THEN CASE WHEN {b} > {_ZERO} THEN {_ZERO} WHEN {b} = {_ZERO} THEN {_ONE} END "
        f"WHEN {a} < {_ZERO} AND {b} <> floor({b}) THEN NULL "
        f"WHEN abs({a}) = {_ONE} OR {b} = {_ZERO} THEN power({a}, {b}) "
        f"WHEN abs({b}) > {double(1e20)} THEN CASE WHEN (abs({a}) > {_ONE}) = ({b} < {_ZERO}) THEN {_ZERO} END "
        f"WHEN abs({b}) < {double(1e-290)} THEN {_ONE} "
        f"WHEN abs({b} * ln(abs({a}))) < {double(700.0)} THEN power({a}, {b}) ELSE {extreme} END)"
    )


def exp(args: Sequence[str]) -> str:
    """e to the x, NULL above the logarithm of the largest double, zero below that of half the smallest one."""
    x = args[0]
    return (
        f"(CASE WHEN {x} > {double(709.782712893384)} THEN NULL WHEN {x} < {double(-745.1332191019411)} THEN {_ZERO} "
        f"WHEN {x} < {double(-745.0)} THEN {_LEAST} ELSE exp({x}) END)"
    )


def round_half_away(args: Sequence[str]) -> str:
    """Round to a whole number, halves away from zero; Postgres's own function rounds halves to even."""
    x = args[0]
    step = f"CASE WHEN abs({x} - trunc({x})) >= {_HALF} THEN sign({x}) ELSE {_ZERO} END"
    return f"(CASE WHEN abs({x}) < {double(2.0**52)} THEN trunc({x}) + {step} ELSE {x} END)"
