"""kill -9, at random moments and at every named step of the path of an answer, through a real guard on a real file.

    python -m ledger.kills --kills 200 --backend sqlite|postgres --method calibrated|settled

from the folder tests/ prints what was found. Every process that is killed asks with several threads, whose questions
are served in groups; at the named steps a whole group is on its way. After every kill: the chain verifies and has only
grown, what was spent has not decreased, every answer that was released is in it unchanged, no question was paid for or
answered twice, and of a group at a named step all was written or nothing. At the end the receipt verifies: of answers
that know those before them, as those of `settled` do, also that each knew the right ones.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

import afresh
from afresh.ledger import open_ledger
from afresh.ledger.journal import Sealed
from afresh.queries.asked import make_asked
from afresh.queries.tree import Type
from afresh.receipts import verify
from ledger.race import somewhere

BUDGET = 20_000
ROWS = {"calibrated": 2000, "settled": 20_000}  # enough for a plan of so many answers
THREADS = 4
BATCHES = 5  # a thread that turns out faster than it was measured waits to be killed, or the budget would not last
EACH = 2  # questions of a thread in the group that is killed at a step
Say = Callable[[object], None]
for _late in (
    "duckdb",
    "pandas",
    "scipy.optimize",
    "scipy.special",
    "afresh.engines.embedded.engine",
    "afresh.queries.from_sql",
):
    importlib.import_module(_late)  # once, here, instead of in every child
make_asked("x < 1", {"x": Type.NUMBER})  # likewise the parser's own preparations
# At each step: whether the batch is paid for then, and whether it is answered.
STEPS = {
    "before reserve": (0, 0),
    "inside the reserve transaction": (0, 0),
    "between reserve and evaluate": (1, 0),
    "between noise and record": (1, 0),
    "inside the record transaction": (1, 0),
    "between record and release": (1, 1),
}


def die(*arguments: object, **options: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead")


def arm(guard: Any, step: str) -> None:
    """Make the next question end this process at a step."""
    ledger = guard.desk.ledger
    if step == "before reserve":
        ledger.reserve_each = die
    elif step == "between reserve and evaluate":
        guard.desk.engine.moments = die
    elif step == "between noise and record":
        ledger.record_each = die
    elif step == "between record and release":
        record_each = ledger.record_each
        ledger.record_each = lambda *arguments: die(record_each(*arguments))
    else:
        statements = sys.modules[type(ledger._journal).__module__]._Statements
        append, written = statements.append, []

        def append_and_die(self: Any, *arguments: Any) -> None:
            append(self, *arguments)
            written.append(1)
            if len(written) == ("reserve" in step, "record" in step).index(True) + 1:
                die()

        statements.append = append_and_die


class Busy:
    """Somebody who serves until told otherwise, so that others stand in line."""

    over, thread = False, 0


def asked(number: int, method: str) -> dict[str, Any]:
    """Its question; with `settled` every third has a hint, and noise of its own."""
    hint = {"about": number / BUDGET} if method == "settled" and number % 3 == 0 else {}
    return {"expression": f"x < {number}", **hint}


def asker(
    data: str, place: str, method: str, numbers: Iterator[int], undone: int, step: str | None, say: Say, seed: int
) -> None:
    """Ask one question after another, in several threads, and say what was released; never end.

    The first `undone` of the numbers are those that an earlier process was killed with.
    """
    with afresh.open(data, BUDGET, ledger=place, method=method, allow_wide=True) as guard:
        say("open")
        taking = threading.Lock()

        def ask(count: int) -> None:
            with taking:
                batch = [asked(number, method) for number in itertools.islice(numbers, count)]
            digests = [digest_of(guard, each["expression"]) for each in batch]
            for digest, answer in zip(digests, guard.ask_many(batch), strict=True):
                say([digest, answer.value])

        def ask_on(thread: int) -> None:
            chance = random.Random(seed + thread)
            for _ in range(BATCHES):
                ask(chance.randint(1, 3))

        work: list[tuple[Callable[[int], None], int]]
        if step is None:
            work = [(ask_on, thread) for thread in range(THREADS)]
        else:
            ask(undone + 3)  # a step needs all done that the one before left undone
            work = [(ask, EACH)] * THREADS
            line: Any = guard.desk._line
            line._baton = {"holder": Busy()}
            arm(guard, step)
        for target, argument in work:
            threading.Thread(target=target, args=(argument,), daemon=True).start()
        if step is not None:
            while len(line._waiting) < THREADS:
                time.sleep(0.0005)
            line._baton["holder"].over = True
        while True:
            signal.pause()


def digest_of(guard: Any, text: str) -> str:
    return make_asked(text, guard.desk.engine.schema).queries[0].digest


@dataclass
class Harness:
    """Kills askers of one guard, and looks at the ledger after each."""

    data: str
    place: str
    method: str
    chance: random.Random
    released: dict[str, float] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """Of all questions in the ledger, by digest."""
    chain: list[Sealed] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)

    def begin(self) -> float:
        """Open the data, and return how long the threads take for a question each."""
        child, stream = self._start(None)
        self._hear(stream.readline())  # open
        self._hear(stream.readline())  # the first takes longer
        started = time.monotonic()
        for _ in range(3 * THREADS):
            self._hear(stream.readline())
        batch = (time.monotonic() - started) / 3
        os.kill(child, signal.SIGKILL)
        self._bury(child, stream)
        return batch

    def kill_within(self, seconds: float) -> None:
        """At a moment that is uniform over some time of asking."""
        child, stream = self._start(None)
        self._hear(stream.readline())  # open
        self._hear(stream.readline())  # and asking
        time.sleep(self.chance.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)
        paid, answered = self._bury(child, stream)
        self.found["kills at random"] += 1
        self.found["left a question paid for, not answered"] += paid > answered
        self.found["left an answer recorded, not released"] += answered > len(self.released)

    def kill_at(self, step: str) -> None:
        """At a named step of a group. What was asked before it has completed whatever there was."""
        child, stream = self._start(step)
        paid, answered = self._bury(child, stream)
        pays, answers = STEPS[step]
        assert paid - len(self.released) == THREADS * EACH * pays  # all of the group, or nothing
        assert answered - len(self.released) == THREADS * EACH * answers
        self.found[step] += 1

    def finish(self) -> None:
        """Complete what is left, and ask everything again: all is stored, and free."""
        before = len(self.chain)
        with afresh.open(self.data, ledger=self.place) as guard:
            pending = sum(record.value is None for record in guard.transcript.records)
            texts = [f"x < {number}" for number in self.numbers.values()]
            spent = guard.budget.spent
            answers = guard.ask_many(texts)
            assert [answer.charged for answer in answers] == [0] * len(texts)
            assert guard.budget.spent == spent == len(texts)
            digests = [digest_of(guard, text) for text in texts]
            outcome = verify(json.dumps(guard.receipt()))
            assert outcome.passed, str(outcome)
        for digest, answer in zip(digests, answers, strict=True):
            assert self.released.setdefault(digest, answer.value) == answer.value
        self._look()
        assert len(self.chain) == before + pending
        self.found["answers"] = len(texts)
        self.found["records"] = len(self.chain)

    def _start(self, step: str | None) -> tuple[int, TextIO]:
        out, into = os.pipe()
        undone = [number for digest, number in self.numbers.items() if digest not in self.released]
        numbers = itertools.chain(undone, itertools.count(max(self.numbers.values(), default=-1) + 1))
        seed = self.chance.getrandbits(32)
        child = os.fork()
        if not child:
            os.close(out)
            tempfile.tempdir = str(Path(self.data).parent)  # what the killed one leaves behind goes with the rest
            try:
                asker(
                    self.data, self.place, self.method, numbers, len(undone), step, lambda said: _say(into, said), seed
                )
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        os.close(into)
        return child, os.fdopen(out)

    def _hear(self, line: str) -> None:
        if line.endswith("\n"):  # or else the kill has cut it off
            said = json.loads(line)
            if isinstance(said, list):
                digest, value = said
                assert self.released.setdefault(digest, value) == value  # never another answer

    def _bury(self, child: int, stream: TextIO) -> tuple[int, int]:
        """Hear the last words, and look at the ledger."""
        with stream:
            for line in stream:
                self._hear(line)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        return self._look()

    def _look(self) -> tuple[int, int]:
        """Check everything that must be true after a kill; how many questions are paid for, and answered."""
        with closing(open_ledger(self.place)) as ledger:
            with ledger._journal.transaction(write=False) as transaction:
                (only,) = transaction.chains()
                terms = ledger._terms(transaction, only)  # verifies the chain
            chain, entries, spent = ledger.chain(terms), ledger.entries(terms), ledger.spent(terms)
        # Nothing was changed, dropped or moved, so nothing was unspent and no answer is lost.
        assert chain[: len(self.chain)] == self.chain
        self.chain = chain
        kinds = Counter(json.loads(record.text)["kind"] for record in chain)
        answered = [entry for entry in entries if entry.outcome is not None]
        assert kinds == Counter({"opened": 1, "planned": 1, "reserved": len(entries), "answered": len(answered)})
        assert len({entry.digest for entry in entries}) == len(entries) == spent.answers  # nothing was paid for twice
        self.numbers = {entry.digest: int(entry.text.rpartition(" ")[2]) for entry in entries}
        stored = {entry.digest: entry.outcome.value for entry in entries if entry.outcome is not None}
        missing = {d: v for d, v in self.released.items() if stored.get(d) != v}
        assert not missing, [(v, stored.get(d), [e for e in entries if e.digest == d]) for d, v in missing.items()]
        return len(entries), len(answered)


def _say(into: int, said: object) -> None:
    os.write(into, (json.dumps(said) + "\n").encode())


def run(place: str, method: str, kills: int, at_each_step: int, seed: int) -> dict[str, int]:
    """Kill, look, and say what was found."""
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "data.parquet")
        chance = random.Random(seed)
        pq.write_table(pa.table({"x": [chance.randrange(BUDGET) for _ in range(ROWS[method])]}), data)
        harness = Harness(data, place, method, chance)
        batch = harness.begin()
        for _ in range(kills):
            harness.kill_within(4 * batch)
        for step in STEPS:
            for _ in range(at_each_step):
                harness.kill_at(step)
        harness.finish()
    return dict(harness.found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ledger.kills")
    parser.add_argument("--backend", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--method", choices=list(ROWS), default="calibrated")
    parser.add_argument("--place", help="an empty place to use, instead of a new one")
    parser.add_argument("--kills", type=int, default=200, help="at random moments")
    parser.add_argument("--each", type=int, default=10, help="at each of the named steps")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with somewhere(options.backend, options.place) as place:
        print(json.dumps(run(place, options.method, options.kills, options.each, options.seed), indent=1))


if __name__ == "__main__":
    main()
