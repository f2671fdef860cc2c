"""Other ways to find slices, on the planted slices of simulate_slices.py, each at an honest limit.

python benchmarks/bench_slices_peers.py [--runs R] [--nulls K] [--peer NAME ...]

For slices of one, two and three variables (5 % of 5,000 rows with a gap of 20 points, 20 % with 10
and with 20) every peer names its clearest slice. None of them has a p-value that allows for its
search, so that each gets the limit that it exceeds in 5 % of calibrated data: of K sets of outcomes
of the same design. Needs mcgrad, DivExplorer and pysubgroup; what is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeRegressor

from slice_worlds import Design, design, planted, rates, signed_gap

N = 5000
CELLS = [(d, s, g) for d in (1, 2, 3) for s, g in ((0.05, 0.2), (0.2, 0.1), (0.2, 0.2))]
#: A peer returns the size of its statistic and the rows of its slice.
Peer = Callable[[Design, np.ndarray], tuple[float, np.ndarray]]


def z_of(world: Design, y: np.ndarray, inside: np.ndarray) -> float:
    """Return the sum of residuals of a slice over its standard deviation."""
    s = world.s[inside]
    return float((y[inside] - s).sum() / np.sqrt((s * (1 - s)).sum()))


def tree(world: Design, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the clearest leaf of a tree of residuals of depth 3."""
    frame = pd.get_dummies(pd.DataFrame(world.X)).to_numpy(dtype=float)
    leaf = DecisionTreeRegressor(max_depth=3, min_samples_leaf=50, random_state=0)
    place = leaf.fit(frame, y - world.s).apply(frame)
    masks = [place == one for one in np.unique(place)]
    best = max(masks, key=lambda one: abs(z_of(world, y, one)))
    return abs(z_of(world, y, best)), best


def mcgrad(world: Design, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the segment with the largest calibration error in standard deviations."""
    from mcgrad.metrics import MulticalibrationError

    frame = pd.DataFrame(world.X).assign(y=y.astype(int), s=world.s)
    kinds = [name for name in world.X if name.startswith("kind")]
    numbers = [name for name in world.X if name not in kinds]
    found = MulticalibrationError(
        df=frame,
        label_column="y",
        score_column="s",
        categorical_segment_columns=kinds,
        numerical_segment_columns=numbers,
    )
    sigma = np.asarray(found.segments_ecce_sigma, dtype=float)
    masks = found._segments[0].reshape(-1, len(world))
    place = int(np.nanargmax(sigma))
    inside = np.zeros(len(world), dtype=bool)
    inside[found.df["index"][masks[place]]] = True  # its rows are sorted by score
    return float(sigma[place]), inside


def _binned(world: Design, bins: int) -> pd.DataFrame:
    """Cut numbers into quantile bins."""
    frame = pd.DataFrame(world.X)
    for name, column in world.X.items():
        if column.dtype.kind != "U":
            frame[name] = pd.qcut(column, bins, duplicates="drop").astype(str)
    return frame


def divexplorer(world: Design, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the itemset with the largest t value of its mean residual."""
    from divexplorer import DivergenceExplorer

    frame = _binned(world, 4).assign(e=y - world.s)
    names = list(world.X)
    found = DivergenceExplorer(frame).get_pattern_divergence(
        min_support=0.04, attributes=names, quantitative_outcomes=["e"]
    )
    best = found.loc[found["e_t"].abs().idxmax()]
    inside = np.ones(len(frame), dtype=bool)
    for item in best["itemset"]:
        name, _, value = str(item).partition("=")
        inside &= (frame[name].astype(str) == value).to_numpy()
    return abs(float(best["e_t"])), inside


def subgroups(world: Design, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the subgroup with the largest √n · |mean residual| of a beam search of depth 3."""
    import pysubgroup as ps

    best = (0.0, np.zeros(len(world), dtype=bool))
    for sign in (-1, 1):
        frame = pd.DataFrame(world.X).assign(e=sign * (y - world.s))
        space = ps.create_selectors(frame, nbins=8, ignore=["e"])
        task = ps.SubgroupDiscoveryTask(
            frame, ps.NumericTarget("e"), space, result_set_size=1, depth=3,
            qf=ps.StandardQFNumeric(0.5),
        )  # fmt: skip
        quality, rule, _ = ps.BeamSearch(beam_width=20).execute(task).results[0]
        inside = np.asarray(rule.covers(frame), dtype=bool)
        best = max(best, (float(quality), inside), key=lambda one: one[0])
    return best


PEERS: dict[str, tuple[str, Peer]] = {
    "plain tree": ("sklearn", tree),
    "MCGrad": ("mcgrad", mcgrad),
    "DivExplorer": ("divexplorer", divexplorer),
    "pysubgroup": ("pysubgroup", subgroups),
}


def run(name: str, peer: Peer, runs: int, nulls: int) -> None:
    """Print power, recovery and processor time of a peer."""
    rng = np.random.default_rng([0, N])
    world = design(rng, N)
    start, lines = time.process_time(), []
    null = [peer(world, rng.random(N) < world.s)[0] for _ in range(nulls)]
    limit = np.quantile(null, 0.95)
    for depth, share, gap in CELLS:
        for _ in range(runs):
            inside = planted(rng, world, depth, share)
            rate = rates(world.s, inside, signed_gap(rng, world.s, inside, gap))
            size, shown = peer(world, rng.random(N) < rate)
            jaccard = (inside & shown).sum() / max((inside | shown).sum(), 1)
            lines.append((size > limit, jaccard if size > limit else 0.0))
    power, jaccard = np.array(lines, dtype=float).T
    seconds = (time.process_time() - start) / (nulls + len(lines))
    print(
        f"{name}: {100 * power.mean():.0f} % / {100 * (jaccard >= 0.5).mean():.0f} % / "
        f"{jaccard.mean():.2f} ({len(lines)} runs, limit {limit:.2f} of {nulls} nulls, "
        f"{seconds:.2f} s each)",
        flush=True,
    )


def main(arguments: list[str] | None = None) -> None:
    """Run all peers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--nulls", type=int, default=40)
    parser.add_argument("--peer", action="append", choices=PEERS)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    for name in given.peer or PEERS:
        module, peer = PEERS[name]
        if importlib.util.find_spec(module) is None:
            print(f"{name}: not installed")
            continue
        run(name, peer, given.runs, given.nulls)


if __name__ == "__main__":
    main()
