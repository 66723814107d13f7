"""`afresh.open`: combines data, a plan and a ledger into a guard."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from afresh import checks
from afresh.errors import DataError, ImpossibleWidth, InvalidArgument, PlanMismatch
from afresh.guard import noise
from afresh.guard.desk import Desk
from afresh.guard.guard import Guard
from afresh.guard.opened import kind_of
from afresh.ledger.known import plain
from afresh.ledger.records import DEALING
from afresh.mechanisms.base import TYPICAL_MEANS
from afresh.mechanisms.registry import MECHANISMS
from afresh.planning.choose import FEWEST_ROWS, plan
from afresh.planning.plan import Plan
from afresh.planning.request import Wishes, check_wishes
from afresh.planning.ways import THIS
from afresh.results import show
from afresh.results.progress import waiting
from afresh.wire.addresses import is_address, refuse_plan

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.engines.identity import Identity
    from afresh.ledger import Ledger, Terms

DEFAULT_QUESTIONS = 100
DEFAULT_CONFIDENCE = 0.95
_LARGEST_SEED = 2**128
WIDEST = 0.25  # half-width at one half beyond which a plan is useless


def open(  # the name a newcomer expects: afresh.open
    data: Any,
    questions: int | EllipsisType | None = ...,
    confidence: float | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    method: str | None = None,
    *,
    answers: int | None = None,
    rounds: int | None = None,
    typical: float | Sequence[float] | None = None,
    open: float | None = None,
    exam: float | None = None,
    promise: bool = False,
    deviation: float | None = None,
    table: str | None = None,
    analyst: str | None = None,
    must_exist: bool = False,
    allow_wide: bool = False,
    new_rows: str | None = None,
    simulation_seed: int | None = None,
    made_up: bool = False,
) -> Guard:
    """Put a guard in front of a dataset.

    The guarantee assumes that rows are independent draws from one population: duplicated or clustered rows void it, and
    so does anything the analyst learns about the rows in other ways. It is not a privacy guarantee.

    Until the first answer you can change the plan (`questions`, `confidence`, `method`, `answers`, `rounds`) by opening
    the data again; the first answer fixes it for good. Opening the same content later, under any name or encoding,
    finds the plan in the ledger: leave these arguments out or repeat them; different ones are refused.

    Args:
        data: A Parquet, CSV or DuckDB file; a pandas, Polars, Arrow or Ibis table; a table in Postgres
            ("postgresql://user@host/database" and `table`) or Spark (a DataFrame, or a session and `table`), which is
            read in place and must not change while it is open; or, without other arguments, the address of a service's
            dataset, such as https://host/customers.
        questions: The most answers the dataset may ever give (default 100). None is a budget that never runs out:
            answers are a little wider, each a little wider than the one before.
        confidence: The probability that all intervals hold at once (default 0.95).
        ledger: The path of a file, or a postgresql:// address if several machines share one budget.
        method: How answers are computed (default: the narrowest promise).
        answers: The most answers if some are asked with a coarser `precision` (default: as many as questions).
        rounds: The number of rounds you will ask in. Questions asked together are answered from fresh rows, without
            noise, which is much narrower if there are few rounds.
        typical: The means you expect, one or several (default 0.5, 0.1 and 0.01, as shares of the range between the
            bounds): the plan is made narrowest there.
        open: The share of rows you will see (`Guard.open_rows`), for example 0.5. Answers are guessed from these rows
            and confirmed on the others: narrow as long as you do not overfit, and valid whatever you do.
        exam: The share of rows kept for a few final questions, for example 0.1: `Guard.exam` answers them exactly,
            once, with half of the failure probability reserved for them.
        promise: Use only methods that promise their widths in advance. By default, a method whose expected widths are
            much narrower may be chosen; the plan then says so.
        deviation: The standard deviation you expect of numbers, as a share of the range between their bounds, such as
            0.05. The noise follows the actual deviation of each number anyway; the plan then reserves all the room that
            such numbers need, and other answers are a little wider.
        table: The table, in a database or in a DuckDB file that holds several.
        analyst: Who is asking, for the record and for shares of a divided budget (default: $AFRESH_ANALYST, or your
            user name).
        must_exist: Refuse a dataset that was never opened before, instead of making a plan for it.
        allow_wide: Accept a plan whose intervals would be wider than ±0.25, and questions about numbers in a plan with
            so much noise that their intervals follow the bounds, however small the standard deviation.
        new_rows: Why a dataset that shares a distinctive column, or most of its different rows, with one in this ledger
            has different rows. Without this text it is refused, because it looks like an edited copy: a column renamed,
            added, dropped or cast, a few cells changed, rows dropped, added or repeated. The text is recorded and shown
            in receipts.
        simulation_seed: Make the noise predictable. Answers then guarantee nothing and say so, and no ledger is kept.
        made_up: Confirm that these rows, in memory, were made up for a simulation.

    Returns:
        A guard. It is a context manager; closing it loses nothing.

    Raises:
        DataError: The data cannot be read or has too few rows.
        InvalidArgument: An argument is wrong, or the plan would be too wide to learn anything from.
        PlanMismatch: Another plan is in force for these rows.
        SameRows: The rows look like rows this ledger already knows.
        LedgerError: The ledger cannot be used.
    """
    opening = check_opening(
        data,
        questions,
        confidence,
        ledger,
        method,
        answers=answers,
        rounds=rounds,
        typical=typical,
        open=open,
        exam=exam,
        promise=promise,
        deviation=deviation,
        analyst=analyst,
        must_exist=must_exist,
        allow_wide=allow_wide,
        new_rows=new_rows,
        simulation_seed=simulation_seed,
        made_up=made_up,
    )
    if is_address(data):
        from afresh.client.connect import open_address

        refuse_plan(opening.wanted.given or any((ledger, table, analyst, new_rows, allow_wide, simulation_seed)))
        return open_address(data)
    with opened_engine(data, table, opening) as engine:
        desk = open_desk(engine, opening)
        desk.kind = kind_of(data)
        return Guard(desk, opening.analyst)


@dataclass(frozen=True, slots=True)
class Opening:
    """What a caller wants from the desk, checked before any data is read."""

    wanted: Wishes
    ledger: str | os.PathLike[str] | Ledger | None
    analyst: str
    must_exist: bool
    allow_wide: bool
    new_rows: str | None
    seed: int | None


def check_opening(
    data: Any,
    questions: int | EllipsisType | None = ...,
    confidence: float | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    method: str | None = None,
    *,
    answers: int | None = None,
    rounds: int | None = None,
    typical: float | Sequence[float] | None = None,
    disagreement: float | None = None,
    open: float | None = None,
    exam: float | None = None,
    development: int | None = None,
    promise: bool = False,
    deviation: float | None = None,
    analyst: str | None = None,
    must_exist: bool = False,
    allow_wide: bool = False,
    new_rows: str | None = None,
    simulation_seed: int | None = None,
    made_up: bool = False,
) -> Opening:
    """Check the arguments of `open`, or raise an error."""
    choosing = typical, disagreement, open, promise, exam, development, deviation
    wanted = check_wishes(questions, confidence, method, answers, rounds, MECHANISMS, *choosing)
    who = _check_analyst(analyst)
    if new_rows is not None:
        checks.text("new_rows", new_rows, "text that says why these rows are not the ones opened before")
    seed = None if simulation_seed is None else _check_seed(simulation_seed, ledger)
    check_made_up(data, seed, made_up)
    return Opening(wanted, ledger, who, must_exist, allow_wide, new_rows, seed)


@contextmanager
def opened_engine(data: Any, table: str | None = None, opening: Opening | None = None) -> Iterator[Engine]:
    """Open an engine over data, and close it if the body fails: until there is a desk, nothing else would.

    What was learned about the data when it was last opened is kept with the ledger of the `opening`.
    """
    from afresh.engines.open import open_engine  # on demand: `import afresh` stays fast
    from afresh.ledger import memory_beside

    memory = None if opening is None or opening.seed is not None else memory_beside(opening.ledger)
    engine = open_engine(data, table, *([] if memory is None else [memory.recall]))
    try:
        if engine.rows < FEWEST_ROWS:
            raise DataError(f"the data have {engine.rows} rows; a guard needs at least {FEWEST_ROWS}.")
        yield engine
    except BaseException:
        engine.close()
        raise


def open_desk(engine: Engine, opening: Opening, development: Engine | None = None) -> Desk:
    """Return the desk of an engine's rows, with the plan in force. Closing it closes the engines.

    `development` holds the analyst's own rows, from which answers are guessed.
    """
    seed, book = opening.seed, _open_book(opening)
    owned = book is not opening.ledger
    try:
        with waiting(f"Reading {engine.rows:,} rows, and planning"):
            terms, stored = _settle(engine, book, opening)
        if stored.mechanism.open_rows is not None:
            engine.check_hands_out()
        if stored.mechanism.own and development is None:
            raise InvalidArgument(
                "answers about this dataset are guessed from development data of your own; open it with "
                "afresh.holdout(X, y, open=(X_dev, y_dev))."
            )
        if stored.mechanism.shuffles:
            _check_dealing(terms)
            # The terms' seed is OS entropy, drawn once; a simulation must repeat itself.
            engine.shuffle(terms.seed if seed is None else f"simulation {seed}", book.memory)
    except BaseException:
        if owned:
            book.close()
        raise
    draw = noise.from_entropy if seed is None else noise.from_seed(seed)
    wide = opening.allow_wide or seed is not None
    return Desk(engine, stored, book, terms, draw, owns_ledger=owned, development=development, allow_wide=wide)


def _check_dealing(terms: Terms) -> None:
    """Refuse to deal rows in another way than before: rows that were opened would be dealt as fresh ones."""
    if terms.dealing != DEALING:
        raise PlanMismatch(
            "this dataset was opened by an afresh that dealt rows by another rule, and to go on by today's would use "
            "the same rows twice. What was answered stays valid, and so do its receipts; for more questions, go on "
            "with that afresh, or open new rows."
        )


def _check_seed(seed: int, ledger: object) -> int:
    seed = checks.whole("simulation_seed", seed, -_LARGEST_SEED, _LARGEST_SEED)
    if ledger is not None:
        raise InvalidArgument("a simulation keeps no ledger; leave out ledger= or simulation_seed=.")
    return seed


def check_made_up(data: object, seed: int | None, made_up: bool) -> None:
    """Refuse to simulate on rows that may be guarded: a simulation gives away their exact means."""
    if not isinstance(made_up, bool):
        raise checks.wrong("made_up", made_up, "True or False")
    if seed is None:
        if made_up:
            raise InvalidArgument("made_up == True, but only a simulation needs that; give simulation_seed= as well.")
        return
    from afresh.engines.embedded.sources import is_frame

    if not is_frame(data):
        raise InvalidArgument(
            "a simulation reveals the rows, so it cannot run on a file or a database table; make rows up in "
            "memory (a pandas or Polars frame, an Arrow table) and set made_up=True."
        )
    if not made_up:
        raise InvalidArgument(
            "a simulation reveals the rows; if these were made up for it, set made_up=True. For real rows leave out "
            "simulation_seed=."
        )


def _check_analyst(analyst: str | None) -> str:
    if analyst is None:
        analyst = os.environ.get("AFRESH_ANALYST")
    if analyst is None:
        try:
            return getpass.getuser()
        except (OSError, KeyError):  # no such user, as in some containers
            return "unknown"
    return checks.analyst(analyst)


def _open_book(opening: Opening) -> Ledger:
    from afresh.ledger import default_place, is_server, open_ledger

    if opening.seed is not None:
        return open_ledger(":memory:")
    where = default_place() if opening.ledger is None else opening.ledger
    if opening.must_exist and isinstance(where, str | os.PathLike):
        place = os.path.expanduser(os.fspath(where))
        if not is_server(place) and not os.path.exists(place):
            raise DataError(f"there is no ledger at {place}, so this dataset was never opened with it.")
    return open_ledger(where)


def _settle(engine: Engine, book: Ledger, opening: Opening) -> tuple[Terms, Plan]:
    """Return the terms in force and their plan: the ledger's, or new ones made from the caller's wishes."""
    # A simulation has its own ledger, which holds nothing else, so it needs no name for the data.
    simulated, wanted = opening.seed is not None, opening.wanted
    identity = plain("simulation", engine.rows) if simulated else _identity(engine, book)
    terms = book.find(identity)
    if terms is None and opening.must_exist:
        raise DataError("this dataset was never opened with this ledger; ask it a first question.")
    stored = None if terms is None else Plan.thaw(terms.limits)
    if terms is None or (wanted.given and not terms.fixed):
        made = _plan(engine.rows, wanted, stored)
        if not (opening.allow_wide or simulated):
            _refuse_wide(made, wanted.method, wanted.typical or TYPICAL_MEANS)
        terms = book.open(
            identity, made.limits, new_rows=opening.new_rows, simulated=simulated, analyst=opening.analyst
        )
        stored = made if terms.limits == made.limits else Plan.thaw(terms.limits)
    assert stored is not None
    if differing := wanted.differing(stored):
        raise PlanMismatch(
            f"{differing} The first answer fixes the plan (so do open rows, a division or a charge), because changing "
            "it later would void intervals already released. Leave these arguments out to continue with that plan."
        )
    return terms, stored


def _identity(engine: Engine, book: Ledger) -> Identity:
    """Return the identity of an engine's rows: remembered by the ledger if their state is the same, else computed."""
    state = None if book.memory is None else engine.state()
    if book.memory is None or state is None:
        return engine.identity(book.key)
    if engine.learnt is not None:
        book.memory.note(*engine.learnt)
    remembered = f"{book.key}:{state}"  # another ledger may have been put in its place, which has other sketches
    if (known := book.memory.find(remembered)) is not None and known.rows == engine.rows:
        return known
    found = engine.identity(book.key)
    if engine.state() == state:
        book.memory.keep(remembered, found)
    return found


