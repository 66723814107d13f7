"""Independent, slow implementation of Theorem S, section 17, in mpmath: formulas as the text states them.

Nothing here imports afresh. Minima are found by nested golden sections, roots by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import mpmath as mp

DIGITS = 30
AMIN = mp.mpf(1) / 5


def psi(t: mp.mpf) -> mp.mpf:
    """E(Z + t)_+ = phi(t) + t Phi(t); the digits cover the cancellation far below 0."""
    with mp.extradps(25):
        return mp.npdf(t) + t * mp.ncdf(t)


def kl(p: mp.mpf, q: mp.mpf) -> mp.mpf:
    total = mp.mpf(0)
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            if b <= 0:
                return mp.inf
            total += a * mp.log(a / b)
    return total


def _last(holds: Callable[[mp.mpf], bool], inside: mp.mpf, outside: mp.mpf) -> mp.mpf:
    if holds(outside):
        return outside
    for _ in range(90):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


def up(e: mp.mpf, c: mp.mpf) -> mp.mpf:
    """max{d: kl(d || e) <= c}."""
    return mp.mpf(1) if e >= 1 else _last(lambda d: kl(d, e) <= c, e, mp.mpf(1))


def golden(f: Callable[[mp.mpf], mp.mpf], low: mp.mpf, high: mp.mpf, steps: int = 45) -> mp.mpf:
    """The least value of f seen on the way to a minimum."""
    ratio = (mp.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    fa, fb = f(a), f(b)
    least = min(f(low), f(high), fa, fb)
    for _ in range(steps):
        if fa < fb:
            high, b, fb = b, a, fa
            a = high - ratio * (high - low)
            fa = f(a)
        else:
            low, a, fa = a, b, fb
            b = low + ratio * (high - low)
            fb = f(b)
        least = min(least, fa, fb)
    return least


@dataclass(frozen=True)
class World:
    """The constants of section 17 for equal noise, D by `up`, iterated from 1 to convergence."""

    n: int
    k: int
    s: mp.mpf
    bm: mp.mpf
    q: mp.mpf
    gam: mp.mpf
    eG: mp.mpf
    L1: mp.mpf
    L3: mp.mpf
    D: mp.mpf
    t: mp.mpf
    tau: mp.mpf
    kap: mp.mpf
    x: mp.mpf

    def tau_before(self, j: int) -> mp.mpf:
        return (j - 1) * self.t / (1 + self.t)


def world(n: int, k: int, s: float, beta: float) -> World:
    with mp.workdps(DIGITS):
        noise, bd = mp.mpf(s), mp.mpf(beta) / 50
        q = mp.mpf(k + 3) / (4 * mp.mpf(n) ** 2 * noise**2)
        gam = 1 / (1 - q)
        eG = bd * AMIN * noise
        L1, L3 = mp.log(3 * k / eG), mp.log(6 * k / eG)

        def derived(D: mp.mpf) -> tuple[mp.mpf, mp.mpf, mp.mpf, mp.mpf]:
            t = gam * D / (4 * n * noise**2)
            kap = gam * q * (k + 3) * D / (4 * n * noise**2) / 2
            return t, k * t / (1 + t), kap, 2 * mp.sqrt(kap + L3)

        D = mp.mpf(1)
        for _ in range(40):
            _, tau, _, x = derived(D)
            delta = mp.sqrt(L3 / (2 * n)) + (mp.sqrt(tau) + x) * mp.sqrt(gam * D / n)
            D = min(up(mp.mpf(1) / 2 + delta**2 / 2, L1 / n), mp.mpf(1))
        t, tau, kap, x = derived(D)
        bm = mp.mpf(beta) - bd
        return World(n, k, noise, bm, q, gam, eG, L1, L3, D, t, tau, kap, x)


def pairs_of(w: World, P: float) -> mp.mpf:
    """D(P): the largest fixpoint of d -> up(max over S of S + P - 2 S P, L1/n), from d = D."""
    with mp.workdps(DIGITS):
        p = mp.mpf(P)
        high = up(p, w.L3 / w.n)
        low = 1 - up(1 - p, w.L3 / w.n)
        d = w.D
        for _ in range(60):
            reach = (mp.sqrt(w.tau) + w.x) * mp.sqrt(w.gam * d / w.n)
            ends = (max(low - reach, mp.mpf(0)), min(high + reach, mp.mpf(1)))
            d = min(d, up(max(S + p - 2 * S * p for S in ends), w.L1 / w.n))
        return d


def unlike_world(
    n: int,
    k: int,
    answers: int,
    s: float,
    beta: float,
    row: float | None = None,
    numbers: float = 0.0,
    concave: bool = False,
) -> World:
    """The same for rows that are independent and not alike, and for up to so many answers that count for k.

    With `numbers`, the finest noise of the last draw of one in units of s, every answer may have four times the events;
    if that is above 1, the least noise is that of plain answers.
    """
    with mp.workdps(DIGITS):
        noise, bd, count = mp.mpf(s), mp.mpf(beta) / 50, mp.mpf(k)
        q = (count + 3) / (4 * mp.mpf(n) ** 2 * noise**2) if row is None else mp.mpf(row)
        gam = 1 / (1 - q)
        eG = bd * AMIN * noise * (min(mp.mpf(numbers), 1) or 1)
        events = answers * (4 if numbers else 1)
        L1, L3 = mp.log(3 * events / eG), mp.log(6 * events / eG)

        def derived(D: mp.mpf) -> tuple[mp.mpf, mp.mpf, mp.mpf, mp.mpf]:
            t = gam * D / (4 * n * noise**2)
            kap = q * (count + 3) * t / 2
            if concave:  # the sharper form of 17.3
                u = min(t * (count + 3) / (gam * n), q)
                kap = n * (mp.log1p(gam * u) - u) / 2
            return t, count * t / (1 + count * t / answers), kap, 2 * mp.sqrt(kap + L3)

        D = mp.mpf(1)
        for _ in range(40):
            _, tau, _, x = derived(D)
            away = (mp.sqrt(tau) + x) * mp.sqrt(gam / n) + mp.sqrt(L3 / (2 * n))
            # max of 1/2 - u^2/2 + u away over 0 <= u <= 1
            u = min(away, mp.mpf(1))
            D = min(up(min((1 - u**2) / 2 + u * away, mp.mpf(1)), L1 / n), mp.mpf(1))
        t, tau, kap, x = derived(D)
        return World(n, k, noise, mp.mpf(beta) - bd, q, gam, eG, L1, L3, D, t, tau, kap, x)


def unlike_pairs(w: World, P: float, points: int = 400) -> mp.mpf:
    """D(P) of such rows: v = 2 (1/n) sum p_i (1 - p_i) may be anything up to 2 P (1 - P), here on a grid."""
    with mp.workdps(DIGITS):
        p = mp.mpf(P)
        drift = (mp.sqrt(w.tau) + w.x) * mp.sqrt(w.gam / w.n)

        def parts(v: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
            """u, and what does not depend on d."""
            u = mp.sqrt(max(1 - 2 * v, mp.mpf(0)))
            bernstein = mp.sqrt(v * w.L3 / w.n) + w.L3 / (3 * w.n)
            return u, v + min(u * mp.sqrt(w.L3 / (2 * w.n)), bernstein)

        spreads = [parts(2 * p * (1 - p) * i / points) for i in range(points + 1)]
        d = w.D
        for _ in range(25):
            before, root = d, mp.sqrt(d)
            mean = max(rest + drift * min(u, root) for u, rest in spreads)
            d = min(d, up(min(mean, mp.mpf(1)), w.L1 / w.n))
            if before - d <= 1e-18 * d:  # it has arrived
                break
        return d


def public_pairs(w: World, rbar: float, points: int = 50) -> mp.mpf:
    """D(rbar) of 17.9: the largest rbar/2 - u^2/2 + Y that E1, E2 and E4 leave open, u on a grid, Y by bisection."""
    with mp.workdps(DIGITS):
        r, drift = mp.mpf(rbar), (mp.sqrt(w.tau) + w.x) * mp.sqrt(w.gam / w.n)
        level = mp.sqrt(w.L1 / (2 * w.n))

        def left_open(u: mp.mpf, y: mp.mpf) -> bool:
            """Some T has d - v = y <= T + level sqrt(r) and y <= u drift + level sqrt(r + 3u^2 - 4T): try the least."""
            under = r + 3 * u**2 - 4 * (y - level * mp.sqrt(r))
            return bool(y <= u * drift or (under >= 0 and y <= u * drift + level * mp.sqrt(under)))

        spreads = (mp.sqrt(r) * i / points for i in range(points + 1))
        most = max(-(u**2) / 2 + _last(partial(left_open, u), mp.mpf(0), mp.mpf(2)) for u in spreads)
        return min(r, r / 2 + most)


def number_pairs(w: World, U: float, centre: float) -> mp.mpf:
    """D(U) of 17.10: E[d | S, y] <= M^2 (S[phi] + P[phi]) - 2 b^2 + 2 b A, b on a grid; the largest fixpoint."""
    with mp.workdps(DIGITS):
        most, m2 = mp.mpf(U), max(mp.mpf(centre), 1 - mp.mpf(centre)) ** 2
        drift = (mp.sqrt(w.tau) + w.x) * mp.sqrt(w.gam / w.n)
        away = drift + mp.sqrt(w.L3 / (2 * w.n))
        bias = max(2 * b * away - 2 * b**2 for b in (mp.mpf(i) / 400 for i in range(401)))
        own, ghost = unlike_pairs(w, U, 60), up(most, w.L3 / w.n)
        d = w.D
        for _ in range(20):
            sample = ghost + drift * mp.sqrt(min(own, 4 * d / m2))
            d = min(d, up(min(m2 * (sample + most) + bias, mp.mpf(1)), w.L1 / w.n))
        return d


def curve_sum(w: World, bend: float, answers: int) -> mp.mpf:
    """ln sum_j prod_{i<j} ((1 + c t_i)/(1 + t_i))^(1/2), c = 1/(1-l): all t_i = t, or all t_i = k t/M; term by term."""
    with mp.workdps(DIGITS):
        c = 1 / (1 - mp.mpf(bend))
        each, thin = (mp.log((1 + c * t) / (1 + t)) / 2 for t in (w.t, w.k * w.t / answers))
        return mp.log(mp.fsum(mp.exp(min((j - 1) * each, answers * thin)) for j in range(1, answers + 1)))


def log_failure(w: World, h: float, j: int, b: mp.mpf | None = None) -> mp.mpf:
    """ln F_j(h; b): the minimum over alpha in [amin, h] and rho >= sqrt(tau_j), by nested golden sections."""
    with mp.workdps(DIGITS):
        reach = mp.sqrt(w.t) if b is None else b
        width, root, sig = mp.mpf(h), mp.sqrt(w.tau_before(j)), mp.sqrt(1 + 4 * reach**2)

        def at(alpha: mp.mpf, rho: mp.mpf) -> mp.mpf:
            u = (2 * reach * rho - width + alpha) / sig
            G = sig * psi(u)
            lam = (2 * reach / sig) * mp.ncdf(u) / psi(u)
            return G * mp.exp(-lam * (rho - root) + lam**2 / 2)

        def outer(alpha: mp.mpf) -> mp.mpf:
            above = golden(lambda rho: at(alpha, rho), root, root + 8, 32)
            return (above + sig * psi(-(width - alpha) / sig)) / alpha

        return w.kap + mp.log(golden(outer, AMIN, min(width, mp.mpf(12)), 34))


def curve_at(bends: list[float], weights: list[float], tau: mp.mpf, rho: mp.mpf) -> mp.mpf:
    """Q(rho) = ln sum_m w_m exp(l_m rho^2/2 - l_m tau/(2 (1 - l_m)))."""
    terms = [
        mp.mpf(w) * mp.exp(mp.mpf(bend) * rho**2 / 2 - bend * tau / (2 * (1 - mp.mpf(bend))))
        for bend, w in zip(bends, weights, strict=True)
    ]
    return mp.log(mp.fsum(terms))


def admits(
    h: float, b: float, tau: float, kap: float, bends: list[float], weights: list[float], upper: float, lower: float
) -> bool:
    """Whether some alpha satisfies both conditions of 17.7, sup over rho by golden section (ln G - Q is concave)."""
    with mp.workdps(20):
        reach, width, bulk = mp.mpf(b), mp.mpf(h), mp.mpf(tau)
        sig = mp.sqrt(1 + 4 * reach**2)
        top = mp.sqrt(bulk) + 12
        for i in range(14):
            alpha = AMIN * (mp.mpf(min(h, 2.0)) / AMIN) ** (mp.mpf(i) / 13)
            if kap + mp.log(sig * psi(-(width - alpha) / sig) / alpha) > lower:
                continue

            def above(rho: mp.mpf, alpha: mp.mpf = alpha) -> mp.mpf:
                return curve_at(bends, weights, bulk, rho) - mp.log(sig * psi((2 * reach * rho - width + alpha) / sig))

            if kap - mp.log(alpha) - golden(above, mp.mpf(0), top, 26) <= upper:
                return True
        return False


def vector_world(w: World, size: int, answers: int) -> World:
    """The same for the events of a vector of section 18: size + 1 of them in place of those of so many answers."""
    with mp.workdps(DIGITS):
        more = max(mp.log(mp.mpf(size + 1) / answers), mp.mpf(0))
        L1, L3 = w.L1 + more, w.L3 + more
        return replace(w, L1=L1, L3=L3, x=2 * mp.sqrt(w.kap + L3), D=mp.mpf(1))


def vector_pairs(w: World, kind: str, size: int, points: int = 400) -> mp.mpf:
    """D of section 18: E[d | S, y] maximised over the length of the rows' laws (pi) by brute force, then `up`."""
    with mp.workdps(DIGITS):
        away = (mp.sqrt(w.tau) + w.x) * mp.sqrt(w.gam / w.n) + mp.sqrt(w.L3 / (2 * w.n))
        lengths = [mp.mpf(i) / points for i in range(points + 1)]
        if kind == "ball":  # of radius 1/2, pi the root mean square of |p_i|
            return up(min(max((2 - 8 * r**2) / 4 + 2 * away * r for r in (x / 2 for x in lengths)), 1), w.L1 / w.n)
        all_of = mp.mpf(size + 1)
        return 2 * up(min(max(1 - 1 / all_of - (r - 1 / all_of) ** 2 + away * r for r in lengths), 1), w.L1 / w.n)


