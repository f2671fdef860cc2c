"""Worlds for the search of slices: 20 variables of mixed kinds, planted slices, nulls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Continuous, count and categorical variables.
N_CONTINUOUS, N_COUNTS, LEVELS = 13, 3, (2, 3, 5, 8)
NAMES = [f"x{k}" for k in range(N_CONTINUOUS)] + [f"count{k}" for k in range(N_COUNTS)]


@dataclass(frozen=True)
class Design:
    """Variables and calibrated scores."""

    X: dict[str, NDArray]
    s: Floats

    def __len__(self) -> int:
        return len(self.s)


def design(
    rng: np.random.Generator, n: int, *, rare: bool = False, n_variables: int = 20
) -> Design:
    """Draw variables and scores; with `rare`, about 4 % positives instead of 31 %."""
    common = rng.standard_normal((n, 1))
    x = np.sqrt(0.7) * rng.standard_normal((n, N_CONTINUOUS)) + np.sqrt(0.3) * common
    x[:, 3:6] = np.exp(x[:, 3:6])
    counts = rng.poisson(np.exp(0.3 * common) * np.array([1.0, 3.0, 8.0]))
    X: dict[str, NDArray] = {name: x[:, k] for k, name in enumerate(NAMES[:N_CONTINUOUS])}
    X |= {f"count{k}": counts[:, k].astype(float) for k in range(N_COUNTS)}
    for k, size in enumerate(LEVELS):
        shares = rng.dirichlet(np.full(size, 4.0))
        X[f"kind{k}"] = np.array([f"level {m}" for m in range(size)])[rng.choice(size, n, p=shares)]
    for k in range(20, n_variables):
        X[f"more{k}"] = rng.standard_normal(n)
    odds = 0.8 * x[:, 0] - 0.6 * x[:, 1] + 0.4 * x[:, 2] + 0.15 * (counts[:, 1] - 3)
    odds = odds + 0.5 * (X["kind1"] == "level 1") + 0.4 * rng.standard_normal(n)
    odds = odds - (4.0 if rare else 1.1)
    return Design(X, 1 / (1 + np.exp(-odds)))


def planted(rng: np.random.Generator, world: Design, depth: int, share: float) -> Bools:
    """Choose a slice of `depth` variables with about this share of the rows."""
    names = list(world.X)[:20]
    for _ in range(2000):
        chosen = rng.choice(names, depth, replace=False)
        inside = np.ones(len(world), dtype=bool)
        for k, name in enumerate(chosen):
            left = depth - k
            if not inside.any():
                break
            want = (share / inside.mean()) ** (1 / left)
            inside &= _range(rng, world.X[name], inside, want)
        if 0.8 * share <= inside.mean() <= 1.25 * share:
            return inside
    raise RuntimeError("no such slice")


def _range(rng: np.random.Generator, values: NDArray, within: Bools, want: float) -> Bools:
    """Choose a range or a set of levels with about this share of the rows."""
    if values.dtype.kind == "U":
        levels, count = np.unique(values[within], return_counts=True)
        order = rng.permutation(len(levels))
        total = np.cumsum(count[order]) / within.sum()
        size = int(np.abs(total - want).argmin()) + 1
        return np.isin(values, levels[order[:size]])
    want = min(want, 0.98)
    start = rng.choice([0.0, 1 - want, rng.uniform(0, 1 - want)])
    low, high = np.quantile(values[within], [start, start + want])
    inside = (values >= low) if start + want > 0.999 else (values >= low) & (values < high)
    return inside if start > 0 else (values < high)


def rates(s: Floats, inside: Bools, gap: float) -> Floats:
    """Return rates of outcomes, with log-odds moved so that the mean gap of a slice is `gap`."""
    odds = np.log(s[inside] / (1 - s[inside]))
    low, high = -30.0, 30.0
    for _ in range(50):
        middle = (low + high) / 2
        if (1 / (1 + np.exp(-(odds + middle)))).mean() < s[inside].mean() - gap:
            low = middle
        else:
            high = middle
    found = s.copy()
    found[inside] = 1 / (1 + np.exp(-(odds + (low + high) / 2)))
    return found


def signed_gap(rng: np.random.Generator, s: Floats, inside: Bools, gap: float) -> float:
    """Return the gap with a random sign, where rates stay between 2 and 98 %."""
    signs = [sign for sign in (-1, 1) if 0.02 < s[inside].mean() - sign * gap < 0.98]
    return gap * rng.choice(signs)