def _plan(rows: int, wanted: Wishes, before: Plan | None) -> Plan:
    """Return the requested plan; anything left out is as before, or the default."""
    questions: int | None = DEFAULT_QUESTIONS
    if before is not None:
        questions = before.questions if before.expected is None else None
    confidence = DEFAULT_CONFIDENCE if before is None else before.confidence
    return plan(
        rows,
        questions if isinstance(wanted.questions, EllipsisType) else wanted.questions,
        confidence if wanted.confidence is None else wanted.confidence,
        answers=wanted.answers,
        method=wanted.method,
        rounds=wanted.rounds,
        typical=wanted.typical,
        disagreement=wanted.disagreement,
        open=wanted.open,
        exam=wanted.exam,
        development=wanted.development,
        promise=wanted.promise,
        deviation=wanted.deviation,
    )


def _refuse_wide(made: Plan, method: str | None, typical: tuple[float, ...]) -> None:
    """Refuse a plan too wide to learn anything from, and say what would work."""
    if (width := made.half_width(0.5)) <= WIDEST:
        return
    if made.expected is not None:
        raise InvalidArgument(
            f"questions == None: with {made.rows:,} rows, answer number {made.expected:,} would be accurate only to "
            f"±{width:.2g}, too wide to learn anything from; give a number of questions. allow_wide=True accepts it."
        )
    narrower = [way for way in made.ways if way.how != THIS and way.half_width <= WIDEST]
    instead = [f"{way.how} gives ±{show.width(way.half_width)}" for way in narrower]
    with suppress(ImpossibleWidth):
        fewer = plan(rows=made.rows, confidence=made.confidence, width=WIDEST, method=method, typical=typical)
        instead.append(f"questions={fewer.questions} gives ±{WIDEST:g} with these rows")
    with suppress(ImpossibleWidth):
        more = plan(questions=made.questions, confidence=made.confidence, width=WIDEST, method=method, typical=typical)
        instead.append(f"{made.in_count} would need {more.rows:,} rows for ±{WIDEST:g}")
    raise InvalidArgument(
        f"{made.in_count} about {made.rows:,} rows could be answered only to ±{width:.2g}, too wide to learn anything "
        f"from; {'; '.join(instead) or 'there are too few rows'}. allow_wide=True opens the dataset all the same."
    )
