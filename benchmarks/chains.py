"""Long chains: opening, a receipt and verifying compared with hashing the records, late asks with early ones; CPU."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from afresh.ledger import Ledger, Question, Terms, open_ledger, outcome
from afresh.ledger.known import plain
from afresh.ledger.records import seal
from afresh.ledger.sqlite import SqliteJournal
from afresh.mechanisms.base import ReadsMany
from afresh.planning.choose import plan
from afresh.planning.plan import Plan
from afresh.receipts import make_receipt, verify
from benchmarks.measured import Measured, compared

ROWS = 1_000_000
DATA = plain("rows", ROWS)
OPENING, ASKING = 4.0, 1.2


def _question(made: Plan, number: int) -> Question:
    digest = hashlib.sha256(f"{number}".encode()).hexdigest()
    return Question(digest, f"amount < {number}", made.mechanism.charge, made.mechanism.row_charge, levels=2)


def build(path: Path, answers: int, ask: Callable[[Ledger, Terms, Plan, int], object]) -> tuple[list[float], Plan]:
    """A ledger with that many answers; CPU seconds of `ask` for the first hundred of them and the last."""
    made = plan(ROWS, answers, 0.95, method="stabilized")
    taken: list[float] = []
    chance, mechanism = np.random.default_rng(1), made.mechanism
    with closing(open_ledger(path)) as ledger:
        terms = ledger.open(DATA, made.limits)

        def by_hand(numbers: range) -> None:
            for number in numbers:
                start = time.process_time()
                ask(ledger, terms, made, number)
                taken.append(time.process_time() - start)

        by_hand(range(100))
        for start in range(100, answers - 100, 1000):
            numbers = range(start, min(start + 1000, answers - 100))
            entries = ledger.reserve(terms, [_question(made, number) for number in numbers], "ada")
            grid, top = mechanism.grid, mechanism.half_width(0.5)  # anything on the grid will do
            assert grid is not None
            assert isinstance(mechanism, ReadsMany)
            released = np.floor((top + chance.random(len(numbers)) * 0.9) / grid) * grid
            read = zip(released.tolist(), *(each.tolist() for each in mechanism.read_each(released)), strict=True)
            made_of = [(entry, outcome(*each, ends=made.ends)) for entry, each in zip(entries, read, strict=True)]
            ledger.record_many(terms, made_of, analyst="ada")
        by_hand(range(answers - 100, answers))
    return taken, made


def ask_once(ledger: Ledger, terms: Terms, made: Plan, number: int) -> None:
    """The ledger's part of an ask."""
    (entry,) = ledger.reserve(terms, [_question(made, number)], "ada")
    mechanism = made.mechanism
    y = (mechanism.grid or 0.0) * (2**12 + number % 2**12)
    ledger.record_many(terms, [(entry, outcome(y, mechanism.value(y), *mechanism.interval(y), ends=made.ends))])


def hash_all(path: Path) -> None:
    """Merely read the records, as the ledger does, and hash them."""
    with closing(SqliteJournal(path)) as journal, journal.transaction(write=False) as transaction:
        (chain,), head = transaction.chains(), ""
        for text, stored in transaction.since(chain, 0):
            head = seal(head, text)
            assert head == stored


def open_all(path: Path) -> None:
    """What opening the data asks of the ledger."""
    with closing(open_ledger(path)) as ledger:
        assert ledger.find(DATA) is not None


def _cpu(work: Callable[[], object], rounds: int = 3) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def measure(lengths: tuple[int, ...] = (1_000, 10_000, 100_000)) -> Iterator[Measured]:
    """Of every length. Below 10,000 answers opening the file itself shows, so opening has no limit there."""
    for answers in lengths:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.sqlite"
            taken, _ = build(path, answers, ask_once)
            hashing, opening = _cpu(partial(hash_all, path)), _cpu(partial(open_all, path))
            with closing(open_ledger(path)) as ledger:
                terms = ledger.find(DATA)
                assert terms is not None
                start = time.process_time()
                receipt = make_receipt(ledger.chain(terms))
                writing = time.process_time() - start
            checking = _cpu(partial(verify, receipt), 1)
        name, long = f"a chain of {answers:,} answers", answers >= 10_000
        yield compared(f"{name}: opening, to hashing it", opening, hashing, OPENING if long else None)
        yield compared(f"{name}: a receipt, to hashing it", writing, hashing)
        yield compared(f"{name}: verifying, to hashing it", checking, hashing)
        yield compared(f"{name}: a late ask, to an early one", median(taken[-90:]), median(taken[10:100]), ASKING)
