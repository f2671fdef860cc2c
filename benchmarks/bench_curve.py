"""Time of a whole curve: scikit-misc's LOESS with standard errors against ours, and at scale.

python benchmarks/bench_curve.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from varcal._smoothing.bands import Bands, curve_bands
from varcal._smoothing.cells import Cells
from varcal._smoothing.density import density
from varcal._smoothing.local_polynomial import smoother_weights

Floats = NDArray[np.float64]


def rows(n: int) -> tuple[Floats, Floats, Floats]:
    """Draw a skewed variable, scores, and hits that fall short in the upper tail."""
    rng = np.random.default_rng(n)
    v, s = rng.gamma(2, size=n), rng.beta(5, 2, n)
    return v, s, (rng.random(n) < s - 0.1 * np.minimum(v / 4, 1)).astype(float)


def quantile_cells(v: Floats, s: Floats, hit: Floats, many: int = 1000) -> Cells:
    """Cells of equal counts; edges from a sample of at most 200,000 rows."""
    sample = v if len(v) <= 200_000 else np.random.default_rng(0).choice(v, 200_000)
    edges = np.unique(np.quantile(sample, np.arange(1, many) / many))
    cell = np.searchsorted(edges, v)
    e = hit - s
    sums = [np.bincount(cell, term, len(edges) + 1) for term in (hit, s, e * e, s * (1 - s), v)]
    n = np.bincount(cell, minlength=len(edges) + 1).astype(float)
    kept = n > 0
    n, (h, t, e2, null, x) = n[kept], (term[kept] for term in sums)
    return Cells(x / n, n, n, n, h, t, h, t, e2, null)


def whole_curve(cells: Cells) -> Bands:
    """Smooth both curves, make every band, find v* and its set, and the density."""
    at = np.linspace(*np.interp([0.05, 0.95], np.cumsum(cells.n) / cells.n.sum(), cells.x), 200)
    weights = smoother_weights(cells.x, at, span=0.9, counts=cells.n)
    weights @ np.column_stack([1 - cells.hit_rate, 1 - cells.mean_score])
    density(cells.x, cells.weight, at, rows=cells.n.sum())
    return curve_bands(cells)


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Least processor time of a few runs: other work on the machine does not count."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        call()
        best = min(best, time.process_time() - started)
    return best


def scikit_misc(v: Floats, hit: Floats, s: Floats) -> None:
    """Fit the error and the predicted error with their standard errors, as the paper does."""
    from skmisc.loess import loess

    at = np.linspace(*np.quantile(v, [0.05, 0.95]), 200)
    for y in (1 - hit, 1 - s):
        fit = loess(v, y, span=0.9, degree=2)
        fit.fit()
        fit.predict(at, stderror=True).confidence(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()

    n = 4000 if options.quick else 14_000
    v, s, hit = rows(n)
    peer = seconds(lambda: scikit_misc(v, hit, s), 1)
    first = seconds(lambda: whole_curve(quantile_cells(v, s, hit)), 1)
    ours = seconds(lambda: whole_curve(quantile_cells(v, s, hit)))
    print("| n | scikit-misc, 2 curves with standard errors | ours, first call | ours | ratio |")
    print("|---|---|---|---|---|")
    print(
        f"| {n:,} | {peer:.2f} s | {first * 1e3:.0f} ms | {ours * 1e3:.1f} ms "
        f"| {peer / ours:,.0f} (first call {peer / first:,.0f}) |\n"
    )

    print("| n | argsort | binning | curve, bands, v*, density | whole | 3 argsort + .5 s |")
    print("|---|---|---|---|---|---|")
    for n in (10_000, 100_000) if options.quick else (10_000, 100_000, 1_000_000, 4_000_000):
        v, s, hit = rows(n)
        sort = seconds(lambda v=v: np.argsort(v), 3)
        cells = quantile_cells(v, s, hit)
        binning = seconds(lambda v=v, s=s, hit=hit: quantile_cells(v, s, hit), 3)
        after = seconds(lambda cells=cells: whole_curve(cells))
        print(
            f"| {n:,} | {sort:.3f} s | {binning:.3f} s | {after * 1e3:.1f} ms "
            f"| {binning + after:.3f} s | {3 * sort + 0.5:.3f} s |"
        )

    print("\n| design | cells | bands | curve_bands |")
    print("|---|---|---|---|")
    v, s, hit = rows(14_000)
    for name, values in {
        "no ties": v,
        "integers": np.round(v * 10),
        "30 % at zero": np.where(np.arange(14_000) % 10 < 3, 0, v),
        "16 levels": np.minimum(np.round(v * 2), 15),
    }.items():
        cells = Cells.from_rows(values, hit, s, most=1000)
        bands = curve_bands(cells)
        took = seconds(lambda cells=cells: curve_bands(cells))
        print(f"| {name} | {len(cells)} | {len(bands.x)} | {took * 1e3:.1f} ms |")


if __name__ == "__main__":
    main()
