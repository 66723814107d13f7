"""Writes the examples of the OpenAPI document, one of each kind of result, as guards over made-up rows give them.

python -m server.examples
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import afresh
from afresh import statistics
from afresh.judging.judge import open_judge
from afresh.judging.settings import read_settings
from afresh.results.fitted import Task
from afresh.server import schemas
from afresh.wire.results import RESULTS, to_json
from judging.made import PERFECT, POOR, candidate, make
from server.running import write_data


def made(folder: Path) -> dict[str, Any]:
    write_data(folder)
    data, held = folder / "customers.parquet", folder / "churn.parquet"
    good, bad = (lambda X: X["x0"] > 0), (lambda X: X["x1"] > 0)
    opened: dict[str, Any] = {"questions": 400, "analyst": "ann", "allow_wide": True}
    with afresh.open(data, method="symmetrized", ledger=folder / "a", **opened) as guard:
        results = [
            guard.price("tenure < 12"),
            guard.ask("churned AND tenure < 12"),
            guard.measure(statistics.Histogram("tenure", (0, 60, 120))),
            guard.fit(Task("linear", ("tenure",), "amount", (0, 120), None, 3, 0.0, target=(0, 500))),
            guard.budget,
            guard.transcript,
            guard.transcript.records[0],
        ]
    with afresh.holdout(held, label="churned", method="checked", ledger=folder / "b", **opened) as holdout:
        results += [
            holdout.compare(good, bad, names=("good", "bad")),
            holdout.compare(good, good, names=("good", "same")),
            holdout.best_of([good, bad], names=["good", "bad"]),
            holdout.claim(good, better_than=bad, names=["good", "bad"]),
            holdout.contest([good, bad], names=["good", "bad"], bins=4),
        ]
        board = afresh.board(holdout, "spring", keep=folder / "spring")
        results += [board.submit("good", good), board.submit("bad", bad), board.table()]
    with open_judge(read_settings(make(folder))) as judge:
        poor, perfect = (
            judge.read(candidate(folder, text, name)) for text, name in ((POOR, "a.py"), (PERFECT, "b.py"))
        )
        results += [judge.check(), judge.try_open(poor), judge.propose(perfect), judge.score(poor)]
        results += [judge.compare(poor, perfect), judge.exam(perfect)]
    found = {type(each).__name__: to_json(each) for each in results}
    found["Tried"]["scores"] = dict([*found["Tried"]["scores"].items()][:2])
    assert found.keys() <= RESULTS.keys()
    found["Transcript"] |= {"records": found["Transcript"]["records"][:1], "total": 1, "next": None}
    found["Transcript"].pop("questions")
    return dict(sorted(found.items()))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(schemas.__file__).with_name("examples.json")
        place.write_text(json.dumps(made(Path(folder)), indent=1) + "\n")


if __name__ == "__main__":
    main()
