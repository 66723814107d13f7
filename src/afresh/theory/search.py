"""Small numeric searches for planning; scipy.optimize is slow to import, so it is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def minimize_simplex(
    f: Callable[[Sequence[float]], float],
    start: Sequence[float],
    *,
    tolerance: float,
    evaluations: int,
    bounds: Sequence[tuple[float, float]] | None = None,
) -> tuple[list[float], float]:
    """The point and value where Nelder and Mead's simplex ends; `tolerance` is on the coordinates."""
    from scipy.optimize import minimize

    options = {"xatol": tolerance, "fatol": 1e-7, "maxfev": evaluations}
    found = minimize(f, list(start), method="Nelder-Mead", bounds=bounds, options=options)  # type: ignore[call-overload] # scipy-stubs wants a TypedDict it does not export
    return [float(x) for x in found.x], float(found.fun)


def minimize_between(f: Callable[[float], float], low: float, high: float, *, tolerance: float) -> float:
    """The minimum of a function with one valley, by Brent's method."""
    from scipy.optimize import minimize_scalar

    return float(minimize_scalar(f, bounds=(low, high), method="bounded", options={"xatol": tolerance}).x)