def least_times(w: World, vector: World, bend: float, kind: str, size: int, answers: int) -> mp.mpf:
    """The least noise, in units of the plan's, at which a vector counts as so many answers, by bisection."""
    with mp.workdps(DIGITS):
        rate, pairs = mp.mpf(bend) / (1 - mp.mpf(bend)), vector_pairs(vector, kind, size)
        widest = unlike_pairs(vector, 0.5, 8)

        def holds(times: mp.mpf) -> bool:
            parts = w.gam * pairs / (4 * w.n * (w.s * times) ** 2) / size
            grows = size * mp.log(1 + rate * parts / (1 + parts)) <= answers * mp.log(1 + rate * w.t / (1 + w.t))
            own = 4 * widest / times**2 <= (3 + answers) * w.D
            row = (2 if kind == "shares" else 1) / times**2 <= answers
            return bool(grows and own and row)

        return -_last(lambda x: holds(-x), mp.mpf(-50), mp.mpf(-1))


def settled_world(n: int, k: int, s: float, beta: float, share: float, finest: float) -> World:
    """The constants of 17.10 for k answers of two draws, whose second has noise down to `finest` s."""
    with mp.workdps(DIGITS):
        noise, least, own = mp.mpf(s), mp.mpf(min(finest, 1.0)), mp.mpf(finest) ** -2
        q = (k * (mp.mpf(share) + own) + 3 * own) / (4 * mp.mpf(n) ** 2 * noise**2)
        gam, bd = 1 / (1 - q), mp.mpf(beta) / 50
        eG = bd * AMIN * least * noise
        L1, L3 = mp.log(3 * k / eG), mp.log(6 * k / eG)
        D = mp.mpf(1)
        for _ in range(41):
            t = gam * D / (4 * n * noise**2)
            tau, kap = k * t / (1 + t), q * (k + 3 * own) * t / 2
            x = 2 * mp.sqrt(kap + L3)
            away = (mp.sqrt(tau) + x) * mp.sqrt(gam / n) + mp.sqrt(L3 / (2 * n))
            found = World(n, k, noise, mp.mpf(beta) - bd, q, gam, eG, L1, L3, D, t, tau, kap, x)
            u = min(away, mp.mpf(1))
            D = min(up(min((1 - u**2) / 2 + u * away, mp.mpf(1)), L1 / n), mp.mpf(1))
        return found


