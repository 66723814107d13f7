"""Flipped bits and lost ends: whatever happens to a ledger's file, no guard is forgotten and no answer changes.

    python -m ledger.flips --flips 10000

from the folder tests/ prints what was found. Each trial flips one random bit of a ledger with three guards, or cuts the
file off at a random place, and then uses each of its guards. Every use must be refused with a `LedgerError` or give
what it gave before; anything else is "wrong".
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afresh.engines.identity import Identity
from afresh.errors import LedgerError
from afresh.ledger import Ledger, Limits, Outside, Question, Statement, Terms, open_ledger
from afresh.ledger.known import plain
from afresh.ledger.sqlite import SqliteJournal
from ledger.asking import result

DATA = [plain(name, 100) for name in ("first", "second", "third")]
OTHER = plain("other", 100)
LIMITS = Limits(plan={"k": 1}, questions=20, answers=30, information=20.0)
KNOWN, PENDING, NEW = (Question(f"digest of {name}", name, 1.0) for name in ("known", "pending", "new"))


@dataclass(frozen=True)
class Damage:
    """One flipped bit, or everything from a byte on lost."""

    byte: int
    bit: int | None = None

    def __call__(self, content: bytes) -> bytes:
        if self.bit is None:
            return content[: self.byte]
        damaged = bytearray(content)
        damaged[self.byte] ^= 1 << self.bit
        return bytes(damaged)


def build(path: Path) -> None:
    """Three guards, with everything a guard may hold."""
    with closing(open_ledger(path)) as ledger:
        for i, data in enumerate(DATA):
            terms = ledger.open(data, LIMITS, analyst="steward")
            for name in ["known", *map(str, range(i))]:
                (entry,) = ledger.reserve(terms, [Question(f"digest of {name}", name, 1.0)], "ada")
                ledger.record(terms, entry, result(i / 8))
            ledger.reserve(terms, [PENDING], "bob")
            ledger.charge(terms, Outside("a mean in a report", {"noise_sd": 0.1}, 1.5, answers=1), "steward")
            ledger.divide(terms, {"ada": 8, "bob": 4}, "steward")
            ledger.state(terms, [Statement("twice that", "double", {}, (1,), (0.0, 2.0), 1.0, 0.5, 1.5)], "ada")


def told(ledger: Ledger, terms: Terms) -> Any:
    """Everything a guard says about itself."""
    spent = [ledger.spent(terms, analyst) for analyst in (None, "ada", "bob", "eve")]
    chain = ledger.chain(terms)
    return terms, ledger.entries(terms), ledger.stated(terms), spent, ledger.shares(terms), chain


@dataclass(frozen=True)
class Trials:
    """A ledger, what its guards say, and a place for damaged copies of it."""

    content: bytes
    expected: tuple[Any, ...]
    copy: Path

    def run(self, damage: Damage) -> str:
        """What became of one damage: "refused", "harmless", or "wrong" and how."""
        self.copy.write_bytes(damage(self.content))
        outcomes = Counter(self._use(use) for use in range(4))
        for path in self.copy.parent.iterdir():
            path.unlink()
        wrong = [outcome for outcome in outcomes if outcome.startswith("wrong")]
        return wrong[0] if wrong else "refused" if outcomes["refused"] else "harmless"

    def _ledger(self) -> Ledger:
        return Ledger(SqliteJournal(self.copy, busy_seconds=0.2))  # nobody else is there to wait for

    def _use(self, use: int) -> str:
        try:
            with closing(self._ledger()) as ledger:
                if use == 3:
                    ledger.open(OTHER, LIMITS)  # a new guard may be made, as long as the others stay what they are
                    assert [ledger.find(data) for data in DATA[:1]] == [self.expected[0][0]]
                else:
                    self._ask(ledger, DATA[use], self.expected[use])
            return "harmless"
        except LedgerError:
            return "refused"
        except Exception as error:
            return f"wrong: {error!r}"

    def _ask(self, ledger: Ledger, data: Identity, expected: Any) -> None:
        terms = ledger.find(data)
        assert terms is not None, "never seen"
        assert told(ledger, terms) == expected, "it says something else"
        assert ledger.open(data, LIMITS) == terms, "opened as something else"
        before = expected[1]
        entries = ledger.reserve(terms, [KNOWN, PENDING, NEW], "ada")
        assert entries[:2] == [before[0], before[-1]], "known questions are others"
        assert [entry.new for entry in entries] == [False, False, True], "paid twice"
        assert entries[2].number == len(before) + 1, "a number of the past"
        with closing(self._ledger()) as again:
            after = again.find(data)
            assert after == terms, "lost by writing"
            assert again.entries(after) == [*before, entries[2]], "lost by writing"


@contextmanager
def trials() -> Iterator[Trials]:
    """In memory where there is such a folder: what is tested is no disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        path = Path(folder) / "ledger.sqlite"
        build(path)
        assert os.listdir(folder) == ["ledger.sqlite"]  # nothing else can be damaged
        with closing(open_ledger(path)) as ledger:
            found = [ledger.find(data) for data in DATA]
            expected = tuple(told(ledger, terms) for terms in found if terms is not None)
        (Path(folder) / "copies").mkdir()
        yield Trials(path.read_bytes(), expected, Path(folder) / "copies" / "ledger.sqlite")


def random_damage(chance: random.Random, size: int) -> Damage:
    """A flip, or now and then a lost end."""
    return Damage(chance.randrange(size), None if chance.random() < 0.05 else chance.randrange(8))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ledger.flips")
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance, found = random.Random(options.seed), Counter[str]()
    with trials() as harness:
        for i in range(options.flips):
            damage = random_damage(chance, len(harness.content))
            outcome = harness.run(damage)
            found[outcome.split(":")[0]] += 1
            if outcome.startswith("wrong"):
                print(damage, outcome, file=sys.stderr)
            if sys.stderr.isatty() and i % 100 == 0:
                print(f"\r{i:,} of {options.flips:,}", end="", file=sys.stderr)
    print(json.dumps({"flips and cuts": options.flips, **dict(sorted(found.items()))}))


if __name__ == "__main__":
    main()
