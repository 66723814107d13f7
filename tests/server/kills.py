"""Several servers on one PostgreSQL ledger, killed at random moments while clients ask.

    python -m server.kills --clients 8 --questions 200 --kills 100

from the folder tests/ prints what was found. Afterwards: nothing was overspent, every answer that a client received is
in the ledger unchanged, nobody got two answers to one question, and what is counted against the caps of the clients'
tokens is what was paid for.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import afresh
from afresh.errors import BudgetExhausted, ServiceError
from afresh.server.config import read_config
from afresh.server.store import store_of
from afresh.server.tokens import Tokens
from ledger.servers import running as postgres
from server.running import free_port, wait, write_data
from server.warm import Warm

CONFIG = """
state = "state"
ledger = "{ledger}"
tick = 0
[limits]
requests = 1000000
[datasets.customers]
data = "customers.parquet"
questions = {questions}
"""


class Hosts:
    """Servers that pose as hosts. Each is killed at random moments and started again."""

    def __init__(self, folder: Path, count: int, kills: int, chance: random.Random) -> None:
        self._folder, self._most, self._warm = folder, kills, Warm(folder, folder / "afresh.toml")
        self.ports = [free_port() for _ in range(count)]
        self._counting, self.kills, self._finished = threading.Condition(), 0, threading.Event()
        for place in range(count):
            self._warm.start(self.ports[place])
        for place in range(count):
            self._wait(place)
        self._killers = [
            threading.Thread(target=self._kill, args=(place, random.Random(chance.random()))) for place in range(count)
        ]

    def url(self, place: int) -> str:
        return f"http://127.0.0.1:{self.ports[place]}"

    def _wait(self, place: int) -> None:
        wait(self._warm.process, self.url(place), self._folder)

    def begin(self) -> None:
        for killer in self._killers:
            killer.start()

    def _kill(self, place: int, chance: random.Random) -> None:
        while not self._finished.wait(chance.uniform(0, 2)):
            with self._counting:
                if self.kills >= self._most:
                    return
                self.kills += 1
            self._warm.start(self.ports[place])
            with self._counting:
                self._counting.notify_all()
            self._wait(place)

    def keep_pace(self, part: float) -> None:
        """Wait for this part of the kills, so that they fall while questions are asked."""
        with self._counting:
            while self.kills < part * self._most:
                self._counting.wait(1)

    def start_again(self) -> None:
        """Kill no more; one server starts once more, and so knows of all kills."""
        self._finished.set()
        for killer in self._killers:
            if killer.ident is not None:
                killer.join()
        self._warm.start(self.ports[0])
        self._wait(0)

    def stop(self) -> None:
        self._finished.set()
        for killer in self._killers:
            if killer.ident is not None:
                killer.join()
        self._warm.stop()


@dataclass
class Client:
    """Asks one question after the other of random hosts, until each is answered; some of them twice."""

    hosts: Hosts
    token: str
    questions: list[str]
    chance: random.Random
    got: list[tuple[str, Any]] = field(default_factory=list)
    guards: dict[str, afresh.Guard] = field(default_factory=dict)
    lost: int = 0
    """Requests that ended without an answer, after the client's own repeats."""
    refused: int = 0
    failure: BaseException | None = None

    def run(self) -> None:
        try:
            for number, question in enumerate(self.questions):
                self.hosts.keep_pace(number / len(self.questions))
                for _ in range(1 + (self.chance.random() < 0.3)):
                    try:
                        self.got.append((question, self.ask(question)))
                    except BudgetExhausted:
                        self.refused += 1
        except BaseException as failure:
            self.failure = failure
            raise

    def ask(self, question: str) -> list[float]:
        while True:
            url = self.hosts.url(self.chance.randrange(len(self.hosts.ports)))
            try:
                if url not in self.guards:
                    self.guards[url] = afresh.connect(url, self.token).open("customers")
                answer = self.guards[url].ask(question)
                return [answer.value, answer.low, answer.high]
            except ServiceError:
                self.lost += 1
                time.sleep(0.05)


def run(folder: Path, clients: int, questions: int, kills: int, servers: int = 3, seed: int = 1) -> dict[str, int]:
    """Ask and kill, and look at what is left; more figures than anybody asked for."""
    chance = random.Random(seed)
    write_data(folder, 2000)
    with postgres() as server:
        # Half of the questions are everybody's, so that several ask for one at once; the budget has not enough for all.
        budget = (clients * questions + questions) // 2 * 9 // 10
        (folder / "afresh.toml").write_text(CONFIG.format(ledger=server.empty(), questions=budget))
        read = read_config(folder / "afresh.toml")
        store = store_of(read.state, read.ledger)
        tokens, began = Tokens(store), time.monotonic()
        hosts = Hosts(folder, servers, kills, chance)
        try:
            asking = []
            for number in range(clients):
                own = [f"tenure < {i} AND amount < {i if i % 2 else 1000 * (number + 1)}" for i in range(questions)]
                chance.shuffle(own)
                token = tokens.new(f"client{number}", cap=10 * questions)
                asking.append(Client(hosts, token, own, random.Random(chance.random())))
            threads = [threading.Thread(target=each.run) for each in asking]
            for thread in threads:
                thread.start()
            hosts.begin()
            for thread in threads:
                thread.join()
            if failed := [each.failure for each in asking if each.failure is not None]:
                raise failed[0]
            told = {"kills": hosts.kills, "requests without an answer": sum(each.lost for each in asking)}
            told["refused, as the budget was spent"] = sum(each.refused for each in asking)
            got = [each for client in asking for each in client.got]
            return {**told, **look(hosts, tokens, got), "seconds": round(time.monotonic() - began)}
        finally:
            hosts.stop()
            store.close()


def look(hosts: Hosts, tokens: Tokens, got: list[tuple[str, Any]]) -> dict[str, int]:
    """What must be true after all that."""
    hosts.start_again()
    found = None
    while found is None:  # whoever was killed last may still be starting
        try:
            with afresh.connect(hosts.url(0), tokens.new("judge", "viewer")) as service:
                guard = service.open("customers")
                found = guard.transcript, guard.budget, guard.receipt()
        except ServiceError:
            time.sleep(0.2)
    transcript, budget, receipt = found
    assert afresh.receipts.verify(receipt).passed
    stored = {record.question: [record.value, record.low, record.high] for record in transcript}
    assert len(stored) == len(transcript) == budget.spent <= budget.questions  # paid for once each
    for question, answer in got:
        assert stored[question] == answer
    assert sum(each["spent"] for each in tokens.all()) == budget.spent
    told = {"answers received": len(got), "budget": budget.questions, "answers paid for": budget.spent}
    return {**told, "paid for, not answered": _open(transcript)}


def _open(transcript: afresh.Transcript) -> int:
    return sum(record.value is None for record in transcript)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m server.kills")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(Path(folder), given.clients, given.questions, given.kills, seed=given.seed), indent=1))


if __name__ == "__main__":
    main()
