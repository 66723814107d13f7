"""The mean of a vector of numbers whose rows are kept in a ball: all coordinates at once, for the price of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from afresh import checks
from afresh.moments import OUTER
from afresh.queries.asked import Asked, make_asked
from afresh.queries.parse import parse
from afresh.queries.renamed import on_scale
from afresh.queries.text import number, readable
from afresh.statistics.base import Asker, Like, Measures, Schema, Shape

BALL = "ball"  # the shape of a vector that lies in a ball, on every row
_FAR = 1e6  # radii from the center; anything farther away is first moved there, coordinate by coordinate
_FINEST = 1e-6  # of the center's numbers: a smaller ball would hold too few of the numbers near it


@dataclass(frozen=True, slots=True)
class VectorMean:
    """The means of several numbers that together lie in a ball on every row: one answer for all of them.

    A row outside the ball counts as the point where the line from the center to the row leaves the ball, or as one a
    billionth of the radius further in, so that no rounding takes it out. The noise of
    every coordinate follows the radius, however many there are, so choose it as small as most rows allow, without
    looking at the data. The price is one answer if the method releases vectors at once (`symmetrized`), otherwise one
    per number.

    Args:
        expressions: Numbers in SQL: a list, or a mapping of names to expressions.
        radius: The ball's radius, in the numbers' own units, which must be comparable: write income / 1000. At least a
            millionth of the center's numbers.
        centre: The ball's center: one number for all coordinates, or one for each. Missing values count as it.
    """

    expressions: Sequence[str] | Mapping[str, str]
    radius: float
    centre: float | Sequence[float] = 0.0

    def __post_init__(self) -> None:
        """Check the ball."""
        given = self.expressions
        if isinstance(given, str):
            raise checks.wrong("expressions", given, "a list of expressions; ask takes a single one")
        named = dict(given) if isinstance(given, Mapping) else None
        listed = checks.listed("expressions", list(given if named is None else named), "a list of at least one number")
        for each in listed if named is None else named.values():
            checks.text("expression", each, "SQL, as text")
        if len(set(listed)) < len(listed):
            raise checks.wrong("expressions", listed, "different from each other")
        object.__setattr__(self, "expressions", tuple(listed) if named is None else named)
        must_be = "a positive number, from 1e-100 to 1e100"
        object.__setattr__(self, "radius", checks.number("radius", self.radius, must_be, least=1e-100, most=1e100))
        if isinstance(self.centre, Sequence) and not isinstance(self.centre, str):
            if len(self.centre) != len(listed):
                raise checks.wrong(
                    "centre", list(self.centre), f"one number, or {len(listed)}, one for each expression"
                )
            found = tuple(checks.number("centre", each, "a finite number") for each in self.centre)
            object.__setattr__(self, "centre", found)
        else:
            object.__setattr__(self, "centre", checks.number("centre", self.centre, "a finite number"))
        farthest = max(self._centres, key=abs)
        if self.radius < _FINEST * abs(farthest):
            must_be = f"at least a millionth of the center's numbers, and {number(farthest)} is one of them"
            instead = f"subtract {number(farthest)} in the expression, and let its center be 0"
            raise checks.wrong("radius", self.radius, f"{must_be}: {instead}")

    @property
    def price(self) -> int:
        """At most one answer for each number."""
        return len(self.expressions)

    def cost(self, schema: Schema) -> int:
        """The same.

        Args:
            schema: The columns and their types.

        Returns:
            The number of answers if asked one by one.
        """
        return self.price

    def text(self, schema: Schema) -> str:
        """What is measured, in words.

        Args:
            schema: The columns and their types.

        Returns:
            A short description.
        """
        words = ", ".join(readable(parse(each, schema)) for each in self._each)
        return f"mean of ({words}) within {number(self.radius)} of {self._centre_words}"

    def coordinates(self, schema: Schema) -> Shape | None:
        """A vector in a ball.

        Args:
            schema: The columns and their types.

        Returns:
            Its kind and its size.
        """
        return Shape(BALL, len(self.expressions))

    def like(self, schema: Schema) -> Like:
        """The first of the numbers, in the middle of the ball.

        Args:
            schema: The columns and their types.

        Returns:
            The question, and what to expect of it.
        """
        return Like(self._asked(schema)[0], None, None)

    @property
    def _each(self) -> list[str]:
        return list(self.expressions.values() if isinstance(self.expressions, Mapping) else self.expressions)

    @property
    def _centres(self) -> list[float]:
        return list(self.centre) if isinstance(self.centre, Sequence) else [self.centre] * len(self.expressions)

    @property
    def _centre_words(self) -> str:
        if isinstance(self.centre, Sequence):
            return f"({', '.join(map(number, self.centre))})"
        return number(self.centre)

    def _asked(self, schema: Schema) -> list[Asked]:
        """The coordinates of each row's point, in units of the radius: there the ball is exact (section 18)."""
        radius, far = self.radius, self.radius * _FAR
        away = [
            f"(least(greatest(coalesce(({each}), {c!r}), {c - far!r}), {c + far!r}) - {c!r}) / {radius!r}"
            for each, c in zip(self._each, self._centres, strict=True)
        ]
        length = f"sqrt({' + '.join(f'({each}) * ({each})' for each in away)})"
        found = []
        for each, c in zip(away, self._centres, strict=True):
            unit = {"expression": f"({each}) / greatest(1.0, {OUTER!r} * {length})", "bounds": (-1.0, 1.0)}
            asked, scale = make_asked(unit, schema), (c - radius, c + radius)
            found.append(replace(asked, queries=(on_scale(asked.queries[0], scale),), bounds=scale))
        return found

    def measure(self, asker: Asker) -> Measures:
        """All in one scan, and one release.

        Args:
            asker: Asks a desk in an analyst's name.

        Returns:
            An answer for each number, by its name or expression.
        """
        desk = asker.desk
        asked = [self._named(one, each) for one, each in zip(self._asked(asker.schema), self._each, strict=True)]
        replies = asker.put(asked, vector=desk.at_once(BALL, len(asked)))
        found = [desk.tell(reply) for reply in replies]
        return Measures(self.text(asker.schema), dict(zip(map(str, self.expressions), found, strict=True)))

    def _named(self, asked: Asked, expression: str) -> Asked:
        """The answer with its number's own words, without the clipping to the ball."""
        said = f"Rows outside the ball count as its nearest point towards the center, {self._centre_words}, and "
        return replace(
            asked,
            question=f"{expression} within {number(self.radius)} of {self._centre_words}",
            about_missing=f"{said}missing values as the center's.",
        )
