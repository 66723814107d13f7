"""Draw the figures of docs/paper/stability.md: python docs/figures/stability.py."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from afresh.theory.stability import (
    Noise,
    average_kl,
    calibrated_charge,
    laplace_charge,
    simple_calibrated_charge,
    stated_calibrated_charge,
)

HERE = Path(__file__).parent
CHARGES = {"gaussian": calibrated_charge, "laplace": laplace_charge}


def worst_two_point(n: int, t: float, T: float, noise: Noise) -> float:
    """The largest average KL found over samples with j rows at a and the others at 0."""
    worst = 0.0
    for j in np.unique(np.geomspace(1, n / 2, 25).astype(int)):
        heights = {1.0}
        for ones, rows in ((j, n), (j - 1, n - 1), (j, n - 1)):
            share = ones / rows
            if 0 < share < 1:
                at_switch = math.sqrt(t / T / (share * (1 - share)))
                heights |= {at_switch * f for f in (1 - 1e-9, 1 + 1e-9, 1.03, 1.1, 1.4)}
        for a in heights:
            if a <= 1:
                x = np.zeros(n)
                x[:j] = a
                worst = max(worst, average_kl(x, t, T, noise=noise))
    return worst


def closest(n: int, noise: Noise) -> float:
    """The largest ratio of cost to charge found over t, T and two-point samples, by a simplex search from a grid."""

    def shortfall(point: NDArray[np.float64]) -> float:
        t, T = 10.0 ** min(max(point[0], -4), 8), 10.0 ** min(max(point[0] + point[1], -8), 14)
        return -worst_two_point(n, t, T, noise) / CHARGES[noise](t, T, n)

    starts = [np.array([a, b]) for a in (1.0, 2.0, 4.0, 6.0) for b in (0.7, 1.0, 1.5, 2.5)]
    found = minimize(shortfall, min(starts, key=shortfall), method="Nelder-Mead", options={"maxfev": 60})
    return float(-found.fun)


def charges_over_n() -> None:
    """The stated, the sharp and the short form of Prop. M, and what the worst sample found costs."""
    fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True)
    for axis, t, T, title in (
        (axes[0], 100.0, 1000.0, "t = 100, T = 0.1 t²  (the product's shape)"),
        (axes[1], 100.0, 10000.0, "t = 100, T = t²  (the edge of Theorem isklas)"),
    ):
        n = np.unique(np.geomspace(3, 3000, 60).astype(int))
        unit = np.array([max(t, T / t) / m**2 for m in n])
        stated = [stated_calibrated_charge(t, T, int(m)) for m in n] / unit
        sharp = [calibrated_charge(t, T, int(m)) for m in n] / unit
        found = [worst_two_point(int(m), t, T, "gaussian") for m in n] / unit
        regime = [m for m in n if m >= 20 and T / t <= m / 10]
        axis.plot(n, stated, label="Prop. M as stated")
        axis.plot(n, sharp, label="sharp, what is charged")
        short = [simple_calibrated_charge(t, T, int(m)) * m**2 / max(t, T / t) for m in regime]
        axis.plot(regime, short, label="max{t, T/t}/n², in its regime")
        axis.plot(n, found, "k.", ms=4, label="worst sample found")
        axis.set(xscale="log", yscale="log", xlabel="rows n", title=title)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("charge / (max{t, T/t} / n²)")
    axes[1].legend()
    fig.tight_layout()
    fig.savefig(HERE / "stability_charges.png", dpi=150)


def tightness() -> None:
    """How close the worst sample found comes to the charge, over n."""
    fig, axis = plt.subplots(figsize=(6.5, 4.2))
    rows = (2, 3, 5, 8, 12, 20, 35, 50, 100, 200, 500, 1000, 3000)
    styles: dict[Noise, str] = {"gaussian": "o-", "laplace": "s--"}
    for noise, style in styles.items():
        found = [closest(n, noise) for n in rows]
        print(noise, dict(zip(rows, (round(x, 4) for x in found), strict=True)))
        axis.plot(rows, found, style, ms=4, label=f"{noise} noise")
    axis.axhline(1, color="k", lw=0.8)
    axis.set(xscale="log", xlabel="rows n", ylabel="worst cost found / charge", ylim=(0, 1.05))
    axis.grid(alpha=0.3)
    axis.legend(loc="lower right")
    fig.tight_layout()
    fig.savefig(HERE / "stability_tightness.png", dpi=150)


if __name__ == "__main__":
    charges_over_n()
    tightness()
