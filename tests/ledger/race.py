"""Many processes on one guard, for a budget that runs out in the middle.

    python -m ledger.race --backend sqlite|postgres

from the folder tests/ runs 8 processes with 200 questions each, half of them the same, and prints what was found.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from afresh.errors import BudgetExhausted, PlanMismatch
from afresh.ledger import Entry, Ledger, Limits, Question, Terms, open_ledger
from ledger.asking import DATA, released, result

CHARGE = 0.1


def opened(ledger: Ledger, budget: int, plan: str) -> Terms:
    return ledger.open(DATA, Limits({"method": plan}, budget, budget, budget * CHARGE))


def reserved(ledger: Ledger, terms: Terms, name: str, worker: int) -> tuple[Terms, Entry]:
    """Every process comes with a plan of its own; when another's was fixed first, that one is in force."""
    try:
        return terms, ledger.reserve(terms, [Question(name, name, CHARGE)], f"{worker}")[0]
    except PlanMismatch:
        fixed = ledger.find(DATA)
        assert fixed is not None
        assert fixed.fixed
        return fixed, ledger.reserve(fixed, [Question(name, name, CHARGE)], f"{worker}")[0]


def ask_all(place: str, worker: int, asked: int, budget: int, begin: float) -> dict[str, Any]:
    """One process: every second question is everybody's, and all ask those in the same order, so at once."""
    time.sleep(max(0.0, begin - time.monotonic()))
    with closing(open_ledger(place)) as ledger:
        terms = opened(ledger, budget, plan=f"{worker}")
        paid, refused, seen = [], [], []
        for i in range(asked):
            name = f"shared {i}" if i % 2 else f"{worker} {i}"
            try:
                terms, entry = reserved(ledger, terms, name, worker)
            except BudgetExhausted:
                refused.append(name)
                continue
            paid += [name] * entry.new
            stored = ledger.record(terms, entry, result(random.random()))
            seen.append([name, stored.number, released(stored)])
    return {"plan": terms.limits.plan["method"], "seed": terms.seed, "paid": paid, "refused": refused, "seen": seen}


def race(place: str, processes: int, asked: int, budget: int) -> list[dict[str, Any]]:
    """What each process saw. Call it where no other threads are: it forks."""
    begin = time.monotonic() + 0.05
    ends = []
    for worker in range(processes):
        out, into = os.pipe()
        if not os.fork():
            try:
                with os.fdopen(into, "w") as stream:
                    json.dump(ask_all(place, worker, asked, budget, begin), stream)
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        os.close(into)
        ends.append(out)
    said = []
    for out in ends:
        with os.fdopen(out) as stream:
            said.append(json.loads(stream.read() or "null"))
    for _ in ends:
        os.wait()
    return said


def check(place: str, said: list[dict[str, Any]], asked: int, budget: int) -> dict[str, int]:
    """Assert what a race must not break; return what it was like."""
    assert len({(each["plan"], each["seed"]) for each in said}) == 1  # opening and plan were raced for, too
    assert all(len(each["refused"]) + len(each["seen"]) == asked for each in said)
    with closing(open_ledger(place)) as ledger:
        terms = ledger.find(DATA)  # verifies the chain
        assert terms is not None
        entries, spent = ledger.entries(terms), ledger.spent(terms)
    assert [entry.number for entry in entries] == list(range(1, budget + 1))
    assert spent.information <= terms.limits.information * (1 + 1e-9)
    # Exactly one paid for each question, whoever asked it at the same time.
    payers = Counter(name for each in said for name in each["paid"])
    assert payers == {entry.digest: 1 for entry in entries}
    # Every answer that anyone saw is the stored one, and every stored one was seen.
    stored = {entry.digest: (entry.number, released(entry)) for entry in entries}
    seen = [(name, (number, released)) for each in said for name, number, released in each["seen"]]
    assert dict(seen) == stored
    assert len(set(seen)) == len(stored)
    refused = {name for each in said for name in each["refused"]}
    assert refused
    assert refused.isdisjoint(stored)
    at_once = Counter(name for name, _ in seen)
    assert max(at_once.values()) == len(said)  # they did meet, or this shows nothing
    return {
        "answers": len(stored),
        "asked by all": sum(n == len(said) for n in at_once.values()),
        "refused": len(refused),
    }


@contextmanager
def somewhere(backend: str, place: str | None = None) -> Iterator[str]:
    """The place that is given, or a new one."""
    if place is not None:
        yield place
    elif backend == "postgres":
        from ledger.servers import running

        with running(durable=True) as server:
            yield server.empty()
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "new" / "ledger.sqlite")  # the folder is raced for, too


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ledger.race")
    parser.add_argument("--backend", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--place", help="an empty place to use, instead of a new one")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--creations", type=int, default=0, help="only race for so many new files in a given folder")
    options = parser.parse_args()
    for i in range(options.creations):
        said = race(f"{options.place}/{i}/ledger.sqlite", options.processes, 0, 1)
        assert len({each["seed"] for each in said}) == 1, said
    if options.creations:
        print(options.creations)
        return
    with somewhere(options.backend, options.place) as place:
        started = time.monotonic()
        said = race(place, options.processes, options.questions, options.budget)
        seconds = time.monotonic() - started
        found: dict[str, float] = dict(check(place, said, options.questions, options.budget))
        found["seconds"] = round(seconds, 1)
        found["client CPU seconds"] = round(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]), 1)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
