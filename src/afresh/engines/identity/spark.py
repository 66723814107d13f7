"""The arithmetic of identity in Spark's SQL. Nothing overflows, so ANSI mode changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from afresh.engines.sql.spark import quote_text
from afresh.queries.tree import Type


class SparkHashing:
    """See `Hashing`."""

    def xor(self, left: str, right: str) -> str:
        """Of two whole numbers."""
        return f"({left} ^ {right})"

    def right(self, value: str, bits: int) -> str:
        """A whole number shifted to the right."""
        return f"shiftright({value}, {bits})"

    def bits(self, value: str) -> str:
        """Spark does not tell the bits of a double: exponent and digits are computed, exactly, by powers of two.

        As a lambda, which Spark does not compile: with it in one method with everything else, Java would interpret all.
        """
        size = "abs(q)"
        guess = f"CAST(floor(log2({size})) AS INT)"  # the logarithm may be off by a last bit at a power of two
        scaled = f"{size} * power(2D, -{guess})"
        exponent = f"({guess} + CASE WHEN {scaled} >= 2D THEN 1 WHEN {scaled} < 1D THEN -1 ELSE 0 END)"
        digits = f"CAST(({size} * power(2D, -{exponent}) - 1D) * 4503599627370496D AS BIGINT)"
        normal = f"shiftleft(CAST({exponent} + 1023 AS BIGINT), 52) + {digits}"
        tiny = f"CAST({size} * power(2D, 537) * power(2D, 537) AS BIGINT)"
        found = f"(CASE WHEN {size} < 2.2250738585072014E-308D THEN {tiny} ELSE {normal} END)"
        signed = f"({found} | CASE WHEN q < 0D THEN shiftleft(1L, 63) ELSE 0L END)"
        return f"element_at(transform(array({value}), q -> {signed}), 1)"

    def parts(self, value: str) -> str:
        """A cast drops what is behind the point."""
        whole = f"CAST({value} AS BIGINT)"
        return f"({whole} + CAST(({value} - CAST({whole} AS DOUBLE)) * 4611686018427387904D AS BIGINT))"

    def whole(self, value: str) -> str:
        """A double that is small and whole."""
        return f"CAST({value} AS BIGINT)"

    def single(self, value: str) -> str:
        """A double rounded to single precision."""
        return f"CAST(CAST({value} AS FLOAT) AS DOUBLE)"

    def micros(self, value: str, kind: Type) -> str:
        """By days and the time of day, of a moment without a zone."""
        days = f"CAST(unix_date(CAST({value} AS DATE)) AS BIGINT) * 86400000000L"
        if kind is Type.DATE:
            return f"({days})"
        clock = f"(hour({value}) * 3600L + minute({value}) * 60L) * 1000000L"
        return f"({days} + {clock} + CAST(extract(SECOND FROM {value}) * 1000000 AS BIGINT))"

    def text(self, value: str) -> str:
        """The first 64 bits of a text's MD5."""
        return f"CAST(conv(substr(md5({value}), 1, 16), 16, -10) AS BIGINT)"

    def matches(self, value: str, pattern: str) -> str:
        """Whether all of a text satisfies a grammar."""
        whole = r"\A(" + pattern + r")\z"  # patterns are of Java: $ would stand before a newline at the end too
        return f"({value} RLIKE {quote_text(whole)})"

    def read(self, value: str, spelt: str) -> str:
        """Times without the mark of UTC."""
        if spelt == "boolean":
            return f"(CASE WHEN lower({value}) = 'true' THEN 1D WHEN {value} IS NOT NULL THEN 0D END)"
        if spelt == "number":
            return f"try_cast({value} AS DOUBLE)"
        mark = quote_text(r"(Z|\+00(:?00)?)\z")
        return f"try_cast(regexp_replace({value}, {mark}, '') AS TIMESTAMP_NTZ)"

    def sums(self, value: str) -> list[str]:
        """Of the halves: sums of BIGINT must stay below 2^63."""
        return [f"sum({value} & 4294967295)", f"sum(shiftright({value}, 32))"]

    def total(self, found: Sequence[Any]) -> int:
        """The sum."""
        return int(found[0] or 0) + (int(found[1] or 0) << 32)

    def seen(self, value: str) -> str:
        """A bit for the last six bits of each number."""
        return f"bit_or(shiftleft(1L, CAST({value} & 63 AS INT)))"
