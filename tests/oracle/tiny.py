"""Worlds so small that the posterior law of the sample given a transcript is a finite sum. Imports no afresh."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Centre = Callable[[Array], Array]  # from the sample mean to what the noise is added to
Reference = Callable[["TinyWorld", Array, Centre], Array]  # centres without row i: (rounds, samples, rows)


@dataclass(frozen=True)
class TinyWorld:
    """A population of a few points, all samples of a few rows, and an analyst whose queries depend on answers."""

    seed: int
    weights: Array  # P
    samples: NDArray[np.int64]  # every sample, as indices of points: (points^rows, rows)
    tables: Array  # (rounds, 3, points): three queries a round, chosen by the last answer
    noises: Array  # (rounds, 3): their public noises

    @staticmethod
    def draw(seed: int, rows: int, points: int, rounds: int) -> TinyWorld:
        """A world from a seed; queries at the ends of [0, 1] are likely, so are rare points and small noises."""
        rng = np.random.default_rng(seed)
        weights = rng.dirichlet(np.full(points, 0.7))
        tables = np.clip(rng.uniform(-0.5, 1.5, (rounds, 3, points)), 0.0, 1.0)
        noises = np.exp(rng.uniform(np.log(0.08), np.log(1.0), (rounds, 3)))
        samples = np.array(list(itertools.product(range(points), repeat=rows)))
        return TinyWorld(seed, weights, samples, tables, noises)

    def choices(self, answers: Array) -> tuple[Array, Array]:
        """The queries (rounds, points) and noises that these answers lead to."""
        picks = [0, *(int(np.digitize(v, [0.4, 0.6])) for v in answers[:-1])]
        index = np.arange(len(answers))
        return self.tables[index, picks], self.noises[index, picks]

    def transcripts(self, count: int, centre: Centre = lambda m: m) -> Iterator[Array]:
        """Answers as they come, every other time with noise five times too large, to reach unlikely ones."""
        rng = np.random.default_rng(self.seed + 1)
        rows = self.samples.shape[1]
        for number in range(count):
            sample = rng.choice(self.weights.size, rows, p=self.weights)
            answers = np.zeros(0)
            for _ in self.tables:
                queries, noises = self.choices(np.append(answers, 0.0))
                noise = rng.standard_normal() * (5 if number % 2 else 1)
                answers = np.append(answers, centre(queries[-1][sample].mean(keepdims=True))[0] + noises[-1] * noise)
            yield answers

    def random_queries(self, count: int) -> Array:
        """Queries that nobody asked."""
        return np.random.default_rng(self.seed + 2).random((count, self.weights.size)).round(1)

    def sample_means(self, answers: Array) -> Array:
        """S[psi_j] of every sample: (rounds, samples)."""
        means: Array = self.choices(answers)[0][:, self.samples].mean(axis=2)
        return means

    def posterior(self, answers: Array, centre: Centre) -> Array:
        """Q_Y: the probability of every sample given the transcript."""
        noises = self.choices(answers)[1]
        residual = (answers[:, None] - centre(self.sample_means(answers))) / noises[:, None]
        with np.errstate(divide="ignore"):
            log = np.log(self.weights)[self.samples].sum(axis=1) - (residual**2).sum(axis=0) / 2
        law = np.exp(log - log.max())
        normal: Array = law / law.sum()
        return normal

    def prior(self) -> Array:
        """P^n."""
        prior: Array = self.weights[self.samples].prod(axis=1)
        return prior

    def divergence(self, posterior: Array) -> float:
        """KL(Q_Y || P^n)."""
        held = posterior > 0
        return float(posterior[held] @ np.log(posterior[held] / self.prior()[held]))

    def marginals(self, posterior: Array) -> Array:
        """The law of each row under Q_Y: (rows, points)."""
        return np.array(
            [np.bincount(column, weights=posterior, minlength=self.weights.size) for column in self.samples.T]
        )

    def expected_cost(self, posterior: Array, answers: Array, centre: Centre, reference: Reference) -> float:
        """E[X | Y] with X = sum_i h(ln(f/c_i)), the ratio taken from the densities themselves."""
        noises = self.choices(answers)[1][:, None]
        own = ((answers[:, None] - centre(self.sample_means(answers))) / noises) ** 2
        other = ((answers[:, None, None] - reference(self, answers, centre)) / noises[:, :, None]) ** 2
        ratio = (other - own[:, :, None]).sum(axis=0) / 2  # ln(f/c_i): (samples, rows)
        with np.errstate(over="ignore"):
            cost = (ratio + np.expm1(-ratio)).sum(axis=1)
        return float(posterior @ np.where(posterior > 0, cost, 0.0))


def half_reference(world: TinyWorld, answers: Array, centre: Centre) -> Array:
    """Section 9's reference: psi_j(S_i) replaced by 1/2."""
    values = world.choices(answers)[0][:, world.samples]
    return centre(values.mean(axis=2, keepdims=True) - (values - 0.5) / values.shape[2])


def without_row(world: TinyWorld, answers: Array, centre: Centre) -> Array:
    """Section 10's reference: the mean of the other rows."""
    values = world.choices(answers)[0][:, world.samples]
    return centre(np.clip((values.sum(axis=2, keepdims=True) - values) / (values.shape[2] - 1), 0.0, 1.0))
