"""Draws the figures of docs/paper/generalization.md: python docs/figures/generalization.py."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from afresh.theory.information import (
    correct_pvalue,
    event_probability,
    log_threshold,
    prob_gen,
    rogers,
    russo_zou,
)
from afresh.theory.paper.generalization import MainTheorem
from afresh.theory.privacy import calibrated_epsilon, gaussian_epsilon

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from theory.attack import attack_counts, passive  # noqa: E402 - the simulation that the tests run

plt.rcParams.update({"font.size": 11, "axes.grid": True, "grid.alpha": 0.3, "figure.constrained_layout.use": True})


def low_probability_events() -> None:
    """The bounds on the real probability of an event of fresh probability 1e-12, and what p <= 0.05 needs."""
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
    level, nats = 12 * math.log(10), np.geomspace(1e-3, 30, 400)
    forms = (
        ("Russo and Zou", russo_zou, "tab:orange", "-"),
        ("Lemma prob-gen as stated", prob_gen, "tab:blue", "-"),
        ("Rogers et al. (in bits)", rogers, "tab:green", "--"),
        ("exact kl inversion (attained)", event_probability, "black", "-"),
    )
    for label, form, color, line in forms:
        left.plot(nats, np.minimum(form(level, nats), 1.0), line, color=color, label=label)
    left.set(xscale="log", yscale="log", xlabel="information I (nats)", ylabel="bound on the real probability")
    left.set_title(r"An event of fresh probability $10^{-12}$")
    left.legend(fontsize=9)
    for failure, color in ((0.05, "black"), (0.01, "tab:blue"), (0.001, "tab:orange")):
        exact = np.array([log_threshold(failure, i) for i in nats])
        right.plot(nats, exact, color=color, label=f"exact, p = {failure}")
        right.plot(nats, (nats + math.log(2)) / failure, "--", color=color, label=f"as stated, p = {failure}")
    right.set(xscale="log", yscale="log", xlabel="information I (nats)", ylabel=r"needed $\ln(1/\delta)$")
    right.set_title(r"How rare it must be on fresh data")
    right.legend(fontsize=9)
    save("events")


def main_theorem() -> None:
    """The expected largest ratio of the Main Theorem: stated, sharp, and under attack."""
    rng = np.random.default_rng(2018)
    asked = np.array([20, 50, 100, 300, 1000, 3000, 10**4, 3 * 10**4, 10**5])
    sharp, attacked, alone = [], [], []
    for k in asked:
        plan = MainTheorem(int(40 * k**1.5), int(k))
        trials = int(np.clip(10**6 / k, 30, 2000))
        best = max(attack_counts(plan, int(share * k), trials, rng).mean() for share in (0.6, 0.7, 0.8, 0.9))
        sharp.append(plan.sharp_bound)
        attacked.append(best)
        alone.append(passive(plan, 0.5, trials, rng).mean())
    _, ax = plt.subplots(figsize=(7, 4.4))
    ax.plot(asked, np.full(asked.shape, 4.0), color="tab:red", label="Main Theorem as stated")
    ax.plot(asked, sharp, color="tab:blue", label="its proof without rounding")
    ax.plot(asked, attacked, "o-", color="black", label="measured: analyst that attacks")
    ax.plot(asked, alone, "o--", color="gray", label="measured: questions fixed in advance")
    ax.set(xscale="log", ylim=(0, 4.3), xlabel="questions k")
    ax.set_ylabel(r"E max$_j$ |error$_j$| / max($\tau$ sd, $\tau^2$)")
    ax.legend(fontsize=9, loc="center right", bbox_to_anchor=(1, 0.78), framealpha=1)
    save("main_theorem")


def pvalues_and_privacy() -> None:
    """Corrected p-values, and the privacy of calibrated answers at the Main Theorem's parameters."""
    _, axes = plt.subplots(1, 2, figsize=(10, 4.2))
    left: Axes = axes[0]
    p = np.geomspace(1e-60, 1, 1200)
    for nats in (0.01, 0.1, 1.0, 5.0, 20.0):
        left.plot(p, np.asarray(correct_pvalue(p, nats)), label=f"I = {nats:g} nats")
    left.axhline(0.05, color="black", linewidth=0.8, linestyle=":")
    left.set(xscale="log", yscale="log", ylim=(1e-4, 1.3), xlabel="p-value as if fixed in advance")
    left.set(ylabel="corrected p-value", title="A test chosen after exploring")
    left.legend(fontsize=9)
    right: Axes = axes[1]
    delta = np.geomspace(1e-30, 1e-2, 60)
    floor = [gaussian_epsilon(d, 1.0) for d in delta]
    right.plot(delta, floor, color="black", label="noise floor alone (a lower bound)")
    for n, k in ((10**3, 20), (10**4, 100), (10**5, 1000), (10**6, 10**4)):
        plan = MainTheorem(n, k)
        proved = [calibrated_epsilon(d, n, k, plan.t, plan.T) for d in delta]
        right.plot(delta, proved, "--", label=f"proved, n = {n:.0e}, k = {k}".replace("e+0", "e"))
    right.set(xscale="log", xlabel=r"$\delta$", ylabel=r"$\varepsilon$", ylim=(0, None))
    right.set_title("Privacy at the Main Theorem's parameters")
    right.legend(fontsize=9)
    save("pvalues_privacy")


def save(name: str) -> None:
    """Write docs/figures/generalization_<name>.png, with few colours, so that it is small."""
    path = HERE / f"generalization_{name}.png"
    plt.savefig(path, dpi=150)
    plt.close()
    Image.open(path).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(path, optimize=True)


if __name__ == "__main__":
    low_probability_events()
    main_theorem()
    pvalues_and_privacy()
