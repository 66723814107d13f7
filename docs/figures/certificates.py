"""Draw docs/figures/certificates_widths.png and certificates_levels.png: python docs/figures/certificates.py"""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from scipy.optimize import minimize_scalar

from afresh.mechanisms.calibrated import plan_calibrated
from afresh.mechanisms.rounds import Rounds
from afresh.mechanisms.stabilized import plan_stabilized
from afresh.theory.extremes import quantile
from afresh.theory.information import log_threshold
from afresh.theory.posterior import posterior_half_width, posterior_level
from afresh.theory.references import fixed_questions_half_width
from afresh.theory.second_moment import SecondMoment, sample_mean_range, truth_range

HERE = Path(__file__).parent
N, FAILURE = 10**5, 0.05


def best_posterior(k: int) -> float:
    """Section 9 (iii) with the noise that suits it."""
    found = minimize_scalar(
        lambda x: posterior_half_width(N, k, math.exp(x), FAILURE), bounds=(-9, 0), method="bounded"
    )
    return float(found.fun)


def by_questions(axes: Axes) -> None:
    """Half-widths at p = 1/2 against the number of questions."""
    counts = [int(k) for k in np.unique(np.round(np.geomspace(3, 30_000, 17)))]
    rows: dict[str, list[float]] = {
        "rounds of one (section 14)": [Rounds(N, k, FAILURE, k, 0.0).half_width(0.5) for k in counts],
        "calibrated (section 6)": [plan_calibrated(N, k, FAILURE).half_width(0.5) for k in counts],
        "posterior, fixed noise (section 9)": [best_posterior(k) for k in counts],
        "stabilized (section 10)": [],
        "no adaptivity": [fixed_questions_half_width(N, k, FAILURE, 0.5) for k in counts],
    }
    for k in counts:
        plan = plan_stabilized(N, k, FAILURE)
        rows["stabilized (section 10)"].append(plan.half_width(0.5) if plan else math.nan)
    for (label, widths), style in zip(rows.items(), (":", "--", "-.", "-", ":"), strict=True):
        axes.loglog(counts, widths, style, label=label, color="0.5" if "no" in label[:2] else None)
    axes.set(xlabel="questions k", ylabel="half-width at p = 1/2", title=f"n = {N:,}, 95 %, all answers at once")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3, which="both")


def by_disagreement(axes: Axes) -> None:
    """Half-widths of a difference of two models, on the scale of d in [-1, 1], against how often they disagree."""
    k = 1000
    plan, stabilized = plan_calibrated(N, k, FAILURE), plan_stabilized(N, k, FAILURE)
    assert stabilized is not None
    level = log_threshold(plan.failure - plan.noise_failure, plan.information) / N
    z = quantile(k, plan.noise_failure)
    shares = np.geomspace(0.002, 1.0, 30)
    second_moment, halves = [], []
    for share in shares:
        second = SecondMoment(plan.sample_mean_range(share)[1], plan.interval(share)[1])
        m = sample_mean_range(0.5, second, z, plan.t, plan.T, plan.grid / 2)
        low, high = truth_range(*m, second, level)
        second_moment.append(high - low)
        halves.append(2 * stabilized.half_width(share / 2))  # [lo+ - hi-, hi+ - lo-]
    axes.loglog(
        shares, np.full(shares.size, 2 * plan.half_width(0.5)), "--", color="C1", label="calibrated (section 6)"
    )
    axes.loglog(shares, second_moment, "-.", color="C4", label="with the second moment (section 7)")
    axes.loglog(shares, halves, "-", color="C3", label="stabilized, d+ and d- (section 10)")
    axes.set(xlabel="rows on which two models disagree", ylabel="half-width of their difference")
    axes.set_title(f"n = {N:,}, 500 differences, 95 %")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3, which="both")


def levels(axes: Axes) -> None:
    """What one nat of information costs in L or R, against the failure probability."""
    failures, information = np.geomspace(1e-6, 0.5, 60), 20.0
    axes.loglog(failures, [log_threshold(b, information) / information for b in failures], "--", color="C1")
    axes.loglog(failures, [posterior_level(N, information, b) / information for b in failures], "-.", color="C2")
    axes.text(3e-4, 4e3, "L(b) / I, section 5", color="C1", fontsize=9)
    axes.text(1e-6, 7, "R(b) / I, section 9", color="C2", fontsize=9)
    axes.set(xlabel="failure probability b", ylabel="level per nat of information", title=f"n = {N:,}, I = 20 nats")
    axes.grid(alpha=0.3, which="both")


def main() -> None:
    """Draw and save."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    by_questions(left)
    by_disagreement(right)
    figure.savefig(HERE / "certificates_widths.png", dpi=150)
    figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
    levels(axes)
    figure.savefig(HERE / "certificates_levels.png", dpi=150)


if __name__ == "__main__":
    main()
