"""A guard whose desk is a service: the same methods, results and errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from afresh import checks
from afresh.client.desk import RemoteDesk
from afresh.errors import Forbidden, InvalidArgument
from afresh.guard.guard import Guard
from afresh.queries.asked import make_asked
from afresh.results.answer import Answer
from afresh.results.answers import Answers
from afresh.results.budget import Budget
from afresh.results.claims import Claimed
from afresh.results.price import Price
from afresh.results.transcript import Transcript
from afresh.statistics.base import Measures
from afresh.statistics.vector import VectorMean
from afresh.wire.arguments import OF_ROWS, STATISTICS, to_argument
from afresh.wire.results import from_json


class RemoteGuard(Guard):
    """Stands between the analyst and rows on another machine. Make one with `afresh.open` or `afresh.connect`."""

    desk: RemoteDesk  # type: ignore[assignment]

    def __init__(self, desk: RemoteDesk, analyst: str) -> None:
        """Not for users: `afresh.connect` makes it."""
        super().__init__(desk, analyst)  # type: ignore[arg-type]

    def for_analyst(self, analyst: str) -> Guard:
        """Refused: on a service the token says who asks."""
        if analyst == self.analyst:
            return self
        raise Forbidden(f"the token says who asks, {self.analyst}; connect with the token of {analyst!r} instead.")

    @property
    def rows(self) -> int:
        """The number of rows, which is public."""
        return self.desk.rows

    def price(
        self,
        expression: Any,
        bounds: tuple[float, float] | None = None,
        where: Any = None,
        missing: float | None = None,
        precision: float | None = None,
        guess: tuple[float, float] | None = None,
        about: float | None = None,
        *,
        mean: float | None = None,
        share: float = 1.0,
        exam: int | None = None,
        deviation: float | None = None,
    ) -> Price:
        """As of any guard."""
        body: dict[str, Any] = {"mean": mean, "share": share, "exam": exam, "deviation": deviation}
        if type(expression) in STATISTICS.values():
            return self._price({"statistic": to_argument(expression)})
        arguments = {"bounds": bounds, "where": where, "missing": missing, "precision": precision, "guess": guess}
        arguments["about"] = about
        return self._price({"question": self._sent({"expression": expression, **arguments}), **body})

    def _price(self, body: dict[str, Any]) -> Price:
        found: Price = self.desk.ask("price", body)
        return found

    def ask_vector(
        self,
        expressions: Sequence[str] | Mapping[str, str],
        radius: float,
        centre: float | Sequence[float] = 0.0,
    ) -> Measures:
        """As of any guard."""
        found = self.measure(VectorMean(expressions, radius, centre))
        assert isinstance(found, Measures)
        return found

    def checked(self, questions: Iterable[Any]) -> list[Any]:
        """What `ask_checked` sends, of a list of questions; a mistake that columns show is an error here, and free."""
        if isinstance(questions, str | bytes | Mapping) or (listed := checks.iterated(questions)) is None:
            return super().checked(questions)  # which says what is wrong
        return [self._sent(each) for each in listed]

    def ask_checked(self, asked: Sequence[Any], rows: int | None = None) -> Answers:
        """Answer what `checked` gave."""
        found = self.desk.post("ask_many", {"questions": list(asked), "rows": rows})
        return Answers(from_json(each) for each in found["answers"])

    def exam(self, questions: Iterable[Any]) -> list[Answer]:
        """As of any guard."""
        found = self.desk.post("exam", {"questions": self.checked(questions)})
        return [from_json(each) for each in found["answers"]]

    def _sent(self, question: Any) -> dict[str, Any]:
        """A question as JSON; an expression of Ibis as the SQL that means the same."""
        given = dict(question) if isinstance(question, Mapping) else {"expression": question}
        if not isinstance(question, Mapping) or "expression" in given:
            for name in ("expression", "where"):
                if given.get(name) is not None and not isinstance(given[name], str):
                    given[name] = self._in_sql(given[name])
        if unknown := given.keys() - {"expression", "bounds", "where", "missing", "precision", "guess", "about"}:
            make_asked(dict.fromkeys((*given, *unknown)), self.desk.schema)  # which says what is wrong
        return {name: _plain(value) for name, value in given.items() if value is not None}

    def _in_sql(self, expression: Any) -> str:
        from afresh.queries.parse import parse
        from afresh.queries.text import readable

        tree = parse(expression, self.desk.schema)
        text = readable(tree)
        if parse(text, self.desk.schema) != tree:
            raise InvalidArgument("this expression has no text in SQL to send to the service; write it in SQL.")
        return text

    def claim(
        self,
        expression: Any,
        between: tuple[float | None, float | None],
        bounds: tuple[float, float] | None = None,
        missing: float | None = None,
    ) -> Claimed:
        """As of any guard."""
        found: Claimed = self.desk.ask("claim", self._claimed(expression, between, bounds, missing))
        return found

    def detects(
        self,
        expression: Any,
        between: tuple[float | None, float | None],
        bounds: tuple[float, float] | None = None,
        missing: float | None = None,
        *,
        deviation: float | None = None,
    ) -> float:
        """As of any guard."""
        body = self._claimed(expression, between, bounds, missing)
        return float(self.desk.post("detects", {**body, "deviation": deviation})["detects"])

    def _claimed(self, expression: Any, between: Any, bounds: Any, missing: Any) -> dict[str, Any]:
        asked = self._sent({"expression": expression, "bounds": bounds, "missing": missing})
        return {**asked, "between": _plain(between)}

    def open_rows(self) -> Any:
        """Refused: a service hands out no rows of a dataset."""
        raise InvalidArgument("a service hands out no rows; its steward can give you the open ones.")

    def close_rounds(self) -> list[Answer]:
        """Refused: it ends the rounds for everybody."""
        raise Forbidden("closing the rounds ends them for everybody; the steward does it where the data are.")

    def measure(self, statistic: Any) -> Answer | Measures:
        """As of any guard."""
        if type(statistic).__name__ not in OF_ROWS or type(statistic) not in STATISTICS.values():
            raise checks.wrong("statistic", statistic, "one of afresh.statistics that needs no model")
        found: Answer | Measures = self.desk.ask("measure", {"statistic": to_argument(statistic)})
        return found

    def charge(
        self,
        revealed: str,
        *,
        kl: float | None = None,
        zcdp: float | None = None,
        pure_dp: float | None = None,
        noise_sd: float | None = None,
        study: object = None,
        rows: int | None = None,
        count: int = 1,
    ) -> Budget:
        """As of any guard; it takes the token of a steward."""
        protected = {"kl": kl, "zcdp": zcdp, "pure_dp": pure_dp, "noise_sd": noise_sd, "study": study}
        found: Budget = self.desk.ask("charge", {"revealed": revealed, **protected, "rows": rows, "count": count})
        return found

    def divide(self, shares: Mapping[str, int]) -> Budget:
        """As of any guard; it takes the token of a steward."""
        if not isinstance(shares, Mapping):
            raise checks.wrong("shares", shares, "a mapping of names to numbers of answers")
        found: Budget = self.desk.ask("divide", {"shares": dict(shares)})
        return found

    @property
    def budget(self) -> Budget:
        """As of any guard."""
        found: Budget = from_json(self.desk.get("budget"))
        return found

    @property
    def transcript(self) -> Transcript:
        """As of any guard."""
        document = self.desk.get("transcript")
        records = document["records"]
        while document["next"] is not None:
            document = self.desk.get("transcript", after=document["next"])
            records += document["records"]
        found: Transcript = from_json({**document, "records": records})
        return found

    def receipt(self) -> dict[str, Any]:
        """As of any guard."""
        found: dict[str, Any] = self.desk.get("receipt")
        return found

    def __reduce__(self) -> NoReturn:
        """A guard holds a connection and a token, so it stays where it is."""
        raise TypeError("a guard cannot be pickled; connect in the other process, they share one budget.")


def _plain(value: Any) -> Any:
    """What JSON has words for: tuples are lists, and numbers of numpy are Python's."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value
