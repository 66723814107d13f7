"""What a service has opened: every dataset and holdout of its configuration, by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.engines.open import reading_dates
from afresh.errors import AfreshError, DataError, Forbidden, InvalidArgument, NotFound
from afresh.guard.guard import Guard
from afresh.guard.open import check_opening, open_desk, opened_engine
from afresh.judging.judge import Judge, open_judge
from afresh.judging.settings import Settings
from afresh.server.config import BoardSettings, Config, Dataset
from afresh.server.dictionary import Dictionary
from afresh.server.history import Follower, History
from afresh.server.holds import Holds
from afresh.server.rounds import Rounds
from afresh.server.store import store_of
from afresh.server.tokens import Caller, Freezer, Tokens
from afresh.wire.arguments import to_argument
from afresh.wire.boards import rules_to_json
from afresh.wire.plans import plan_to_json

if TYPE_CHECKING:
    from afresh.boards.board import Board
    from afresh.guard.desk import Desk
    from afresh.models.holdout import Holdout

STEWARD = "steward"
"""The name under which the service itself writes to the ledger."""


@dataclass(frozen=True, eq=False)
class Served:
    """One opened dataset."""

    settings: Dataset
    guard: Guard
    dictionary: Dictionary
    history: History
    holdout: Holdout | None = None

    @property
    def name(self) -> str:
        """Its name in addresses."""
        return self.settings.name

    @cached_property
    def places(self) -> dict[Any, int] | None:
        """The position of each id's row; None for a holdout whose predictions come in row order."""
        if self.settings.id is None:
            return None
        from afresh.engines.embedded.rowwise import read_column

        values = read_column(self.guard.desk.engine, self.settings.id)
        if np.ma.is_masked(values):
            raise DataError(f"the id column {self.settings.id!r} of {self.name} has missing values.")
        found = {str(value): place for place, value in enumerate(np.ma.getdata(values).tolist())}
        if len(found) < len(values):
            raise DataError(f"the id column {self.settings.id!r} of {self.name} has the same value twice.")
        return found

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The plan in force, with the comparison of methods, which takes a while to make."""
        return plan_to_json(self.guard.plan)

    def describe(self) -> dict[str, Any]:
        """What anyone with a token for it may know."""
        desk, settings = self.guard.desk, self.settings
        told: dict[str, Any] = {
            "name": self.name,
            "kind": "dataset" if self.holdout is None else "holdout",
            "description": settings.description,
            "rows": self.guard.rows,
            "columns": self.dictionary.describe(desk.schema),
            "plan": self.plan,
            "simulated": desk.terms.simulated,
            "download": settings.download,
        }
        if self.holdout is not None:
            labels = self.holdout.labelled.labels
            told |= {
                "label": self.holdout.label,
                "label_type": np.ma.getdata(labels.values).dtype.str,
                "classes": None if self.holdout.classes is None else list(self.holdout.classes),
                "loss": to_argument(self.holdout.loss),
                "features": self.holdout.visibility,
                "id": settings.id,
            }
        return told


@dataclass(frozen=True, eq=False)
class Posted:
    """A board of a holdout."""

    settings: BoardSettings
    board: Board

    def describe(self) -> dict[str, Any]:
        """What anyone who may look at the board may know."""
        rules, settings = self.settings.rules, self.settings
        return {
            "name": settings.name,
            "holdout": settings.holdout,
            "description": settings.description,
            "public": settings.public,
            "loss": to_argument(self.board.loss),
            "rules": rules_to_json(rules),
            "words": rules.words,
        }


@dataclass(frozen=True, eq=False)
class Judged:
    """One opened evaluation."""

    name: str
    judge: Judge
    guard: Guard
    history: History


class House:
    """All of them, and who may come in."""

    def __init__(self, config: Config) -> None:
        """Open everything, or nothing."""
        self.config, self.served, self.boards = config, dict[str, Served](), dict[str, Posted]()
        self.judges = dict[str, Judged]()
        self._follower: Follower | None = None
        store = store_of(config.state, config.ledger)
        self.holds = Holds(store, self._desk)
        self.store, self.tokens, self.freezer, self.rounds = store, Tokens(store), Freezer(store), Rounds(store)
        try:
            for settings in config.datasets.values():
                self.served[settings.name] = _open(settings, config)
            for board in config.boards.values():
                self.boards[board.name] = self._post(board)
            for each in config.evaluations.values():
                self.judges[each.name] = _judged(each, config.tick)
            opened: list[Served | Judged] = [*self.served.values(), *self.judges.values()]
            self._follower = Follower([each.history for each in opened]) if config.tick > 0 else None
            self.holds.settle()
        except BaseException:
            self.close()
            raise

    def _post(self, settings: BoardSettings) -> Posted:
        from afresh.boards.asking import check_board
        from afresh.boards.board import Board
        from afresh.server.shelf import Stored

        holdout = self.served[settings.holdout].holdout
        assert holdout is not None  # the configuration says so
        loss = holdout.settled()
        try:
            check_board(holdout, settings.rules, loss)
        except AfreshError as error:
            error.add_note(f"while opening the board {settings.name}")
            raise
        shelf = Stored(self.store, settings.name)
        return Posted(settings, Board(holdout, settings.name, settings.rules, loss, shelf))

    def _desk(self, name: str) -> Desk | None:
        found = self.served.get(name) or self.judges.get(name)
        return None if found is None else found.guard.desk

    def judge(self, name: str, caller: Caller) -> Judged:
        """An evaluation, if it exists for the caller."""
        if name not in self.judges or not caller.sees(name):
            there = ", ".join(each for each in self.judges if caller.sees(each)) or "none"
            raise NotFound(f"there is no evaluation {name!r} for this token; there are: {there}.")
        return self.judges[name]

    def find(self, name: str, caller: Caller) -> Served:
        """A dataset, if it exists for the caller."""
        if name not in self.served or not caller.sees(name):
            there = ", ".join(each for each in self.served if caller.sees(each)) or "none"
            raise NotFound(f"there is no dataset {name!r} for this token; there are: {there}.")
        return self.served[name]

    @property
    def words(self) -> list[str]:
        """Everything it has opened, a line each."""
        told = [
            f"{each.name}: {each.guard.rows:,} rows{'' if each.holdout is None else ' with labels'}, "
            f"{each.guard.plan.in_words}"
            for each in self.served.values()
        ]
        told += [
            f"{name}: a {'public ' if each.settings.public else ''}board of {each.settings.holdout}. "
            f"{each.settings.rules.words}"
            for name, each in self.boards.items()
        ]
        told += [
            f"{name}: {each.judge.evaluation.items:,} items, {each.guard.plan.in_words}"
            for name, each in self.judges.items()
        ]
        told += [f"{name} is frozen: {why}" for name in (*self.served, *self.judges) if (why := self.freezer.why(name))]
        known = self.tokens.valid()
        told.append(
            f"to {known:,} token{'' if known == 1 else 's'}" if known else "to nobody yet: afresh token new NAME"
        )
        if self.config.jwt is not None:
            told.append(f"to those who have a token of {self.config.jwt.issuer}")
        return told

    def close(self) -> None:
        """Close everything; what was released is kept."""
        if self._follower is not None:
            self._follower.stop()
        for served in self.served.values():
            served.guard.close()
        for judged in self.judges.values():
            judged.judge.close()
        self.store.close()


def _judged(settings: Settings, tick: float) -> Judged:
    try:
        judge = open_judge(settings, STEWARD)
        guard = judge.evaluation.guard
        if settings.shares and guard.desk.ledger.shares(guard.desk.terms) != dict(settings.shares):
            guard.divide(settings.shares)
        return Judged(settings.name, judge, guard, History(guard.desk, tick))
    except AfreshError as error:
        error.add_note(f"while opening {settings.name} (an evaluation)")
        raise


def require(caller: Caller, role: str) -> None:
    """Refuse a caller without this role."""
    if not caller.may(role):
        raise Forbidden(f"this needs a token with the role {role}, but yours has the role {caller.role}.")


def _open(settings: Dataset, config: Config) -> Served:
    try:
        return _opened(settings, config)
    except AfreshError as error:
        where = f"{settings.place}: " if settings.place else ""
        error.add_note(f"{where}while opening {settings.name} ({'a holdout' if settings.label else 'a dataset'})")
        raise


def _opened(settings: Dataset, config: Config) -> Served:
    opening = check_opening(settings.data, ledger=config.ledger, analyst=STEWARD, **settings.wishes)
    with opened_engine(reading_dates(settings.data, settings.dates), settings.table, opening) as engine:
        dictionary = Dictionary(settings.columns, engine.schema)
        if settings.label is not None:
            _check_label(settings, engine.schema)
        desk = open_desk(engine, opening)
    guard = Guard(desk, STEWARD)
    try:
        desk.hidden = dictionary.hidden
        desk.engine.prepare()  # the service waits, not whoever asks first
        if settings.shares and desk.ledger.shares(desk.terms) != dict(settings.shares):
            guard.divide(settings.shares)
        holdout = None
        if settings.label is not None:
            from afresh.models.open import holdout as hold

            holdout = hold(guard, label=settings.label, loss=settings.loss or "zero-one", classes=settings.classes)
        history = History(desk, config.tick)
        found = Served(settings, guard, dictionary, history, holdout)
        _ = found.places, found.plan  # mistakes in ids are reported at start
        return found
    except BaseException:
        guard.close()
        raise


def _check_label(settings: Dataset, schema: Any) -> None:
    names = {name.lower() for name in schema}
    for what in (settings.label, settings.id):
        if what is not None and what.lower() not in names:
            raise InvalidArgument(f"there is no column {what!r}; there are {', '.join(list(schema)[:30])}.")
