"""Repeats of one mechanism against one analyst: seeded, in parallel, resumable, kept as Parquet.

A repeat is one row of the result: how many intervals missed, how wrong the worst and the last answer were, and how wide
the intervals were. Its seed is a child of the trial's, so any repeat can be run again on its own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.lab.analysts import Start, World, find, find_analyst
from afresh.lab.mechanisms import MECHANISMS, Make
from afresh.lab.population import POPULATIONS, Coordinates, Population, Question, evaluate
from afresh.lab.session import Answers, AtOnce, Floats, Interactive

REPEATS_A_PART = 25
_MOST_VALUES = 2**22  # the most per evaluation; larger batches of questions are split

Columns = dict[str, list[float]]


@dataclass(frozen=True)
class Trial:
    """What is repeated. Mechanism, analyst and population are the lab's, by name, or your own.

    Args:
        mechanism: A name of `MECHANISMS`, or a function of rows, questions and failure that makes one.
        analyst: A name of `ANALYSTS`, or a function of a world and a generator that makes one.
        population: A name of `POPULATIONS`, or a population.
        n: The rows of every sample.
        k: The most questions of a conversation.
        failure: The probability with which any interval of a conversation may miss.
        seed: The seed of everything random; trials with the same seed and population use the same samples.
    """

    mechanism: str | Make
    analyst: str | Start
    population: str | Population
    n: int
    k: int
    failure: float = 0.05
    seed: int = 2018

    def __post_init__(self) -> None:
        """Check the numbers."""
        checks.whole("n", self.n, 1)
        checks.whole("k", self.k, 1)
        checks.between_0_and_1("failure", self.failure)
        checks.whole("seed", self.seed, 0, 2**64)

    @property
    def names(self) -> dict[str, str]:
        """The names of the three in tables."""
        return {"mechanism": _name(self.mechanism), "analyst": _name(self.analyst), "population": self._population.name}

    @property
    def _start(self) -> Start:
        return find_analyst(self.analyst) if isinstance(self.analyst, str) else self.analyst

    @property
    def _population(self) -> Population:
        wanted = self.population
        chosen = find("population", wanted, POPULATIONS) if isinstance(wanted, str) else wanted
        own: Callable[[int, Population], Population] | None = getattr(self._start, "own_population", None)
        return chosen if own is None else own(self.n, chosen)

    def resolved(self) -> tuple[Interactive, Start, Population]:
        """The three themselves; an analyst that needs its own population brings it along."""
        make = find("mechanism", self.mechanism, MECHANISMS) if isinstance(self.mechanism, str) else self.mechanism
        return make(self.n, self.k, self.failure), self._start, self._population


def _name(thing: Any) -> str:
    return thing if isinstance(thing, str) else getattr(thing, "__name__", type(thing).__name__)


def run(trial: Trial, repeats: Iterable[int]) -> Columns:
    """Run the given repeats, here and now.

    Args:
        trial: What is repeated.
        repeats: The numbers of the repeats; each has its own random numbers, whatever else is run.

    Returns:
        A column for each figure of a conversation, with a value for each repeat.
    """
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
    vectors = session if isinstance(session, AtOnce) else None
    world = World(population, trial.n, trial.k, int if vectors is None else vectors.price)
    analyst = start(world, of_analyst)
    if hasattr(analyst, "look"):  # it sees the open rows in full
        opened = getattr(mechanism, "open_rows", 0)
        analyst.look(lambda question: question.values(sample)[:opened])
    heard: list[Answers] = []
    truths: list[float] = []
    spent = 0
    while questions := analyst.ask():
        at_once = isinstance(questions, Coordinates)
        spent += world.price(len(questions)) if at_once else len(questions)
        if spent > trial.k:
            raise InvalidArgument(f"{_name(trial.analyst)} asked more than the {trial.k} questions it was given.")
        if at_once and vectors is not None:
            new = [vectors.answer_at_once(evaluate(questions, sample))]
        else:
            new = [session.answer(evaluate(batch, sample)) for batch in _batches(questions, trial.n)]
        truths += [question.truth(population) for question in questions]
        heard += new
        analyst.hear(np.concatenate([answers.value for answers in new]))
    value, low, high = (np.concatenate([getattr(a, name) for a in heard]) for name in ("value", "low", "high"))
    truth = np.array(truths)
    if getattr(mechanism, "best_so_far", False):  # what a leaderboard reports
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
    trials: Sequence[Trial],
    repeats: int,
    folder: Path | None = None,
    *,
    processes: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Columns]:
    """Run `repeats` repeats of every trial, in parts. Parts that a folder already holds are read, not run again.

    Args:
        trials: What is repeated.
        repeats: How often each trial is repeated.
        folder: Where finished parts are kept; None keeps nothing.
        processes: How many worker processes; 1 runs everything here.
        progress: Called with the number of repeats that were finished since the last call.

    Returns:
        The columns of every trial, in order.

    Raises:
        InvalidArgument: Fewer than one repeat or process.
    """
    checks.whole("repeats", repeats, 1)
    checks.whole("processes", processes, 1)
    ranges = [range(i, min(i + REPEATS_A_PART, repeats)) for i in range(0, repeats, REPEATS_A_PART)]
    parts = [_Part(trial, numbers, folder) for trial in trials for numbers in ranges]
    done = {part: part.read() for part in parts if part.exists()}
    todo = [part for part in parts if part not in done]
    if progress is not None:
        progress(sum(len(part.repeats) for part in done))
    with _runner(processes) as each:
        for part, columns in zip(todo, each(_run_part, todo), strict=True):
            done[part] = columns
            if progress is not None:
                progress(len(part.repeats))
    return [_joined([done[_Part(trial, numbers, folder)] for numbers in ranges]) for trial in trials]


@contextmanager
def _runner(processes: int) -> Iterator[Callable[..., Iterable[Columns]]]:
    if processes == 1:
        yield map
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        yield pool.map


def _joined(parts: list[Columns]) -> Columns:
    return {name: [x for part in parts for x in part[name]] for name in parts[0]}


@dataclass(frozen=True)
class _Part:
    """Some repeats of a trial, and the file that keeps them."""

    trial: Trial
    repeats: range
    folder: Path | None

    @property
    def file(self) -> Path:
        """Named after everything that decides its content."""
        assert self.folder is not None
        trial = self.trial
        settings = (sorted(trial.names.items()), trial.n, trial.k, trial.failure, trial.seed, self.repeats)
        digest = hashlib.sha256(repr(settings).encode()).hexdigest()
        return self.folder / f"{'-'.join(trial.names.values())}-{trial.n}-{trial.k}-{digest}.parquet".replace(" ", "-")

    def exists(self) -> bool:
        """Whether it was run and kept."""
        return self.folder is not None and self.file.exists()

    def read(self) -> Columns:
        """What was kept."""
        import pyarrow.parquet as parquet

        table = parquet.read_table(self.file)
        return {name: table[name].to_pylist() for name in table.column_names if name not in _CONSTANTS}

    def write(self, columns: Columns) -> None:
        """Keep it, as a whole or not at all."""
        import pyarrow as arrow
        import pyarrow.parquet as parquet

        self.file.parent.mkdir(parents=True, exist_ok=True)
        trial = self.trial
        constants = trial.names | {"n": trial.n, "k": trial.k, "failure": trial.failure, "seed": trial.seed}
        table = arrow.table({name: [value] * len(self.repeats) for name, value in constants.items()} | columns)
        half = self.file.with_suffix(".part")
        parquet.write_table(table, half)
        half.replace(self.file)


def _run_part(part: _Part) -> Columns:
    columns = run(part.trial, part.repeats)
    if part.folder is not None:
        part.write(columns)
    return columns


def _one_thread() -> None:
    """Workers share the cores already."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"


_CONSTANTS = ("mechanism", "analyst", "population", "n", "k", "failure", "seed")
