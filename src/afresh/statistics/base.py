"""What statistics have in common: a price, questions, and an answer derived from answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.guard.path import Reply
from afresh.mechanisms.base import ReleasesDeviation
from afresh.queries.asked import Asked, ask, make_asked
from afresh.queries.query import parse_group
from afresh.queries.text import readable
from afresh.queries.tree import Type
from afresh.results import show
from afresh.results.answer import Answer, cost_line, noise_column, said_of_all, simulation_mark
from afresh.results.answers import forest_mark
from afresh.results.frames import Tabular

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.ledger import Entry
    from afresh.moments import Vector
    from afresh.results.reading import Number

Schema = Mapping[str, Type | None]


class Statistic(Protocol):
    """Something to measure on a guard's rows, by asking for means."""

    @property
    def price(self) -> int:
        """The most answers it costs for any columns; what was asked before is free."""
        ...

    def cost(self, schema: Schema) -> int:
        """The most answers it costs for data with these columns; `Guard.price` shows it.

        Args:
            schema: The columns and their types.

        Returns:
            A number of answers.
        """
        ...

    def text(self, schema: Schema) -> str:
        """What is measured, in words.

        Args:
            schema: The columns and their types.

        Returns:
            A short description.
        """
        ...

    def measure(self, asker: Asker) -> Answer | Measures:
        """Ask for its means and combine them.

        Args:
            asker: Asks a desk in an analyst's name; `Guard.measure` passes it.

        Returns:
            Its answer, or several answers with names.
        """
        ...


@dataclass(frozen=True, slots=True)
class Variable:
    """A bounded number for each row."""

    sql: str
    """It has a value on every row that counts."""
    present: str | None
    """The rows that count, in SQL; None for all."""
    bounds: tuple[float, float]
    text: str
    about_missing: str


def variable(expression: str, bounds: tuple[float, float], missing: float | None, schema: Schema) -> Variable:
    """Check a number; rows without it are left out unless `missing` gives a value for them."""
    checks.text("expression", expression, "SQL, as text")
    low, high = bounds = checks.bounds("bounds", bounds)
    asked = ask(expression, schema, bounds, missing=missing)
    inner = f"({expression})" if missing is None else f"coalesce(({expression}), {asked.queries[0].missing!r})"
    return Variable(
        sql=f"least(greatest({inner}, {low!r}), {high!r})",
        present=f"({expression}) IS NOT NULL" if asked.skips else None,
        bounds=bounds,
        text=asked.question,
        about_missing=asked.about_missing,
    )


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows a statistic is about: those of a group that have all of its numbers."""

    variables: tuple[Variable, ...]
    where: str | None

    @property
    def group(self) -> str | None:
        """The group in SQL; None for all rows, whose means take one answer each instead of two."""
        conditions = dict.fromkeys(each.present for each in self.variables if each.present)  # once each
        if self.where is not None:
            conditions[self.where] = None
        return " AND ".join(f"({condition})" for condition in conditions) or None

    @property
    def about_missing(self) -> str:
        """How rows without a value are treated."""
        said = dict.fromkeys(each.about_missing for each in self.variables)
        return " ".join([*said, *(["Rows whose group is NULL are left out."] if self.where else [])])


class Deviation(NamedTuple):
    """The standard deviation of a number as it was released with its mean, and how far `off` both may be."""

    value: float
    off: float


class Shape(NamedTuple):
    """What a vector of means looks like."""

    kind: str
    """See `afresh.moments.Vector`."""
    size: int
    """The number of coordinates."""
    groups: int = 0
    """If they are means of a number within groups: how many groups there are."""


class Like(NamedTuple):
    """One of several numbers that are much alike: what to expect of it is what to expect of each."""

    question: Asked
    mean: float | None
    """What it may be on average, in its own units; None for the middle of its bounds."""
    share: float | None
    """The share of rows that it may be about; None if that is not known."""


@runtime_checkable
class OfAlike(Protocol):
    """A statistic of several numbers that are much alike, such as the bins of a histogram."""

    def like(self, schema: Schema) -> Like:
        """One of them.

        Args:
            schema: The columns and their types.

        Returns:
            A question, and what to expect of it if all of them are equal.
        """
        ...


@runtime_checkable
class OfNumbers(Statistic, Protocol):
    """A statistic of one or two numbers of each row, which can be tried on made-up ones."""

    @property
    def where(self) -> str | None:
        """Its own condition, in SQL."""
        ...

    def most(self, asker: Asker) -> int:
        """The largest number of means that it asks for.

        Args:
            asker: How means are asked for.

        Returns:
            A number of means.
        """
        ...

    @property
    def ranges(self) -> tuple[tuple[float, float], ...]:
        """The bounds of each number."""
        ...

    def group(self, schema: Schema) -> str | None:
        """The rows it is about, in SQL; None for all.

        Args:
            schema: The columns and their types.

        Returns:
            A condition.
        """
        ...

    def of(self, *numbers: str) -> OfNumbers:
        """The same statistic of other numbers, over all rows.

        Args:
            *numbers: One for each of its own, in SQL.

        Returns:
            A statistic that costs no less.
        """
        ...


@runtime_checkable
class AtOnce(Protocol):
    """A statistic whose means can be released at once, if the method does that for less."""

    def coordinates(self, schema: Schema) -> Shape | None:
        """The shape of the vector of its means; None if it has none.

        Args:
            schema: The columns and their types.

        Returns:
            What `Desk.at_once` takes.
        """
        ...


class OfRows(ABC):
    """A mixin for statistics that are functions of a few means, all over the same rows."""

    __slots__ = ()

    @property
    @abstractmethod
    def _means(self) -> int:
        """The number of means it needs."""

    @property
    @abstractmethod
    def _grouped(self) -> bool:
        """Whether these may be means over some of the rows."""

    @abstractmethod
    def _sample(self, schema: Schema) -> Sample:
        """The numbers and the rows it is about, checked."""

    @abstractmethod
    def text(self, schema: Schema) -> str:
        """What is measured, in words."""

    @property
    def price(self) -> int:
        """The most answers it costs: two per mean if rows may be left out, by `where` or because a value is missing."""
        return self._means * (2 if self._grouped else 1)

    def cost(self, schema: Schema) -> int:
        """The same for data with these columns: one answer per mean if all rows count."""
        return self._means * (1 if self.group(schema) is None else 2)

    def group(self, schema: Schema) -> str | None:
        """The rows it is about, in SQL; None for all of them.

        Args:
            schema: The columns and their types.

        Returns:
            A condition: its own, and that all of its numbers are there.
        """
        return self._sample(schema).group


def grouped(where: str | None, *missing: float | None) -> bool:
    """Whether rows may be left out."""
    return where is not None or None in missing


def check_where(where: str | None, schema: Schema) -> str | None:
    """A condition in SQL."""
    if where is not None:
        checks.text("where", where, "a condition in SQL, as text")
        parse_group(where, schema)
    return where


def where_text(where: str | None, schema: Schema) -> str:
    """The end of a question's text, which says which rows it is about."""
    return "" if where is None else f" where {readable(parse_group(where, schema))}"


