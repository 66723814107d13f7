"""A board: entrants submit predictions to a holdout, and a public table says what is certain about their order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh import checks
from afresh.boards.asking import Asking
from afresh.boards.pairing import LOOKED_AT, candidates, round_pairs, worth
from afresh.boards.record import Recorded, Scored, read_record
from afresh.boards.rules import Rules
from afresh.boards.shelf import Kept, Shelf
from afresh.boards.table import BoardTable, Standing, Submitted
from afresh.boards.tabulate import elsewhere, standing_now, table_of
from afresh.errors import BudgetExhausted, InvalidArgument, NotFound
from afresh.models.compare import expected_width, identical
from afresh.models.predictions import Predicted
from afresh.models.score import asked_scores
from afresh.results import show

if TYPE_CHECKING:
    from afresh.guard.path import Reply
    from afresh.losses import Loss
    from afresh.models.holdout import Holdout

_AT_HAND = 128  # the predictions kept in memory if a shelf has them all
CARRIED = 50
"""The most entries of earlier rounds that may be the best and compete again in the next one."""
FINALISTS = 50


class Board(show.Shown):
    """Entries to a holdout, with places that are sets. Make one with `afresh.board`."""

    def __init__(self, holdout: Holdout, name: str, rules: Rules, loss: Loss, shelf: Shelf) -> None:
        """Not for users: `afresh.board` combines the parts."""
        self.holdout, self.name, self.rules, self.loss = holdout, name, rules, loss
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._shelf, self._asking = shelf, Asking(holdout.labelled, name, loss)
        self._models: dict[str, Predicted] = {}  # of this process; with hidden features there are no others
        self._read: Recorded | None = None
        self._tables: dict[tuple[int, int | None], BoardTable] = {}

    def submit(self, name: str, predictions: Any, *, entrant: str | None = None) -> Submitted:
        """Enter predictions under a name. They are scored, and compared with the leader and with entries close by.

        An entry costs 1 to 1 + 2 m answers with m comparisons. Everything is charged and recorded by the guard like any
        other answer. The same predictions under the same name are free. With rounds, an entry is only sealed, which
        costs nothing until it is revealed. If only improvements are revealed, it is one claim.

        Args:
            name: The entry's name; each entry needs its own.
            predictions: As in `Holdout.score`: one per row, or a model.
            entrant: The name under which it is entered and charged; by default, the holdout's analyst.

        Returns:
            The entry's standing.

        Raises:
            InvalidArgument: The name is taken, or the predictions do not suit the loss; nothing was charged.
            BudgetExhausted: Nothing is left for its score, or the entrant has reached the limit; nothing was charged.
        """
        checks.text("name", name, "what to call the entry")
        who = self.holdout.guard.analyst if entrant is None else checks.text("entrant", entrant, "who enters")
        self._reveal_if_due()
        (predicted,) = self.holdout.predict([predictions], [name], self.loss)
        recorded = self._recorded()
        if name in recorded.submissions or self._waiting(name) is not None:
            return self._again(recorded, predicted, who)
        if recorded.final is not None:
            raise InvalidArgument(f"the final of {self.name} has been held; the board is closed to new entries.")
        self._check_often(recorded, who)
        if not self._shelf.claim(self._kept(predicted, who), sealed=self.rules.reveal == "rounds"):
            raise self._taken(predicted.name)
        self._hold(predicted)
        match self.rules.reveal:
            case "rounds":
                return self._sealed(predicted.name, who)
            case "improvements" if recorded.submissions:
                return self._challenge(recorded, predicted, who)
        return self._enter(recorded, predicted, who)

    def table(self, round: int | None = None) -> BoardTable:
        """Return the current table. Free, and the same for everyone: it follows from the ledger alone.

        Args:
            round: An earlier round, from 1; by default, the last one.

        Returns:
            The entries in order, each with the best and worst places it may have.

        Raises:
            NotFound: There is no such round.
            InvalidArgument: With hidden features all rounds share one table.
        """
        self._reveal_if_due()
        recorded = self._recorded()
        if round is not None:
            checks.whole("round", round, 1)
            if round > len(recorded.targets):
                raise NotFound(f"{self.name} has had {len(recorded.targets)} rounds; there is no round {round}.")
            if not self._public:
                raise InvalidArgument("with hidden features all rounds are about one population and share one table.")
        key = (recorded.seen, round)
        if key not in self._tables:
            self._tables = {each: table for each, table in self._tables.items() if each[0] == key[0]}
            target = None if round is None else recorded.targets[round - 1]
            self._tables[key] = table_of(
                recorded,
                self.rules.reveal,
                self.loss,
                self.holdout.guard.plan.confidence,
                covers=self._covers(),
                target=target,
                simulated=self.holdout.guard.desk.terms.simulated,
            )
        opens = self._opens()
        return replace(
            self._tables[key],
            sealed=len(self._shelf.sealed()),
            opens=None if opens is None else opens.isoformat(),
            left=self.holdout.guard.desk.left(self.holdout.guard.analyst),
        )

    def reveal(self) -> BoardTable:
        """End the round: score and compare everything that is sealed, in one batch on fresh rows.

        Entries of earlier rounds that may be the best compete again, on the same rows.

        Returns:
            The table of the round.

        Raises:
            InvalidArgument: The board has no rounds, or nothing is sealed; nothing was charged.
            BudgetExhausted: The scores cost more than is left; nothing was charged.
        """
        if self.rules.reveal != "rounds":
            raise InvalidArgument(f"the board {self.name} reveals entries {self.rules.reveal!r}; it has no rounds.")
        if not self._reveal():
            raise InvalidArgument("nothing is sealed: submit an entry first.")
        return self.table()

    def final(self, names: Sequence[str] | None = None) -> BoardTable:
        """Hold the final, once: score and compare entries again, on rows that nothing else has touched.

        It is the holdout's exam: exact means that cost no answers, and narrower places than before.

        Args:
            names: The entries that take part; by default all that may be the best, up to 50.

        Returns:
            The table of the final.

        Raises:
            InvalidArgument: The holdout was opened without `exam`, or an entry's predictions are not available.
            BudgetExhausted: The exam has already been taken.
        """
        from afresh.guard.exam import check_exam

        check_exam(self.holdout.guard.plan)
        recorded = self._recorded()
        if recorded.final is not None:
            return self.table()
        best = [each.name for each in self.table() if each.best]
        chosen = best[:FINALISTS] if names is None else list(dict.fromkeys(names))
        found = []
        for name in chosen:
            predicted = self._predicted(name)
            if predicted is None:
                there = ", ".join(map(repr, recorded.submissions))
                raise InvalidArgument(
                    f"the predictions of {name!r} are not available; submit them again, for free. Available: {there}."
                    if name in recorded.submissions
                    else f"there is no entry {name!r}; there are {there}."
                )
            found.append(predicted)
        if not found:
            raise InvalidArgument("there is no entry yet; a final needs one.")
        entrants = {name: recorded.submissions[name].entrant for name in chosen}
        asked = self._asking.batch(found, entrants, [(i, j) for i in range(len(found)) for j in range(i)])
        self._desk.answer(asked, self.holdout.guard.analyst, exam=True)
        return self.table()

    @property
    def _desk(self) -> Any:
        return self.holdout.guard.desk

    @property
    def _public(self) -> bool:
        return self.holdout.visibility == "public"

    # What is known

    def _recorded(self) -> Recorded:
        """What the ledger says about the board; only what is new since the last time is read."""
        ledger, terms, before = self._desk.ledger, self._desk.terms, self._read
        with ledger.reading(terms) as account:
            if before is not None and before.seen == len(account.stated):
                return before
            found = read_record(self.name, account.stated.values(), account.entries, self._desk.plan, before)
        if found.loss not in (None, self.loss.words):
            raise InvalidArgument(
                f"the board {self.name!r} is about the {found.loss}, not the {self.loss.words}; give this one "
                "another name."
            )
        self._read = found
        return found

    def _waiting(self, name: str) -> Kept | None:
        return next((each for each in self._shelf.sealed() if each.name == name), None)

    def _predicted(self, name: str) -> Predicted | None:
        """The predictions of an entry, if they are available."""
        if name in self._models:
            return self._models[name]
        kept = self._shelf.get(name) if self._public else None
        if kept is None:
            return None
        values = kept.values
        self._hold(Predicted(name, kept.digest, lambda: (values, None)))
        return self._models[name]

    def _hold(self, predicted: Predicted) -> None:
        self._models[predicted.name] = predicted
        for oldest in list(self._models)[: max(len(self._models) - _AT_HAND, 0)] if self._public else ():
            self._models.pop(oldest, None)

    def _kept(self, predicted: Predicted, entrant: str) -> Kept:
        # With hidden features a model runs once it is paid for, and nobody may keep its predictions.
        values = predicted.values if self._public else np.empty(0)
        return Kept(predicted.name, entrant, self.clock().isoformat(), predicted.digest, values)

    def _forget(self, name: str) -> None:
        self._models.pop(name, None)
        self._shelf.remove(name)

    def _check_often(self, recorded: Recorded, who: str) -> None:
        """Refuse an entrant who has reached the limit of the rules."""
        limit = self.rules.limit
        if limit is None:
            return
        times = [each.at for each in recorded.submissions.values() if each.entrant == who]
        times += [datetime.fromisoformat(each.at) for each in self._shelf.sealed() if each.entrant == who]
        if self.rules.per is not None:
            times = [each for each in times if each > self.clock() - self.rules.per]
        if len(times) >= limit:
            again = self.rules.next_time(times)
            when = "" if again is None else f"; the next is accepted from {again.isoformat(timespec='seconds')} on"
            raise BudgetExhausted(
                asked=1,
                spent=len(times),
                questions=limit,
                analyst=who,
                message=f"{who} has entered {len(times)} times, which is all that {self.name} allows{when}. Nothing "
                "was charged.",
            )

    # Entering

    def _again(self, recorded: Recorded, predicted: Predicted, who: str) -> Submitted:
        """The same entry once more: its standing, for free."""
        waiting = self._waiting(predicted.name)
        if waiting is not None:
            if waiting.digest != predicted.digest:
                raise self._taken(predicted.name)
            return self._sealed(predicted.name, waiting.entrant)
        kept = self._predicted(predicted.name)
        first = recorded.scores.get(predicted.name)
        same = kept is not None and kept.digest == predicted.digest
        if kept is None and first is not None and self.rules.reveal != "rounds":
            same = self._digest_of(first) == self._question_of(predicted)
        if not same:
            raise self._taken(predicted.name)
        if kept is None:
            self._hold(predicted)
            self._shelf.put(self._kept(predicted, recorded.submissions[predicted.name].entrant), sealed=False)
        return self._submitted(predicted.name, recorded.submissions[predicted.name].entrant, [], [])

    def _taken(self, name: str) -> InvalidArgument:
        return InvalidArgument(f"the name {name!r} is taken by other predictions; give this entry another one.")

    def _digest_of(self, scored: Scored) -> str:
        with self._desk.ledger.reading(self._desk.terms) as account:
            found: str = account.entries[scored.part - 1].digest
        return found

    def _question_of(self, predicted: Predicted) -> str:
        found: str = self._desk.questions(asked_scores(self.holdout.labelled, [predicted], self.loss))[0].digest
        return found

    def _sealed(self, name: str, who: str) -> Submitted:
        opens = self._opens()
        return Submitted(
            board=self.name,
            name=name,
            entrant=who,
            standing=None,
            confidence=self._desk.plan.confidence,
            charged=0,
            left=self._desk.left(who),
            opens=None if opens is None else opens.isoformat(),
            simulated=self._desk.terms.simulated,
        )

    def _enter(self, recorded: Recorded, predicted: Predicted, who: str) -> Submitted:
        """Score an entry, and compare it with the leader and with the nearest entries not yet separated from it."""
        try:
            replies: list[Reply] = self._desk.answer([self._asking.score(predicted, who)], who)
        except BudgetExhausted:
            self._forget(predicted.name)
            raise
        compared: list[str] = []
        while len(compared) < self.rules.against:
            other = self._opponent(predicted.name, compared)
            if other is None:
                break
            try:
                replies += self._desk.answer([self._asking.difference(predicted, other)], who)
            except BudgetExhausted:
                break  # the score is paid for and gives a place by itself
            compared.append(other.name)
        return self._submitted(predicted.name, who, replies, compared)

    def _opponent(self, name: str, compared: Sequence[str]) -> Predicted | None:
        """The next opponent for an entry, from released numbers: the leader, then the nearest one worth it."""
        recorded = self._recorded()
        graph = recorded.graph(recorded.scores[name].target)
        names, own, mine = list(graph.places), graph.places[name], self._predicted(name)
        values = np.array([graph.values.get(each, np.nan) for each in names])
        assert mine is not None  # it was just entered
        low, high = graph.constraints.around(own)
        for place in candidates(values, own, low, high)[:LOOKED_AT]:
            other = None if names[place] in compared else self._predicted(names[place])
            if other is None or identical(self.holdout.labelled, mine, other):
                continue
            expected = expected_width(self.holdout.labelled, mine, other, self.loss)
            if expected is None or worth(expected, low[place], high[place]):
                return other
        return None

    def _challenge(self, recorded: Recorded, predicted: Predicted, who: str) -> Submitted:
        """Whether an entry certainly beats the leader."""
        leader = recorded.leader
        assert leader is not None
        incumbent = self._predicted(leader)
        if incumbent is None:
            self._forget(predicted.name)
            raise InvalidArgument(
                f"the predictions of the leader {leader!r} are not available; submit them again, which is free."
            )
        asked = self._asking.challenge(predicted, incumbent, who)
        try:
            replies = self._desk.answer([asked], who)
        except BudgetExhausted:
            self._forget(predicted.name)
            raise
        outcome = replies[0].parts[0].entry.outcome
        assert outcome is not None
        passed = bool(outcome.released["passed"])
        return replace(self._submitted(predicted.name, who, replies, [leader]), accepted=passed)

    def _submitted(self, name: str, who: str, replies: Sequence[Reply], compared: Sequence[str]) -> Submitted:
        recorded = self._recorded()
        standing, entries = standing_now(recorded, name)
        if standing is None and name in recorded.submissions:
            standing = elsewhere(recorded, name)
        return Submitted(
            board=self.name,
            name=name,
            entrant=who,
            standing=standing,
            compared=tuple(compared),
            entries=entries,
            others=len(recorded.submissions) - entries,
            confidence=self._desk.plan.confidence,
            charged=sum(len(each.charged) for each in replies),
            left=self._desk.left(who),
            simulated=self._desk.terms.simulated,
        )

    # Rounds

    def _opens(self) -> datetime | None:
        """When the round is revealed, if there is a schedule and something is waiting."""
        if self.rules.every is None:
            return None
        waiting = [datetime.fromisoformat(each.at) for each in self._shelf.sealed()]
        return min(waiting) + self.rules.every if waiting else None

    def _reveal_if_due(self) -> None:
        opens = self._opens()
        if opens is not None and opens <= self.clock():
            with suppress(BudgetExhausted):  # then it stays sealed, and the table says so
                self._reveal()

    def _reveal(self) -> bool:
        recorded = self._recorded()
        waiting = self._shelf.sealed()
        new = [each for each in waiting if each.name not in recorded.submissions]
        if new:
            self._ask_round(recorded, new)
        for each in waiting:
            self._shelf.put(each, sealed=False)
        return bool(waiting)

    def _ask_round(self, recorded: Recorded, new: Sequence[Kept]) -> None:
        number = len(recorded.targets) + 1
        entrants = {each.name: each.entrant for each in new}
        again = []
        if recorded.rounds:
            best = [each.name for each in self._ordered(recorded) if each.best][:CARRIED]
            again = [name for name in best if self._predicted(name) is not None]
            entrants |= {name: recorded.submissions[name].entrant for name in again}
        found = [self._in_round(self._predicted(name), number) for name in [*(each.name for each in new), *again]]
        left = self._desk.left(self.holdout.guard.analyst)
        pairs = round_pairs(len(new), len(again), self._allowance(), left, self.rules.against)
        pairs = [(i, j) for i, j in pairs if not identical(self.holdout.labelled, found[i], found[j])]
        self._desk.answer(self._asking.batch(found, entrants, pairs), self.holdout.guard.analyst)

    def _ordered(self, recorded: Recorded) -> Sequence[Standing]:
        return table_of(recorded, self.rules.reveal, self.loss, self._desk.plan.confidence).entries

    def _allowance(self) -> int:
        """The most answers a round may take, leaving as many for each other round that has rows."""
        analyst = self.holdout.guard.analyst
        batch = self._desk.plan.mechanism.batch or 1
        rounds = max(self._desk.ledger.rows_left(self._desk.terms, analyst) // batch, 1)
        return int(self._desk.left(analyst) // rounds)

    def _in_round(self, predicted: Predicted | None, number: int) -> Predicted:
        """The same predictions as a question of this round: on fresh rows it is another question."""
        assert predicted is not None
        digest = hashlib.sha256(f"{predicted.digest} {self.name} round {number}".encode()).hexdigest()
        return Predicted(predicted.name, digest, predicted.made)

    def _covers(self) -> str:
        desk = self._desk
        said = f"All places in this table, and in every earlier one, hold at once {desk.odds}, {desk.target}"
        return str(desk.covers(f"{said}, however entries were chosen after seeing tables."))

    def __repr__(self) -> str:
        """One line."""
        return f"Board({self.name!r}, {self.loss.words}, {self.rules.reveal})"

    def _blocks(self) -> list[show.Block]:
        return [*self.table().blocks(), show.Line(self.rules.words)]
