"""The arithmetic of identity in Postgres's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from afresh.engines.sql.rendering import quoted
from afresh.queries.tree import Type


class PostgresHashing:
    """See `Hashing`."""

    def xor(self, left: str, right: str) -> str:
        """Of two whole numbers."""
        return f"({left} # {right})"

    def right(self, value: str, bits: int) -> str:
        """A whole number shifted to the right."""
        return f"({value} >> {bits})"

    def bits(self, value: str) -> str:
        """The bits of a double, by way of its bytes in network order."""
        return f"('x' || encode(float8send({value}), 'hex'))::bit(64)::bigint"

    def parts(self, value: str) -> str:
        """Each part is a whole number before it is cast, which would round it."""
        return f"(trunc({value})::bigint + (({value} - trunc({value})) * 4611686018427387904::float8)::bigint)"

    def whole(self, value: str) -> str:
        """A double that is small and whole."""
        return f"({value})::bigint"

    def single(self, value: str) -> str:
        """A double rounded to single precision."""
        return f"({value})::float4::float8"

    def micros(self, value: str, kind: Type) -> str:
        """By days and the time of day, which fits a double: before version 14 parts are doubles."""
        days = f"(({value})::date - date '1970-01-01')::bigint * 86400000000"
        if kind is Type.DATE:
            return f"({days})"
        return f"({days} + (extract(epoch FROM ({value})::time) * 1000000)::bigint)"

    def text(self, value: str) -> str:
        """The first 64 bits of a text's MD5."""
        return f"('x' || md5({value}))::bit(64)::bigint"

    def matches(self, value: str, pattern: str) -> str:
        """Whether all of a text satisfies a grammar."""
        return f"({value} ~ {quoted(f'^({pattern})$')})"

    def read(self, value: str, spelt: str) -> str:
        """A number by way of NUMERIC: the grammar has no exponent that it or a double cannot hold."""
        if spelt == "boolean":
            return f"(CASE WHEN lower({value}) = 'true' THEN 1 WHEN {value} IS NOT NULL THEN 0 END)::float8"
        return f"({value})::{'timestamp' if spelt == 'time' else 'float8'}"

    def sums(self, value: str) -> list[str]:
        """A sum of BIGINT is NUMERIC."""
        return [f"sum({value})"]

    def total(self, found: Sequence[Any]) -> int:
        """The sum."""
        return int(found[0] or 0)

    def seen(self, value: str) -> str:
        """A bit for the last six bits of each number."""
        return f"bit_or(1::bigint << ({value} & 63)::int)"