def settled_sum(w: World, bend: float, share: float, floor: float) -> mp.mpf:
    """ln sum_i exp((phi (k - i floor) + f(t share))/2), f(u) = ln((1 + c u)/(1 + u)), phi = f(t floor)/floor."""
    with mp.workdps(DIGITS):
        c = 1 / (1 - mp.mpf(bend))

        def f(u: mp.mpf) -> mp.mpf:
            return mp.log((1 + c * u) / (1 + u))

        phi, first = f(w.t * floor) / floor, f(w.t * share)
        return mp.log(mp.fsum(mp.exp((phi * (w.k - i * mp.mpf(floor)) + first) / 2) for i in range(1, w.k + 1)))


def shown_pairs(w: World, centre: float, square: float, noise: float, half_step: float) -> tuple[mp.mpf, mp.mpf]:
    """D(U) and D(phi) of numbers without a hint (17.10), from y2: the largest fixpoints, the bias on a grid."""
    with mp.workdps(DIGITS):
        m2 = max(mp.mpf(centre), 1 - mp.mpf(centre)) ** 2
        z = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.exp(-w.L3))
        sample = min(mp.mpf(square) + z * noise + half_step, mp.mpf(1))
        drift = (mp.sqrt(w.tau) + w.x) * mp.sqrt(w.gam / w.n)
        away = drift + mp.sqrt(w.L3 / (2 * w.n))
        bias = max(2 * b * away - 2 * b**2 for b in (mp.mpf(i) / 400 for i in range(401)))
        d, own = w.D, w.D
        for _ in range(12):
            ghost = min(sample + drift * mp.sqrt(min(own, 4 * d / m2)), mp.mpf(1))
            if ghost < 1:
                p = _last(lambda q, ghost=ghost: bool(kl(ghost, q) <= w.L3 / w.n), ghost, mp.mpf(1))  # type: ignore[misc]
            else:
                p = mp.mpf(1)
            own = min(own, unlike_pairs(w, float(min(p, mp.mpf(1) / 2)), 40))
            d = min(d, up(min(m2 * (sample + p) + bias, mp.mpf(1)), w.L1 / w.n))
        return d, min(own, 4 * d / m2)
