"""Several servers on one PostgreSQL ledger, killed at random moments while clients ask.

    python -m server.kills --clients 8 --questions 200 --kills 100

from the folder tests/ prints what was found. Afterwards: nothing was overspent, every answer that a client received is
in the ledger unchanged, and nobody got two answers to one question.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import afresh
from afresh.errors import ServiceError
from afresh.server.config import read_config
from afresh.server.store import store_of
from afresh.server.tokens import Tokens
from ledger.servers import running as postgres
from server.running import free_port, start, wait, write_data

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
    """Servers that pose as hosts; a killed one is started again."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder, self._config = folder, folder / "afresh.toml"
        self.ports = [free_port() for _ in range(count)]
        self._running: list[subprocess.Popen[str]] = [start(folder, self._config, port) for port in self.ports]
        for place, port in enumerate(self.ports):
            wait(self._running[place], f"http://127.0.0.1:{port}", folder)

    def url(self, place: int) -> str:
        return f"http://127.0.0.1:{self.ports[place]}"

    def kill(self, place: int) -> None:
        self._running[place].send_signal(signal.SIGKILL)
        self._running[place].wait()
        self._running[place] = start(self._folder, self._config, self.ports[place])
        wait(self._running[place], self.url(place), self._folder)

    def stop(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


def ask(hosts: Hosts, token: str, questions: list[str], chance: random.Random, got: list[tuple[str, Any]]) -> None:
    """Ask one question after the other of random hosts, until each is answered; some of them twice."""
    for question in questions:
        for _ in range(1 + (chance.random() < 0.3)):
            while True:
                try:
                    with afresh.connect(hosts.url(chance.randrange(len(hosts.ports))), token) as service:
                        answer = service.open("customers").ask(question)
                except ServiceError:
                    time.sleep(0.05)
                    continue
                got.append((question, [answer.value, answer.low, answer.high]))
                break


def run(folder: Path, clients: int, questions: int, kills: int, servers: int = 3, seed: int = 1) -> dict[str, int]:
    chance = random.Random(seed)
    write_data(folder, 2000)
    with postgres() as server:
        total = clients * questions
        (folder / "afresh.toml").write_text(CONFIG.format(ledger=server.empty(), questions=total))
        read = read_config(folder / "afresh.toml")
        hosts = Hosts(folder, servers)
        try:
            store = store_of(read.state, read.ledger)
            tokens = Tokens(store)
            got: list[tuple[str, Any]] = []
            threads = []
            for client in range(clients):
                # Half of the questions are everybody's, so that several ask for one at once.
                own = [f"tenure < {i} AND amount < {i if i % 2 else 1000 * (client + 1)}" for i in range(questions)]
                chance.shuffle(own)
                token = tokens.new(f"client{client}")
                arguments = (hosts, token, own, random.Random(chance.random()), got)
                threads.append(threading.Thread(target=ask, args=arguments))
            for thread in threads:
                thread.start()
            killed = 0
            while killed < kills and any(thread.is_alive() for thread in threads):
                time.sleep(chance.uniform(0, 0.5))
                hosts.kill(chance.randrange(servers))
                killed += 1
            for thread in threads:
                thread.join()
            found = {"kills": killed, **look(hosts, tokens, got)}
            store.close()
            return found
        finally:
            hosts.stop()


def look(hosts: Hosts, tokens: Tokens, got: list[tuple[str, Any]]) -> dict[str, int]:
    """What must be true after all that."""
    with afresh.connect(hosts.url(0), tokens.new("judge", "viewer")) as service:
        guard = service.open("customers")
        transcript, budget = guard.transcript, guard.budget
        assert afresh.receipts.verify(guard.receipt()).passed
    stored = {record.question: [record.value, record.low, record.high] for record in transcript}
    assert len(stored) == len(transcript) == budget.spent <= budget.questions  # paid for once each
    for question, answer in got:
        assert stored[question] == answer
    return {"answers received": len(got), "answers paid for": budget.spent, **Counter(unanswered=_open(transcript))}


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