@dataclass
class Asker:
    """Asks a desk for means in an analyst's name, and adds up their cost."""

    desk: Desk
    analyst: str
    replies: list[Reply] = field(default_factory=list)
    aside: list[Reply] = field(default_factory=list)
    """Answers that were paid for, but are not parts of what will be stated."""

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.desk.schema

    def parameters(self, sample: Sample) -> dict[str, Any]:
        """What a rule needs to know to read the parts: whether two of them make a mean."""
        one_each = bool(self.replies) and all(len(reply.parts) == 1 for reply in self.replies)  # each was one claim
        return {} if sample.group is None or self.desk.means_within_groups or one_each else {"grouped": True}

    def put(self, asked: Sequence[Asked], later: int = 0, vector: Vector | None = None) -> list[Reply]:
        """The desk's replies to checked questions; all that a statistic asks, it asks here."""
        return self.desk.answer(asked, self.analyst, later, vector=vector)

    def ask(
        self,
        questions: Sequence[dict[str, Any]],
        *,
        where: str | None = None,
        later: Sequence[str] = (),
        vector: Vector | None = None,
    ) -> list[Number]:
        """Means of row expressions, given by `Guard.ask`'s arguments, all within one group.

        Expressions like the `later` ones will be asked when these are answered: nothing is paid unless all can be.
        With a `vector` they are its coordinates, released at once.
        """
        after = self._arranged([{"expression": each, "bounds": (0.0, 1.0), "missing": 0.0} for each in later], where)
        asked = [make_asked({**one, "where": where}, self.schema) for one in questions]
        return self.ask_parts(asked, sum(len(one.queries) for one in after), vector)

    def ask_parts(self, asked: Sequence[Asked], later: int = 0, vector: Vector | None = None) -> list[Number]:
        """Means of checked questions, as parts of what will be stated."""
        parts = [replace(one, own=False) for one in asked]
        found = self.put(parts, later, vector)
        self.replies += found
        return [reply.number for reply in found]

    def releases_deviations(self, questions: Sequence[dict[str, Any]], where: str | None) -> bool:
        """Whether the standard deviations of these numbers are released together with their means.

        Not if a mean within the group is made of two others.
        """
        whole = all(len(one.queries) == 1 for one in self._arranged(questions, where))
        return whole and isinstance(self.desk.plan.mechanism, ReleasesDeviation)

    @property
    def deviations(self) -> list[Deviation]:
        """Those of what was asked and not set aside, if they are released."""
        mechanism = self.desk.plan.mechanism
        assert isinstance(mechanism, ReleasesDeviation)
        entries = [part.entry for reply in self.replies for part in reply.parts]
        known = [(high - low, each.outcome.released) for each in entries if each.outcome for low, high in [each.bounds]]
        return [Deviation(scale * mechanism.deviation_in(of), scale * mechanism.off_in(of)) for scale, of in known]

    def answered(self, questions: Sequence[dict[str, Any]], where: str | None) -> bool:
        """Whether all of these were asked before, and so are free."""
        asked = self.desk.questions(self._arranged(questions, where))
        return not self.desk.ledger.unpaid(self.desk.terms, asked)

    def _arranged(self, questions: Sequence[dict[str, Any]], where: str | None) -> list[Asked]:
        """These questions as the desk asks them."""
        asked = [make_asked({**one, "where": where}, self.schema) for one in questions]
        return self.desk.arranged([replace(one, own=False) for one in asked])

    def set_aside(self) -> None:
        """What was asked so far only decided what to ask next."""
        self.aside += self.replies
        self.replies = []

    def answer(
        self, question: str, rule: str, parameters: Mapping[str, Any], bounds: tuple[float, float], missing: str
    ) -> Answer:
        """The answer of a statistic, derived by a rule from everything that was asked and not set aside."""
        asked = stated_as(question, rule, parameters, bounds, missing)
        charged = tuple(entry for reply in (*self.aside, *self.replies) for entry in reply.charged)
        return self.answers([asked], [charged])[0]

    def answers(self, asked: Sequence[Asked], charged: Sequence[tuple[Entry, ...]]) -> list[Answer]:
        """Several of them, each with what it was charged."""
        parts, last = tuple(part for reply in self.replies for part in reply.parts), self.replies[-1]
        numbers = self.desk.state(asked, parts, self.analyst)
        return [
            self.desk.tell(Reply(one, number, parts, paid, last.left, last.scope))
            for one, number, paid in zip(asked, numbers, charged, strict=True)
        ]


