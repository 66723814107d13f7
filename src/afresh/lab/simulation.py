"""Repeats of one mechanism against one analyst: seeded, in parallel, resumable, kept as Parquet.

A repeat is one row of the result: how many intervals missed, how wrong the worst and the last answer were, how wide
the intervals. Its seed is a child of the trial's, so any repeat can be run again alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from afresh.errors import InvalidArgument, MissingExtra
from afresh.lab.analysts import ANALYSTS, Start, World
from afresh.lab.mechanisms import MECHANISMS, Make
from afresh.lab.population import POPULATIONS, Population, Question, Universe, evaluate
from afresh.mechanisms.session import Answers, Floats, Interactive

REPEATS_A_PART = 25
_MOST_VALUES = 2**22  # of one evaluation; larger batches of questions are cut

Columns = dict[str, list[float]]


@dataclass(frozen=True)
class Trial:
    """What is repeated. Mechanism, analyst and population are names of the lab's, or your own."""

    mechanism: str | Make
    analyst: str | Start
    population: str | Population
    n: int
    k: int
    failure: float = 0.05
    seed: int = 2018

    @property
    def names(self) -> dict[str, str]:
        """How tables call the three."""
        return {
            "mechanism": _name(self.mechanism),
            "analyst": _name(self.analyst),
            "population": self.population if isinstance(self.population, str) else self.population.name,
        }

    def resolved(self) -> tuple[Interactive, Start, Population]:
        """The three themselves."""
        make: Make = _choose("mechanism", self.mechanism, MECHANISMS)
        start: Start = _choose("analyst", self.analyst, ANALYSTS)
        population: Population = _choose("population", self.population, POPULATIONS)
        if self.analyst == "reconstructing":  # needs a list of rows that can be told apart
            population = Universe("list of rows", self.n)
        return make(self.n, self.k, self.failure), start, population


def _name(thing: Any) -> str:
    return thing if isinstance(thing, str) else getattr(thing, "__name__", type(thing).__name__)


def _choose(kind: str, wanted: Any, known: dict[str, Any]) -> Any:
    if not isinstance(wanted, str):
        return wanted
    if wanted not in known:
        raise InvalidArgument(f"{kind} == {wanted!r}, must be one of {', '.join(known)}.")
    return known[wanted]


def run(trial: Trial, repeats: Iterable[int]) -> Columns:
    """The given repeats, here and now."""
    mechanism, start, population = trial.resolved()
    rows = [_repeat(trial, mechanism, start, population, number) for number in repeats]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _repeat(
    trial: Trial, mechanism: Interactive, start: Start, population: Population, number: int
) -> dict[str, float]:
    seeds = np.random.SeedSequence([trial.seed, number]).spawn(3)
    of_sample, of_noise, of_analyst = (np.random.Generator(np.random.SFC64(seed)) for seed in seeds)
    sample = population.draw(trial.n, of_sample)
    session = mechanism.start(of_noise)
    analyst = start(World(population, trial.n, trial.k), of_analyst)
    heard: list[Answers] = []
    truths: list[float] = []
    while questions := analyst.ask():
        if len(truths) + len(questions) > trial.k:
            raise InvalidArgument(f"{_name(trial.analyst)} asked more than the {trial.k} questions it was given.")
        new = [session.answer(evaluate(batch, sample)) for batch in _batches(questions, trial.n)]
        truths += [question.truth(population) for question in questions]
        heard += new
        analyst.hear(np.concatenate([answers.value for answers in new]))
    value, low, high = (np.concatenate([getattr(a, name) for a in heard]) for name in ("value", "low", "high"))
    truth = np.array(truths)
    if getattr(mechanism, "best_so_far", False):  # what a leaderboard speaks about
        truth = np.maximum.accumulate(truth)
    return {"repeat": number, "answers": truth.size} | _summary(value, low, high, truth)


def _batches(questions: Sequence[Question], n: int) -> Iterable[Sequence[Question]]:
    size = max(_MOST_VALUES // n, 1)
    return (questions[i : i + size] for i in range(0, len(questions), size))


def _summary(value: Floats, low: Floats, high: Floats, truth: Floats) -> dict[str, float]:
    error, width = value - truth, (high - low) / 2
    return {
        "misses": int(((truth < low) | (truth > high)).sum()),
        "worst_error": float(np.abs(error).max()),
        "root_mean_square_error": float(np.sqrt(np.mean(error**2))),
        "last_error": float(error[-1]),
        "mean_half_width": float(width.mean()),
        "largest_half_width": float(width.max()),
        "last_value": float(value[-1]),
        "last_truth": float(truth[-1]),
    }


def simulate(
    trial: Trial,
    repeats: int,
    folder: Path | None = None,
    *,
    processes: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Columns:
    """`repeats` repeats in parts. With a folder, finished parts are kept there as Parquet and not run again."""
    parts = [range(i, min(i + REPEATS_A_PART, repeats)) for i in range(0, repeats, REPEATS_A_PART)]
    files = [None if folder is None else folder / _file_name(trial, part) for part in parts]
    done: dict[int, Columns] = {i: _read(f) for i, f in enumerate(files) if f is not None and f.exists()}
    todo = [i for i in range(len(parts)) if i not in done]
    if progress is not None and done:
        progress(sum(len(parts[i]) for i in done))

    def finish(index: int, columns: Columns) -> None:
        done[index] = columns
        file = files[index]
        if file is not None:
            _write(file, trial, columns)
        if progress is not None:
            progress(len(parts[index]))

    if processes == 1:
        for i in todo:
            finish(i, run(trial, parts[i]))
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
            for i, columns in zip(todo, pool.map(run, [trial] * len(todo), [parts[i] for i in todo]), strict=True):
                finish(i, columns)
    names = done[0]
    return {name: [x for i in range(len(parts)) for x in done[i][name]] for name in names}


def _one_thread() -> None:
    """Workers share the cores already."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"


def _file_name(trial: Trial, part: range) -> str:
    settings = repr((sorted(trial.names.items()), trial.n, trial.k, trial.failure, trial.seed, part.start, part.stop))
    digest = hashlib.sha256(settings.encode()).hexdigest()[:12]
    return f"{'-'.join(trial.names.values())}-{part.start}-{digest}.parquet"


def _write(file: Path, trial: Trial, columns: Columns) -> None:
    arrow, parquet = _arrow()
    file.parent.mkdir(parents=True, exist_ok=True)
    constants: dict[str, Any] = {
        **trial.names,
        "n": trial.n,
        "k": trial.k,
        "failure": trial.failure,
        "seed": trial.seed,
    }
    size = len(columns["repeat"])
    table = arrow.table({name: [value] * size for name, value in constants.items()} | columns)
    half = file.with_suffix(".part")
    parquet.write_table(table, half)
    half.replace(file)  # a part is there as a whole or not at all


def _read(file: Path) -> Columns:
    _, parquet = _arrow()
    table = parquet.read_table(file)
    return {name: table[name].to_pylist() for name in table.column_names if name not in _CONSTANTS}


_CONSTANTS = ("mechanism", "analyst", "population", "n", "k", "failure", "seed")


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "frames") from None
    return pyarrow, pyarrow.parquet
