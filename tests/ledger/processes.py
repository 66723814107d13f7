"""Real processes for `test_processes.py`: `processes.py race|create|crash ...` prints JSON lines.

A file of its own because a child must start, and fork, without the test runner's threads around it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

from afresh.errors import BudgetExhausted
from afresh.ledger import Question, Terms
from afresh.ledger.sqlite import SqliteLedger

CHARGE = 0.1


def opened(ledger: SqliteLedger, questions: int, plan: str) -> Terms:
    return ledger.open("data", plan=plan, rows=100, questions=questions, information=questions * CHARGE)


def race(path: str, worker: str, start: str, asked: str, questions: str) -> None:
    """Ask `asked` questions from `start` (a time) on, half of them the same as all other workers."""
    time.sleep(max(0.0, float(start) - time.time()))
    ledger = SqliteLedger(path)
    terms = opened(ledger, int(questions), plan=worker)
    print(json.dumps({"plan": terms.plan, "seed": terms.seed}))
    for i in random.sample(range(int(asked)), int(asked)):
        name = f"shared {i}" if i % 2 else f"{worker} {i}"
        try:
            (entry,) = ledger.reserve(terms, [Question(name, name, "{}", CHARGE)])
        except BudgetExhausted:
            print(json.dumps({"refused": name}))
            continue
        stored = ledger.record(terms, entry, random.random())
        print(json.dumps({"digest": stored.digest, "number": stored.number, "released": stored.released}))


def create(directory: str, rounds: str) -> None:
    """Let six children create one ledger at once, many times; print the terms each got, by round."""
    for round_ in range(int(rounds)):
        out, into = os.pipe()
        begin = time.monotonic() + 0.02
        children = []
        for worker in range(6):
            child = os.fork()
            if not child:
                while time.monotonic() < begin:
                    pass
                try:
                    ledger = SqliteLedger(f"{directory}/{round_}/ledger.sqlite")
                    said = opened(ledger, 1, plan=f"{worker}").seed
                    ledger.close()
                except BaseException as error:
                    said = repr(error)
                os.write(into, f"{said}\n".encode())
                os._exit(0)
            children.append(child)
        os.close(into)
        with os.fdopen(out) as stream:
            print(json.dumps(stream.read().splitlines()))
        for child in children:
            os.waitpid(child, 0)


def crash(path: str, kills: str, questions: str, seed: str) -> None:
    """Kill a child `kills` times, then let one finish; print what each released, and the ledger after it."""
    chance = random.Random(seed)
    ledger = SqliteLedger(path)  # stays open in the parent, and is used by every second child
    started = time.monotonic()
    ledger.open("to measure", plan="{}", rows=1, questions=1, information=1.0)
    commit = time.monotonic() - started
    terms = opened(ledger, int(questions), plan="{}")
    for round_ in range(int(kills) + 1):
        last = round_ == int(kills)
        suicide = not last and round_ % 3 == 0
        begun = chance.randrange(2)
        out, into = os.pipe()
        child = os.fork()
        if not child:
            os.close(out)
            mine = ledger if round_ % 2 else SqliteLedger(path)
            _answer(mine, terms, int(questions), into, None if last else begun, suicide)
            os._exit(0)
        os.close(into)
        with os.fdopen(out) as stream:
            lines = list(iter(stream.readline, "now\n")) if not (last or suicide) else []
            if not (last or suicide):
                time.sleep(chance.uniform(0.0, 5 * commit))
                os.kill(child, signal.SIGKILL)
            released = [json.loads(line) for line in lines + stream.readlines()]
        _, status = os.waitpid(child, 0)
        fresh = SqliteLedger(path)
        entries = [[e.number, e.digest, e.charge, e.released] for e in fresh.entries(terms)]
        fresh.close()
        print(json.dumps({"status": status, "suicide": suicide, "released": released, "entries": entries}))


def _answer(ledger: SqliteLedger, terms: Terms, questions: int, into: int, begun: int | None, suicide: bool) -> None:
    """Answer all; or `begun` new pairs, then say "now" and wait for death after three more at most."""
    new = 0
    for i in range(0, questions, 2):
        asked = [Question(f"q{j}", f"q{j}", "{}", CHARGE) for j in (i, i + 1)]
        entries = ledger.reserve(terms, asked)
        if begun is not None and entries[0].released is None:
            if new == begun and suicide:
                os.kill(os.getpid(), signal.SIGKILL)  # the worst moment: paid, drawn, not recorded
            if new == begun:
                os.write(into, b"now\n")
            if new == begun + 3:
                signal.pause()
            new += 1
        stored = ledger.record_many(terms, [(entry, random.random()) for entry in entries])
        for entry in stored:
            os.write(into, (json.dumps([entry.digest, entry.released]) + "\n").encode())


if __name__ == "__main__":
    if sys.argv[1] == "race":
        race(*sys.argv[2:])
    elif sys.argv[1] == "create":
        create(*sys.argv[2:])
    else:
        crash(*sys.argv[2:])