def stated_as(
    question: str, rule: str, parameters: Mapping[str, Any], bounds: tuple[float, float], missing: str
) -> Asked:
    """A number that is not asked for but derived from what was."""
    return Asked(
        queries=(),
        question=question,
        bounds=bounds,
        about_value="this",
        about_missing=missing,
        rule=rule,
        parameters=parameters,
    )


_MOST_DRAWN = 60  # more would be unreadable


@dataclass(frozen=True, slots=True)
class Measures(show.Told, Tabular):
    """Several answers with names, such as the bins of a histogram."""

    title: str
    answers: dict[str, Answer]

    def __getitem__(self, name: str) -> Answer:
        """The answer with this name."""
        return self.answers[name]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.answers)

    def __len__(self) -> int:
        """The number of answers."""
        return len(self.answers)

    @property
    def charged(self) -> int:
        """The total number of answers charged."""
        return sum(answer.charged for answer in self.answers.values())

    def rows(self) -> list[dict[str, Any]]:
        """One row per answer.

        Returns:
            Mappings with the same keys.
        """
        return [
            {"name": name, "value": each.value if each.told else None, "low": each.low, "high": each.high}
            for name, each in self.answers.items()
        ]

    def forest(self) -> show.Forest | None:
        """Return what `plot` draws: bars from zero; nothing if the answers have different scales.

        Returns:
            One mark per answer.
        """
        scales = {each.bounds for each in self.answers.values()}
        if len(scales) != 1:
            return None
        marks = [replace(forest_mark("", each), name=name, hint=name) for name, each in self.answers.items()]
        ends = [0.0, *(end for each in self.answers.values() for end in (each.low, each.high))]
        return show.Forest(marks, show.zoomed(ends, scales.pop()), self.title, filled=True)

    def plot(self, ax: Any = None) -> Any:
        """Draw the answers as bars with their intervals.

        Args:
            ax: Matplotlib axes to draw on; by default, those of a new figure.

        Returns:
            The axes.

        Raises:
            InvalidArgument: The answers have different scales.
            MissingExtra: matplotlib is not installed.
        """
        from afresh.results.plots import draw

        forest = self.forest()
        if forest is None:
            raise InvalidArgument("the answers have different bounds; draw one at a time.")
        return draw(forest, ax)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"title": self.title, "answers": {name: answer.to_dict() for name, answer in self.answers.items()}}

    def _blocks(self) -> list[show.Block]:
        last = list(self.answers.values())[-1]
        noise = noise_column(self.answers.values())
        rows = [
            [name, answer.shown()[0], *noise[place : place + 1], *answer.shown()[1:]]
            for place, (name, answer) in enumerate(self.answers.items())
        ]
        forest = self.forest() if len(rows) <= _MOST_DRAWN else None
        pictures = [] if forest is None else [forest]
        return [
            *simulation_mark(last.simulated),
            show.Title(f"{self.title}, {show.percent(last.confidence)}"),
            show.Drawn(pictures, show.Table(["", "value", *(["noise"] if noise else []), "low", "high"], rows)),
            show.Line("All intervals hold at once, together with all others of this guard."),
            *said_of_all(self.answers),
            cost_line(self.charged, last.left),
        ]
