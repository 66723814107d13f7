"""An evaluation: items, some open while the others confirm, for candidates with one score per item."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.errors import FewItems, InvalidArgument
from afresh.evaluations.candidates import Candidate, Dealt, Part, gain_question, score_question
from afresh.evaluations.reading import as_given
from afresh.evaluations.results import two_names
from afresh.evaluations.verdicts import Compared, Examined, Scored
from afresh.guard.exam import check_exam
from afresh.guard.opened import hand_out
from afresh.queries.asked import Asked
from afresh.results import show
from afresh.results.closing import Closing

if TYPE_CHECKING:
    from afresh.evaluations.gate import Gate
    from afresh.evaluations.items import Items
    from afresh.evaluations.keeping import Keeping
    from afresh.guard.guard import Guard
    from afresh.results.answer import Answer
    from afresh.results.budget import Budget


class Evaluation(show.Shown, Closing):
    """Scores candidates on items, some open and some guarded. Make one with `afresh.evaluation`."""

    def __init__(self, guard: Guard, items: Items, dealt: Dealt, id: str, kept: Keeping) -> None:
        """Not for users: `afresh.evaluation` combines the parts. `kept` is for gates."""
        self.guard, self.id, self.dealt = guard, id, dealt
        self._items, self._kept = items, kept

    def for_analyst(self, analyst: str) -> Evaluation:
        """The same evaluation under another name. See `Guard.for_analyst`.

        Args:
            analyst: The name of the analyst who asks.

        Returns:
            Another evaluation on the same items, plan and ledger.
        """
        return Evaluation(self.guard.for_analyst(analyst), self._items, self.dealt, self.id, self._kept)

    @property
    def items(self) -> int:
        """The number of items, which is public."""
        return self.guard.rows

    @property
    def open(self) -> int:
        """The number of open items."""
        return len(self.dealt.ids_open)

    @property
    def guarded(self) -> int:
        """The number of items that confirm."""
        return int(self.guard.plan.parameters["guarded"])

    @property
    def budget(self) -> Budget:
        """The guard's budget."""
        return self.guard.budget

    def open_items(self) -> list[dict[str, Any]]:
        """Return the open items in full, to tune on; the same in every process. The first call fixes the plan.

        Returns:
            The items as they were passed, in the order of their ids.
        """
        hand_out(self.guard.desk, self.guard.analyst)
        return [dict(row) for row, mine in zip(self._items.rows, self.dealt.open, strict=True) if mine]

    def open_scores(self, results: Any) -> dict[str, float]:
        """Return the scores of the open items, to tune on and study failures. Free; the first call fixes the plan.

        Args:
            results: As in `score`; guarded items may be missing, so that candidates need not be run on them.

        Returns:
            The mean score of every open item, by id.

        Raises:
            InvalidArgument: An open item has no score, or one that is not a number from 0 to 1.
        """
        scores = self.dealt.match(self._read(results), "open")
        hand_out(self.guard.desk, self.guard.analyst)
        mine = scores[self.dealt.open].tolist()
        return dict(zip(self.dealt.ids_open, mine, strict=True))

    def score(self, results: Any, *, name: str | None = None) -> Scored:
        """Estimate a candidate's mean score: guessed from the open part, checked on the guarded part. Costs 1 answer.

        A candidate is identified by its name and its open scores, never by its guarded scores: a repeat is free, and
        without a name every call is charged. Give a changed candidate a new name.

        Args:
            results: A score from 0 to 1 for every item: a mapping of ids to a score or to several, a frame with ids and
                scores, or the path of a result file. `afresh.evaluations.read` has options for files.
            name: The candidate's name in the record.

        Returns:
            The mean score in the population of items, with an interval that holds.

        Raises:
            InvalidArgument: The results do not fit the items; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        desk, candidate = self.guard.desk, self.candidate(results, name)
        (reply,) = desk.answer([self._asked_score(candidate)], self.guard.analyst)
        return self._scored(candidate, desk.tell(reply))

    def _asked_score(self, candidate: Candidate) -> Asked:
        what = "the share of items that pass" if candidate.binary else "the mean score"
        return self._asked(score_question(candidate, self.guard.desk.terms.seed), f"{what} with {candidate.name}")

    def _scored(self, candidate: Candidate, told: Answer) -> Scored:
        return Scored(
            candidate=candidate.name,
            items=self.items,
            open_score=float(candidate.values(candidate.binary, slice(None))[self.dealt.open].mean()),
            confirmed=told.confirmed,
            widened=told.widened,
            **_common(told),
        )

    def compare(self, a: Any, b: Any, *, names: Sequence[str] | None = None) -> Compared:
        """Compare two candidates item by item: guessed from the open part, checked on the guarded. Costs 1 answer.

        Args:
            a: Results of a candidate, as in `score`.
            b: Results of another candidate.
            names: The two names in the record.

        Returns:
            The mean score of B minus that of A with its interval, and what may be concluded.

        Raises:
            InvalidArgument: The results do not fit the items; nothing was charged.
            BudgetExhausted: Nothing is left; nothing was charged.
        """
        desk = self.guard.desk
        called = (None, None) if names is None else two_names(names)
        first, second = (self.candidate(each, name) for each, name in zip((a, b), called, strict=True))
        (reply,) = desk.answer([self._asked_gain(first, second)], self.guard.analyst)
        return self._compared(first, second, desk.tell(reply))

    def _asked_gain(self, a: Candidate, b: Candidate) -> Asked:
        low, high = (a, b) if a.digest < b.digest else (b, a)  # one question for a pair
        return self._asked(
            gain_question(low, high, self.guard.desk.terms.seed),
            f"the mean score of {b.name} minus that of {a.name}",
            question=f"score of {b.name} minus that of {a.name}",
            rule="difference",
            parameters={"scale": 1.0, "sign": 1 if high is b else -1},
        )

    def _compared(self, a: Candidate, b: Candidate, told: Answer) -> Compared:
        return Compared(
            a=a.name,
            b=b.name,
            items=self.items,
            open_difference=self.open_difference(a, b),
            confirmed=told.confirmed,
            **_common(told),
        )

    def exam(self, final: Any, start: Any = None, *, names: Sequence[str] = ("final", "start")) -> Examined:
        """Take the exam, once: an exact number to publish, on items that nothing else has touched. Costs no answers.

        Args:
            final: Results of the final candidate, as in `score`, including the exam's items.
            start: Results of another candidate, to show by how much the final one is better.
            names: The two names in the record.

        Returns:
            The final candidate's mean score and, if there is a start, its gain. Repeats are free.

        Raises:
            InvalidArgument: There is no exam, or the results do not fit the items; nothing was asked.
            BudgetExhausted: The exam has been taken, with another candidate.
        """
        desk = self.guard.desk
        check_exam(self.guard.plan)
        called = two_names(names)
        last = self.candidate(final, called[0], "exam")
        first = None if start is None else self.candidate(start, called[1], "exam")
        asked = [self._asked_score(last), *([] if first is None else [self._asked_gain(first, last)])]
        told = [desk.tell(reply) for reply in desk.answer(asked, self.guard.analyst, exam=True)]
        gain = None if first is None else self._compared(first, last, told[1])
        return Examined(score=self._scored(last, told[0]), gain=gain)

    def gate(self, incumbent: Any = None, *, name: str = "baseline", margin: float = 0.0) -> Gate:
        """Open a gate: with the guard's confidence, every candidate it ever accepts is a real improvement.

        It continues where it stopped, even in another process: the ledger knows the incumbent. Before the first
        proposal it warns if there are too few items to detect a useful improvement.

        Args:
            incumbent: Results of the first incumbent, as in `score`. Not needed once a candidate was accepted, unless
                the ledger is on a server or in memory: then pass the results of the one accepted last.
            name: The first incumbent's name.
            margin: How much better than the incumbent a candidate must be.

        Returns:
            The gate.

        Raises:
            InvalidArgument: There is no incumbent, or it is not the one in force; nothing was charged.
        """
        from afresh.evaluations.gate import open_gate

        found = open_gate(self, incumbent, name, margin, self._kept)
        if found.too_few:
            warnings.warn(found.advice, FewItems, stacklevel=2)
        return found

    def candidate(self, results: Any, name: str | None, part: Part = "guarded") -> Candidate:
        """Check a candidate's scores against the items; mistakes are reported here, free.

        Args:
            results: As in `score`.
            name: The candidate's name.
            part: The part that is asked, besides the open one.

        Returns:
            Its scores, with a name.
        """
        self.guard.desk.check_open()
        return self.dealt.candidate(self._read(results), name, part)

    def open_difference(self, a: Candidate, b: Candidate) -> float:
        """Compute the exact mean score of B minus that of A on the open part.

        Args:
            a: A candidate.
            b: Another candidate.

        Returns:
            A number from -1 to 1.
        """
        return float(np.mean(b.scores[self.dealt.open] - a.scores[self.dealt.open]))

    def _read(self, results: Any) -> Any:
        return as_given(results, id=self.id if _has_column(results, self.id) else None)

    def _asked(self, query: Any, about: str, question: str | None = None, **more: Any) -> Asked:
        return Asked(
            queries=(query,),
            question=question or query.text,
            bounds=query.bounds,
            about_value=about,
            about_missing="",
            **more,
        )

    def close(self) -> None:
        """Close the guard."""
        self.guard.close()

    def __repr__(self) -> str:
        """One line."""
        return f"Evaluation({self.items:,} items, {self.open:,} open, {self.guard!r})"

    def _blocks(self) -> list[show.Block]:
        exam = int(self.dealt.exam.sum())
        kept = f"; {exam:,} are kept for the exam" if exam else ""
        facts = {"items": f"{self.items:,}, of which {self.open:,} are open and {self.guarded:,} confirm{kept}"}
        return [show.Title("Evaluation"), show.Facts(facts), *self.guard.blocks()]


def check_evaluation(evaluation: object) -> Evaluation:
    """An evaluation made by `afresh.evaluation`, or an error."""
    if not isinstance(evaluation, Evaluation):
        raise InvalidArgument(
            f"this is a {type(evaluation).__name__}, must be an evaluation from afresh.evaluation(items)."
        )
    return evaluation


def _has_column(results: Any, id: str) -> bool:
    """Whether a table in memory has the evaluation's own column of ids."""
    if hasattr(type(results), "columns"):
        return id in list(results.columns) or id in getattr(results, "column_names", ())
    return isinstance(results, list) and bool(results) and isinstance(results[0], dict) and id in results[0]


def _common(told: Any) -> dict[str, Any]:
    """The fields common to all released numbers."""
    names = ("value", "interval", "bounds", "confidence", "covers", "method", "charged", "left", "simulated")
    return {name: getattr(told, name) for name in (*names, "told", "noise")}
