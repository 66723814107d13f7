"""The doors of a service, for a local guard: questions go out as JSON; results and errors come back unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self, cast

from afresh import checks
from afresh.client.desk import RemoteDesk
from afresh.errors import Forbidden, InvalidArgument
from afresh.guard.guard import Guard
from afresh.queries.asked import make_asked
from afresh.wire.arguments import OF_ROWS, to_argument
from afresh.wire.results import from_json

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.guard.doors import Question
    from afresh.results.answer import Answer
    from afresh.results.budget import Budget
    from afresh.results.claims import Claimed
    from afresh.results.fitted import Fitted, Task
    from afresh.results.price import Price
    from afresh.results.transcript import Transcript
    from afresh.statistics.base import Measures, Statistic


def guard_at(desk: RemoteDesk, analyst: str) -> Guard:
    """Make the guard of a service's dataset."""
    return Guard(cast("Desk", desk), analyst, RemoteDoors(desk, analyst))  # it has every attribute that a guard uses


def all_pages(get: Callable[..., Any]) -> Transcript:
    """Read a whole transcript from a door that shows one page at a time."""
    document = get()
    records = document["records"]
    while document["next"] is not None:
        document = get(after=document["next"])
        records += document["records"]
    found: Transcript = from_json({**document, "records": records})
    return found


class RemoteDoors:
    """The doors of one dataset of a service. Mistakes that the columns reveal are raised before anything is sent."""

    def __init__(self, desk: RemoteDesk, analyst: str) -> None:
        """Ask in the name of the token's owner."""
        self._desk, self._analyst = desk, analyst

    def named(self, analyst: str) -> Self:
        """Refused: on a service the token identifies the analyst."""
        if analyst != self._analyst:
            raise Forbidden(
                f"the token identifies the analyst, {self._analyst}; connect with the token of {analyst!r} instead."
            )
        return self

    def checked(self, questions: Iterable[Any]) -> list[Any]:
        """Check questions, and return them as they are sent."""
        return [self._sent(each) for each in questions]

    def answers(self, asked: Sequence[Any], rows: int | None) -> list[Answer]:
        """Have questions answered."""
        return self._listed("ask_many", {"questions": list(asked), "rows": rows}) if asked else []

    def exam(self, asked: Sequence[Any]) -> list[Answer]:
        """Take the exam."""
        return self._listed("exam", {"questions": list(asked)})

    def price(self, question: Question, expected: Mapping[str, Any]) -> Price:
        """The price of a question."""
        body = {"question": self._sent(question), **{name: _plain(value) for name, value in expected.items()}}
        found: Price = self._desk.ask("price", body)
        return found

    def price_of(self, statistic: Statistic, expected: Mapping[str, Any]) -> Price:
        """The price of a statistic."""
        body = {"statistic": to_argument(statistic), **{name: _plain(value) for name, value in expected.items()}}
        found: Price = self._desk.ask("price", body)
        return found

    def measure(self, statistic: Statistic) -> Answer | Measures:
        """Measure a statistic."""
        document = to_argument(statistic)
        if document["kind"] not in OF_ROWS:
            raise checks.wrong("statistic", statistic, "a statistic from afresh.statistics that needs no model")
        found: Answer | Measures = self._desk.ask("measure", {"statistic": document})
        return found

    def claim(self, question: Question, between: Any) -> Claimed:
        """Test a claim."""
        found: Claimed = self._desk.ask("claim", {**self._sent(question), "between": _plain(between)})
        return found

    def detects(self, question: Question, between: Any, **expected: float | None) -> float:
        """What a claim made now can show."""
        known = {name: _plain(value) for name, value in expected.items() if value is not None}
        body = {**self._sent(question), "between": _plain(between), **known}
        return float(self._desk.post("detects", body)["detects"])

    def fit(self, task: Task) -> Fitted:
        """Have a model fitted where the rows are."""
        found: Fitted = self._desk.ask("fit", {name: _plain(value) for name, value in asdict(task).items()})
        return found

    def open_rows(self, kind: str | None) -> Any:
        """The open rows, as a pandas frame unless another kind is given."""
        return self._desk.frame("open_rows", kind="pandas" if kind is None else kind)

    def close_rounds(self) -> list[Answer]:
        """It takes the token of a steward."""
        return self._listed("close_rounds", {})

    def charge(self, revealed: str, basis: Mapping[str, Any], rows: int | None, count: int) -> Budget:
        """It takes the token of a steward."""
        basis = dict(basis)
        if basis["study"] is not None:
            from afresh.receipts.study import read_study

            basis["study"] = read_study(basis["study"])
        found: Budget = self._desk.ask("charge", {"revealed": revealed, **basis, "rows": rows, "count": count})
        return found

    def divide(self, shares: Mapping[str, int]) -> Budget:
        """It takes the token of a steward."""
        found: Budget = self._desk.ask("divide", {"shares": dict(shares)})
        return found

    def budget(self) -> Budget:
        """The budget as of now."""
        found: Budget = from_json(self._desk.get("budget"))
        return found

    def transcript(self) -> Transcript:
        """All pages of the transcript."""
        return all_pages(lambda **part: self._desk.get("transcript", **part))

    def receipt(self) -> dict[str, Any]:
        """The receipt, for `afresh verify`."""
        found: dict[str, Any] = self._desk.get("receipt")
        return found

    def _listed(self, what: str, body: Mapping[str, Any]) -> list[Answer]:
        return [from_json(each) for each in self._desk.post(what, body)["answers"]]

    def _sent(self, question: Any) -> dict[str, Any]:
        """A question as JSON; an Ibis expression is sent as equivalent SQL."""
        given = dict(question) if isinstance(question, Mapping) else {"expression": question}
        if not isinstance(question, Mapping) or "expression" in given:
            for name in ("expression", "where"):
                if given.get(name) is not None and not isinstance(given[name], str):
                    given[name] = self._in_sql(given[name])
        if unknown := given.keys() - {"expression", "bounds", "where", "missing", "precision", "guess", "about"}:
            make_asked(dict.fromkeys((*given, *unknown)), self._desk.schema)  # its error says what is wrong
        return {name: _plain(value) for name, value in given.items() if value is not None}

    def _in_sql(self, expression: Any) -> str:
        from afresh.queries.parse import parse
        from afresh.queries.text import readable

        tree = parse(expression, self._desk.schema)
        text = readable(tree)
        if parse(text, self._desk.schema) != tree:
            raise InvalidArgument("this expression has no text in SQL to send to the service; write it in SQL.")
        return text


def _plain(value: Any) -> Any:
    """A value that JSON can express: tuples become lists, and numpy numbers become Python's."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value
