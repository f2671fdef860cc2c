"""Peers side by side: the time of each against ours for the same question, in one run.

    python benchmarks/bench_peers.py [--rows N] [--curve-rows M]

Prints a Markdown table, one row a peer: CPU times (least of a few runs), their ratio, and how far
the two answers lie apart where both answer the same question. Peers that are not installed are
listed as such. Curves have fewer rows, as peers take time that grows with their square.
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
EVEN = np.linspace(0, 1, 11)


@dataclass(frozen=True)
class Data:
    """Outcomes, probabilities and one variable, along which the model is off."""

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
        """The claimed probability that the likelier class is right."""
        return np.maximum(self.p, 1 - self.p)

    @property
    def hit(self) -> NDArray[np.bool_]:
        """Whether it is right."""
        return (self.p > 0.5) == self.y


@dataclass(frozen=True)
class Peer:
    """A peer's answer and ours to one question.

    Attributes
    ----------
    name, module : str
        What it is called, and what must be installed.
    question : str
        What is asked.
    theirs, ours : callable
        From data to the answer, numbers in the same order.
    apart : float or None
        How far the answers may lie apart; None where only the questions are alike.
    curve : bool
        Whether it is run on fewer rows.
    """

    name: str
    module: str
    question: str
    theirs: Callable[[Data], object]
    ours: Callable[[Data], object]
    apart: float | None
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
    return np.concatenate([columns["accuracy"], columns["confidence"]])


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
    return vc.ece(data.y, data.p, event="positive", bins=EVEN)


def mcgrad_worst(data: Data) -> float:
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    frame = pd.DataFrame({"y": data.y, "p": data.p, "v": data.v})
    return float(MulticalibrationError(frame, "y", "p", numerical_segment_columns=["v"]).mce)


def our_audit(data: Data) -> object:
    return vc.audit(data.y, data.p, {"v": data.v}, event="positive")


def relplot_even_ece(data: Data) -> float:
    from relplot.metrics import binnedECE

    return float(binnedECE(data.p, data.y, nbins=10))


def relplot_smooth(data: Data) -> float:
    from relplot import smECE

    return float(smECE(data.p, data.y))


def our_reliability(data: Data) -> object:
    return vc.reliability(data.y, data.p, event="positive")


def places(data: Data) -> Floats:
    return np.linspace(*np.quantile(data.v, [0.05, 0.95]), 100)


def skmisc_curve(data: Data) -> Floats:
    from skmisc.loess import loess

    at = places(data)
    found = []
    for claim in (1.0 - data.hit, 1.0 - data.score):
        fit = loess(data.v, claim, span=0.9, degree=2, surface="direct")
        fit.fit()
        answer = fit.predict(at, stderror=True)
        answer.confidence(0.05)
        found.append(answer.values)
    return np.concatenate(found)


def lowess_curve(data: Data) -> Floats:
    from statsmodels.nonparametric.smoothers_lowess import lowess

    at = places(data)
    parts = (1.0 - data.hit, 1.0 - data.score)
    return np.concatenate([lowess(part, data.v, frac=0.9, it=0, xvals=at) for part in parts])


def our_curve(data: Data, degree: int) -> Floats:
    found = vc.curve(data.y, data.p, data.v, span=0.9, degree=degree, grid=places(data))
    return np.concatenate([found.error, found.predicted_error])


def our_vece(data: Data) -> float:
    return vc.vece(data.y, data.p, data.v)


PEERS = [
    Peer("pandas `qcut` + `groupby`, the paper's way", "pandas", "VECE",
         pandas_vece, our_vece, 1e-9),
    Peer("scikit-learn `calibration_curve`", "sklearn", "hit rate by score",
         sklearn_bins, our_bins, 1e-9),
    Peer("model-diagnostics `compute_bias`", "model_diagnostics", "gap by variable",
         diagnostics_bias, our_bias, 1e-9),
    Peer("MCGrad `expected_calibration_error`", "mcgrad", "ECE, even bins",
         mcgrad_ece, our_even_ece, 1e-6),
    Peer("MCGrad `MulticalibrationError`", "mcgrad", "worst place of a variable (ours: an audit)",
         mcgrad_worst, our_audit, None),
    Peer("relplot `binnedECE`", "relplot", "ECE, even bins", relplot_even_ece, our_even_ece, 1e-9),
    Peer("relplot `smECE`", "relplot", "calibration along the score (ours: curve, bands, test)",
         relplot_smooth, our_reliability, None),
    Peer("scikit-misc `loess`, direct", "skmisc", "error curves, local quadratic, with bands",
         skmisc_curve, partial(our_curve, degree=2), 1e-3, curve=True),
    Peer("statsmodels `lowess`", "statsmodels", "error curves, local linear (ours: with bands)",
         lowess_curve, partial(our_curve, degree=1), 1e-3, curve=True),
]  # fmt: skip


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of a few runs: other work on the machine does not count."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        call()
        best = min(best, time.process_time() - started)
    return float(best)


def compare(peer: Peer, data: Data, repeats: int) -> str:
    """Return the row of a peer; its answers must agree with ours."""
    n = f"{len(data.y):,}"
    if find_spec(peer.module) is None:
        return f"| {peer.name} | {peer.question} | {n} | not installed | | | |"
    theirs, ours = peer.theirs(data), peer.ours(data)
    apart = "another figure"
    if peer.apart is not None:
        most = float(np.max(np.abs(np.asarray(theirs) - np.asarray(ours))))
        assert most <= peer.apart, f"{peer.name}: {most} apart"
        apart = f"{most:.0e}"
    slow = seconds(lambda: peer.theirs(data), 1 if peer.curve else repeats)
    fast = seconds(lambda: peer.ours(data), repeats)
    times = f"{1e3 * slow:.1f} | {1e3 * fast:.1f} | {slow / max(fast, 1e-9):.1f}"
    return f"| {peer.name} | {peer.question} | {n} | {times} | {apart} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--curve-rows", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    rows, few = Data.draw(options.rows), Data.draw(options.curve_rows)
    print("| peer | question | rows | CPU ms | ours, CPU ms | peer / ours | answers apart |")
    print("|---|---|---|---|---|---|---|")
    for peer in PEERS:
        print(compare(peer, few if peer.curve else rows, options.repeats), flush=True)


if __name__ == "__main__":
    main()
