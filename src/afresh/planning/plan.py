"""The plan: the method and constants by which a dataset answers questions, fixed before the data is seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Protocol

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.ledger.base import ENDS, Limits
from afresh.mechanisms.base import TYPICAL_MEANS, Mechanism, NeverEnds, at_coarseness, at_coordinate, at_levels
from afresh.mechanisms.registry import MECHANISMS
from afresh.moments import Vector
from afresh.planning.request import complement
from afresh.planning.table import Method, advise, compare
from afresh.planning.told import COLUMNS, Details, details, summary
from afresh.planning.ways import Way, recommended, ways
from afresh.results import show
from afresh.results.html import fragment


class Paid(Protocol):
    """The properties of an answer that decide how it is made."""

    @property
    def coarseness(self) -> float:
        """The multiple of the plan's noise."""
        ...

    @property
    def levels(self) -> int | None:
        """The number of values the question can take; None if unlimited."""
        ...

    @property
    def vector(self) -> tuple[str, int, int, int] | None:
        """Which coordinate of which vector it is."""
        ...


@dataclass(frozen=True)
class Plan(show.Told):
    """The method and constants by which a dataset answers questions; fixed before the data is seen.

    With probability at least `confidence`, over the sample and the noise, every interval released over the whole life
    of the guard contains its true value, however the questions were chosen: for rows that are independent draws from
    the population, at most `questions` answers, and an analyst who sees nothing else of the rows.
    """

    mechanism: Mechanism
    ends: float = field(default_factory=lambda: ENDS)
    """The step of the public grid on [0, 1] to which interval ends are rounded outward."""

    @property
    def method(self) -> str:
        """The mechanism's name."""
        return self.mechanism.method

    @property
    def rows(self) -> int:
        """n, the number of rows."""
        return self.mechanism.rows

    @property
    def questions(self) -> int:
        """k, the most answers at full price that can be released."""
        return self.mechanism.questions

    @property
    def answers(self) -> int:
        """The most answers that can be released if some are coarser; at least `questions`."""
        return self.mechanism.answers

    @cached_property  # whatever is asked, and to look at a protocol's members takes long
    def expected(self) -> int | None:
        """Roughly how many answers a budget that never runs out is designed for; None for other budgets."""
        return self.mechanism.expected if isinstance(self.mechanism, NeverEnds) else None

    @property
    def confidence(self) -> float:
        """The probability that all intervals hold at once."""
        return complement(self.mechanism.failure)

    @property
    def rounds(self) -> int | None:
        """The number of rounds, each with rows of its own; None for methods without rounds."""
        batch = self.mechanism.batch
        return None if batch is None else int(self.parameters["rounds"])

    @property
    def open(self) -> int | None:
        """The number of open rows, which the analyst may hold; None without open rows."""
        span = self.mechanism.open_rows
        return None if span is None else span.rows

    @property
    def exam(self) -> int | None:
        """The number of rows kept for the exam; None without an exam."""
        span = self.mechanism.exam_rows
        return None if span is None else span.rows

    @property
    def in_words(self) -> str:
        """What the first answer fixes, in one line."""
        rounds = "" if self.rounds is None else f" in {self.rounds:,} round{'' if self.rounds == 1 else 's'}"
        widths = "" if self.mechanism.promised else ", whose widths are expected but not promised"
        exam = "" if self.exam is None else f", {self.exam:,} rows kept for an exam"
        said = f"{self.in_count}{rounds} at {show.percent(self.confidence)}, by {self.method}"
        return f"{said}{widths}{exam}"

    @property
    def in_count(self) -> str:
        """The number of questions, in words."""
        if self.expected is not None:
            return "any number of questions"
        return "1 question" if self.questions == 1 else f"{self.questions:,} questions"

    @property
    def parameters(self) -> dict[str, float]:
        """The mechanism's public constants."""
        return asdict(self.mechanism)

    @property
    def failure_use(self) -> dict[str, float]:
        """How the failure probability 1 - confidence is divided up."""
        return self.mechanism.failure_use

    @property
    def information(self) -> float | None:
        """The information budget in nats, a hard limit that `questions` answers reach; None without such a limit."""
        return self.mechanism.information

    @property
    def charge(self) -> float:
        """The nats charged for one answer."""
        return self.mechanism.charge

    def half_width(self, mean: float = 0.5, coarseness: float = 1.0) -> float:
        """Half the length of the interval around an answer of `mean`, on the scale [0, 1].

        Args:
            mean: Where the answer lies, as a share of the range between the bounds.
            coarseness: The multiple of the plan's noise; 1 for an answer at full price.

        Returns:
            Half the interval's length; for a method that promises no width, the value if checks pass.

        Raises:
            InvalidArgument: The mean is outside [0, 1], or the method does not offer this coarseness.
        """
        mean = checks.share("mean", mean, ": rescale by the bounds first")
        coarseness = checks.number("coarseness", coarseness, "a number from 1 to 1e6", least=1, most=1e6)
        return self.at(coarseness).half_width(mean)

    def plot(self, ax: Any = None) -> Any:
        """Draw half-widths against the share of rows, with what other methods promise.

        Args:
            ax: Matplotlib axes to draw on; by default, those of a new figure.

        Returns:
            The axes.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from afresh.results.plots import curves

        shares = [10 ** (power / 8) for power in range(-24, -2)]
        own = [(share, self.half_width(share)) for share in (*shares, 0.5)]
        others = {
            name: sorted(each.half_width.items())
            for name, each in self.methods.items()
            if each.half_width is not None and name != self.method
        }
        name = f"this plan, {self.method}"
        return curves({name: own, **others}, ax, x="share of rows", y="half-width", strong=name)

    def at(self, coarseness: float) -> Mechanism:
        """The mechanism of an answer with this multiple of the noise; all answers share the plan's certificate.

        Args:
            coarseness: The multiple of the plan's noise; 1 is the plan's own mechanism.

        Returns:
            The mechanism with the charge and the intervals of such an answer.

        Raises:
            InvalidArgument: The method gives all answers the same noise, or cannot certify this much.
        """
        return at_coarseness(self.mechanism, coarseness)

    def of(self, paid: Paid) -> Mechanism:
        """The mechanism of an answer that was paid for, whatever its noise and whether it is a vector's coordinate.

        Args:
            paid: An entry of the ledger, or the record of its reservation.

        Returns:
            The mechanism with its charge and its interval.
        """
        vector = paid.vector
        if vector is not None:
            return at_coordinate(self.mechanism, Vector(*vector))
        return at_levels(self.at(paid.coarseness), paid.levels)

    @cached_property
    def ways(self) -> list[Way]:
        """The ways to ask this many questions of this many rows, the narrowest at a mean of one half first."""
        return [] if self.expected is not None else ways(self.mechanism)

    @property
    def recommendation(self) -> str:
        """Which way to ask is the narrowest, in words; empty for a budget that never runs out."""
        return "" if self.expected is not None else recommended(self.mechanism)

    @cached_property
    def methods(self) -> dict[str, Method]:
        """The certified methods at these rows, questions and confidence, followed by the reference lines."""
        return compare(self.mechanism)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-ready values, with the comparison."""
        return {
            "method": self.method,
            "rows": self.rows,
            "questions": self.questions,
            "answers": self.answers,
            "confidence": self.confidence,
            "information": self.information,
            "charge": self.charge,
            "half_width": {f"{mean:g}": self.half_width(mean) for mean in TYPICAL_MEANS},
            "parameters": self.parameters,
            "ends": self.ends,
            "failure_use": self.failure_use,
            "recommendation": self.recommendation,
            "ways": [asdict(way) for way in self.ways],
            "methods": {name: method.to_dict() for name, method in self.methods.items()},
        }

    @property
    def limits(self) -> Limits:
        """The plan as a ledger keeps it: the method with its constants, the caps, and both grids."""
        constants = {name: value for name, value in self.parameters.items() if name != "grid"}
        return Limits(
            plan={"method": self.method, **constants},
            questions=self.questions,
            answers=self.answers,
            information=self.information or 0.0,
            row_share=self.mechanism.row_share,
            grid=self.mechanism.grid,
            ends=self.ends,
        )

    @classmethod
    def thaw(cls, limits: Limits) -> Plan:
        """Restore a ledger's plan; nothing is derived or optimized again, so an upgrade cannot change an interval.

        Args:
            limits: The value of `limits`.

        Returns:
            The same plan.

        Raises:
            InvalidArgument: This version of afresh does not know the method or its constants.
        """
        constants = dict(limits.plan)
        if limits.grid is not None:
            constants["grid"] = limits.grid
        method = constants.pop("method", None)
        try:
            return cls(MECHANISMS[method](**constants), limits.ends)
        except (KeyError, TypeError):
            raise InvalidArgument(
                f"the plan is by method={method!r} with the constants {', '.join(constants)}, which this afresh does "
                "not know; use the afresh that made it, or a later one."
            ) from None

    @property
    def advice(self) -> str:
        """What the method can and cannot promise in advance, and which other method would be narrower."""
        return advise(self.mechanism, self.methods)

    @property
    def details(self) -> Details:
        """The plan with its constants and the comparison of all methods, to print."""
        return Details(self)

    def __str__(self) -> str:
        """The ways to ask and their widths, in 80 columns."""
        return show.as_text(self._blocks(), COLUMNS)

    def _blocks(self) -> list[show.Block]:
        return summary(self)

    def _repr_html_(self) -> str:
        return fragment([*summary(self)[:-1], show.Fold("All methods and constants", details(self))])
