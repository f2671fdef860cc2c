"""Other packages compared with varcal on the same task: CPU times and results, in one run.

    python benchmarks/bench_peers.py [--rows N] [--curve-rows M]

Prints a Markdown table with one row per function of another package: CPU times (minimum of a few
runs), their ratio, and the largest difference of the results if both compute the same quantity.
Packages that are not installed, or that cannot be imported, are marked as such. Curves are computed
on fewer rows, because the time of other packages grows with the square of their number.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

import varcal as vc

Floats = NDArray[np.float64]
#: The edges of ten bins of equal width.
EQUAL_WIDTH = np.linspace(0, 1, 11)


@dataclass(frozen=True)
class Data:
    """Outcomes, probabilities and one variable, along which the model is miscalibrated."""

    y: NDArray[np.int64]
    p: Floats
    v: Floats

    @classmethod
    def draw(cls, n: int) -> Data:
        """Draw n rows."""
        rng = np.random.default_rng(0)
        p, v = rng.beta(2, 3, n), rng.normal(50, 15, n)
        truth = np.clip(p + 0.1 * np.sin(v / 15), 0, 1)
        return cls((rng.random(n) < truth).astype(np.int64), p, v)

    @property
    def score(self) -> Floats:
        """The predicted probability of the more likely class."""
        return np.maximum(self.p, 1 - self.p)

    @property
    def hit(self) -> NDArray[np.bool_]:
        """Whether the more likely class was right."""
        return (self.p > 0.5) == self.y


@dataclass(frozen=True)
class Peer:
    """A function of another package and ours for the same task.

    Attributes
    ----------
    name, module : str
        The name in the table, and the module that must be installed.
    quantity : str
        What is computed.
    theirs, ours : callable
        From data to the result, with numbers in the same order.
    tolerance : float or None
        The largest difference allowed; None if the quantities are similar but not the same.
    curve : bool
        Whether to run it on fewer rows.
    """

    name: str
    module: str
    quantity: str
    theirs: Callable[[Data], object]
    ours: Callable[[Data], object]
    tolerance: float | None
    curve: bool = False


def pandas_vece(data: Data) -> float:
    import pandas as pd

    frame = pd.DataFrame({"score": data.score, "hit": data.hit, "v": data.v})
    frame["bin"] = pd.qcut(frame["v"], 10, duplicates="drop")
    groups = [group for _, group in frame.groupby("bin", observed=True)]
    gaps = [len(group) * abs(group["score"].mean() - group["hit"].mean()) for group in groups]
    return float(sum(gaps) / len(frame))


def sklearn_bins(data: Data) -> Floats:
    from sklearn.calibration import calibration_curve

    return np.concatenate(calibration_curve(data.y, data.p, n_bins=10, strategy="quantile"))


def our_bins(data: Data) -> Floats:
    columns = vc.bin_table(data.y, data.p, event="positive").columns
    return np.concatenate([columns["observed"], columns["predicted"]])


def diagnostics_bias(data: Data) -> Floats:
    from model_diagnostics.calibration import compute_bias

    found = compute_bias(data.y, data.p, data.v, n_bins=10, bin_method="quantile")
    return found["bias_mean"].to_numpy()


def our_bias(data: Data) -> Floats:
    return np.asarray(vc.bin_table(data.y, data.p, data.v, event="positive").columns["gap"])


def mcgrad_ece(data: Data) -> float:
    from mcgrad.metrics import expected_calibration_error

    return float(expected_calibration_error(data.y, data.p, num_bins=10))


def our_even_ece(data: Data) -> float:
    return vc.ece(data.y, data.p, event="positive", bins=EQUAL_WIDTH)


def mcgrad_worst(data: Data) -> float:
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    frame = pd.DataFrame({"y": data.y, "p": data.p, "v": data.v})
    return float(MulticalibrationError(frame, "y", "p", numerical_segment_columns=["v"]).mce)


def our_audit(data: Data) -> object:
    return vc.audit(data.y, data.p, {"v": data.v}, ladder="none")


def relplot_even_ece(data: Data) -> float:
    from relplot.metrics import binnedECE

    return float(binnedECE(data.p, data.y, nbins=10))


def netcal_ece(data: Data) -> float:
    from netcal.metrics import ECE

    return float(ECE(bins=10).measure(data.p, data.y))


def relplot_smooth(data: Data) -> float:
    from relplot import smECE

    return float(smECE(data.p, data.y))


def our_reliability(data: Data) -> object:
    return vc.reliability(data.y, data.p, event="positive")


def grid(data: Data) -> Floats:
    return np.linspace(*np.quantile(data.v, [0.05, 0.95]), 100)


def skmisc_curve(data: Data) -> Floats:
    from skmisc.loess import loess

    at = grid(data)
    curves = []
    for error in (1.0 - data.hit, 1.0 - data.score):
        fit = loess(data.v, error, span=0.9, degree=2, surface="direct")
        fit.fit()
        answer = fit.predict(at, stderror=True)
        answer.confidence(0.05)
        curves.append(answer.values)
    return np.concatenate(curves)


def lowess_curve(data: Data) -> Floats:
    from statsmodels.nonparametric.smoothers_lowess import lowess

    at = grid(data)
    parts = (1.0 - data.hit, 1.0 - data.score)
    return np.concatenate([lowess(part, data.v, frac=0.9, it=0, xvals=at) for part in parts])


def our_curve(data: Data, degree: int, bands: bool = True) -> Floats:
    at = grid(data)
    found = vc.curve(data.y, data.p, data.v, span=0.9, degree=degree, bands=bands)
    return np.concatenate(
        [1 - np.interp(at, found.x, y) for y in (found.observed, found.predicted)]
    )


def our_vece(data: Data) -> float:
    return vc.vece(data.y, data.p, data.v)


PEERS = [
    Peer("pandas `qcut` + `groupby`, the paper's way", "pandas", "VECE",
         pandas_vece, our_vece, 1e-9),
    Peer("scikit-learn `calibration_curve`", "sklearn", "hit rate by score",
         sklearn_bins, our_bins, 1e-9),
    Peer("model-diagnostics `compute_bias`", "model_diagnostics", "gap by variable",
         diagnostics_bias, our_bias, 1e-9),
    Peer("MCGrad `expected_calibration_error`", "mcgrad", "ECE, equal-width bins",
         mcgrad_ece, our_even_ece, 1e-6),
    Peer("MCGrad `MulticalibrationError`", "mcgrad", "worst segment of a variable (ours: an audit)",
         mcgrad_worst, our_audit, None),
    Peer("relplot `binnedECE`", "relplot", "ECE, equal-width bins",
         relplot_even_ece, our_even_ece, 1e-9),
    Peer("netcal `ECE`", "netcal", "ECE, equal-width bins",
         netcal_ece, our_even_ece, 1e-9),
    Peer("relplot `smECE`", "relplot", "calibration along the score (ours: curve, bands, test)",
         relplot_smooth, our_reliability, None),
    Peer("scikit-misc `loess`, direct", "skmisc", "error curves, local quadratic, with bands",
         skmisc_curve, partial(our_curve, degree=2), 1e-3, curve=True),
    Peer("statsmodels `lowess`", "statsmodels", "error curves, local linear",
         lowess_curve, partial(our_curve, degree=1, bands=False), 1e-3, curve=True),
]  # fmt: skip


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the minimum CPU time of a few runs, on which other work has little effect."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        call()
        best = min(best, time.process_time() - started)
    return float(best)


def compare(peer: Peer, data: Data, repeats: int) -> str:
    """Return the row of the table for a peer, whose results must agree with ours."""
    n = f"{len(data.y):,}"
    if find_spec(peer.module) is None:
        return f"| {peer.name} | {peer.quantity} | {n} | not installed | | | |"
    try:
        theirs = peer.theirs(data)
    except ImportError as error:
        missing = error.name or type(error).__name__
        return f"| {peer.name} | {peer.quantity} | {n} | cannot be imported: {missing} | | | |"
    ours = peer.ours(data)
    difference = "another figure"
    if peer.tolerance is not None:
        largest = float(np.max(np.abs(np.asarray(theirs) - np.asarray(ours))))
        assert largest <= peer.tolerance, f"{peer.name}: the results differ by {largest}"
        difference = f"{largest:.0e}"
    slow = seconds(lambda: peer.theirs(data), 1 if peer.curve else repeats)
    fast = seconds(lambda: peer.ours(data), repeats)
    times = f"{1e3 * slow:.1f} | {1e3 * fast:.1f} | {slow / max(fast, 1e-9):.1f}"
    return f"| {peer.name} | {peer.quantity} | {n} | {times} | {difference} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--curve-rows", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    rows, few = Data.draw(options.rows), Data.draw(options.curve_rows)
    print("| package | quantity | rows | CPU ms | ours, CPU ms | package / ours | difference |")
    print("|---|---|---|---|---|---|---|")
    for peer in PEERS:
        print(compare(peer, few if peer.curve else rows, options.repeats), flush=True)


if __name__ == "__main__":
    main()
