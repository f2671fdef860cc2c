"""Every public function on odd columns and options: an answer that makes sense, or an error."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np

import varcal as vc

ODD_NUMBERS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e307, -1e307, math.nan, math.inf, -math.inf, 2**53 + 1),
    *(1e-16, 1 - 1e-16, 3, 2**62, 0.1, 0.2, 0.3),
]


def probabilities(random: Random, n: int) -> Any:
    """Return scores: usual ones, and now and then some that are none."""
    kind = random.randrange(8)
    p = [random.random() for _ in range(n)]
    if kind == 0:
        p = [random.choice((0.0, 1.0, 0.5, 1e-300, 1 - 1e-16)) for _ in range(n)]
    elif kind == 1 and n:
        p[random.randrange(n)] = random.choice(ODD_NUMBERS)
    elif kind == 2:
        rows = np.array([[random.random() + 1e-9 for _ in range(3)] for _ in range(n)])
        return rows / rows.sum(1, keepdims=True) if n else np.zeros((0, 3))
    with np.errstate(all="ignore"):
        return np.array(p, dtype=random.choice(("f8", "f8", "f4", "f2", object)))


def labels(random: Random, n: int, p: Any) -> Any:
    """Return outcomes of many types."""
    classes = random.choice(
        [[0, 1], [False, True], ["no", "yes"], [0, 1, 2], [1], [2**63, 1], [-1.0, 1.0], [None, 1]]
    )
    if getattr(p, "ndim", 1) == 2:
        classes = random.choice([[0, 1, 2], ["a", "b", "c"], [0, 1]])
    drawn = [random.choice(classes) for _ in range(n)]
    return np.array(drawn, dtype=object if random.random() < 0.3 else None)


def variable(random: Random, n: int) -> Any:
    """Return a column of any type."""
    start = datetime(2024, 1, 1, tzinfo=random.choice((None, UTC)))
    makers: list[Callable[[], Any]] = [
        lambda: [random.random() for _ in range(n)],
        lambda: [random.choice(ODD_NUMBERS) for _ in range(n)],
        lambda: [random.choice("abc") for _ in range(n)],
        lambda: [random.choice(["a", None, 1, 2.5, True]) for _ in range(n)],
        lambda: [2**53 + k for k in range(n)],
        lambda: [start + timedelta(days=random.randrange(1000)) for _ in range(n)],
        lambda: np.array([random.randrange(3) for _ in range(n)], "u1"),
        lambda: np.array([0] * n, "m8[ns]"),
        lambda: np.array(["2024-01-01"] * n, random.choice(["M8[D]", "M8[as]", "M8[ns]"])),
        lambda: [1.5] * n,
        lambda: [[1]] * n,
        lambda: [b"x"] * n,
        lambda: [1 + 2j] * n,
    ]
    column = random.choice(makers)()
    return np.array(column, dtype=object) if random.random() < 0.1 else column


def weights(random: Random, n: int) -> Any:
    """Return weights, or none."""
    if random.random() < 0.6:
        return None
    return [random.choice((1, 1, 0, 2, 1e-40, 1e40, -1, math.nan)) for _ in range(n)]


def _arguments(random: Random) -> tuple[Any, Any, Any, dict[str, Any]]:
    n = random.choice((0, 1, 2, 3, 10, 40, 40))
    p = probabilities(random, n)
    y = labels(random, n if random.random() < 0.97 else n + 1, p)
    v = variable(random, n)
    if random.random() < 0.3:
        v = {"one": v, "two": variable(random, n)}
    given: dict[str, Any] = {}
    w = weights(random, n)
    if w is not None:
        given["sample_weight"] = w
    if random.random() < 0.3:
        given["event"] = random.choice(("correct", "positive", "classwise", "both", "x", None))
    return y, p, v, given


def _finite(value: Any, what: str) -> None:
    numbers = np.atleast_1d(np.asarray(value, dtype=float))
    assert np.isfinite(numbers).all(), f"{what} is {value!r}"


def sums(random: Random) -> None:
    """Call the measures that only sum: ece, vece, bin_table."""
    y, p, v, given = _arguments(random)
    n_bins = random.choice((1, 2, 5, 15))
    which = random.randrange(3)
    if which == 0:
        _finite(vc.ece(y, p, n_bins=n_bins, **given), "ece")
    elif which == 1:
        _finite(vc.vece(y, p, v, n_bins=n_bins, **given), "vece")
    else:
        v = v["one"] if isinstance(v, dict) else v
        table = vc.bin_table(y, p, v, n_bins=n_bins, **given)
        assert table is not None


def inference(random: Random) -> None:
    """Call the measures that also judge: estimate, curve, reliability."""
    y, p, v, given = _arguments(random)
    v = v["one"] if isinstance(v, dict) else v
    which = random.randrange(3)
    if which == 0:
        found = vc.estimate(y, p, v, n_bins=5, **given)
        assert found is not None
    elif which == 1:
        vc.curve(y, p, v, **given)
    else:
        vc.reliability(y, p, **given)


def intersections(random: Random) -> None:
    """Search slices, draw a surface, and estimate the predictable gap."""
    if random.random() < 0.5:  # usual scores, as most odd ones are refused before the search
        n = random.choice((40, 200))
        p = [random.random() for _ in range(n)]
        y = [int(random.random() < each) for each in p]
        v, given = variable(random, n), {}
    else:
        y, p, v, given = _arguments(random)
        given.pop("event", None)
        n = len(p)
    v = v if isinstance(v, dict) else {"one": v, "two": variable(random, n)}
    if random.random() < 0.2:
        given["groups"] = [random.choice("abcde") for _ in range(n)]
    which = random.randrange(3)
    if which == 0:
        found = vc.slices(y, p, v, draws=19, max_depth=random.choice((1, 2, 3)), **given)
        str(found)
        found.to_frame()
    elif which == 1:
        vc.surface(y, p, {name: v[name] for name in ("one", "two")}, **given)
    else:
        str(vc.predictable_gap(y, p, v, **given))


def _correlated_rows(random: Random, n: int) -> dict[str, Any]:
    """Return one of the arguments by which a fit learns which rows belong together, or none."""
    if random.random() < 0.5:
        return {}
    name = random.choice(("groups", "time", "blocks"))
    return {name: random.choice((variable(random, n), "one", "x", None, False, "auto"))}


def whole(random: Random) -> None:
    """Audit, collect, monitor and calibrate."""
    y, p, v, given = _arguments(random)
    n = len(p)
    which = random.randrange(4)
    if which == 0:
        given.pop("event", None)
        given["ladder"] = random.choice(("all", "score", "none"))
        given[random.choice(("limit", "relative_limit"))] = random.choice((None, 0.01, 0.3))
        found = vc.audit(y, p, v, **given)
        str(found), found.to_frame(), found.to_dict(), found.report()
    elif which == 1:
        given.pop("event", None)
        by_variable = [vc.VariableCalibrator, vc.calibrators.TreeCalibrator]
        by_score = [
            vc.calibrators.BetaCalibrator,
            vc.calibrators.IsotonicCalibrator,
            vc.calibrators.HistogramCalibrator,
        ]
        chosen = random.choice([*by_variable, *by_score, vc.calibrators.TemperatureCalibrator])
        made, used = chosen(), v if chosen in by_variable else None
        q = made.fit(p, y, used, **given, **_correlated_rows(random, n)).predict_proba(p, used)
        _finite(q, "probabilities")
        assert (q >= 0).all() and (q <= 1).all() and np.allclose(q.sum(1), 1)
    elif which == 2:
        data = {"y": y, "p": p, "v": v["one"] if isinstance(v, dict) else v}
        bins = vc.make_bins("y", "p", "v", data=data, n_bins=3)
        assert vc.collect(data, bins) is not None
    else:
        size = random.choice([*ODD_NUMBERS, 0.02, 0.05])
        vc.rows_needed(size)


def quiet(target: Callable[[Random], None]) -> Callable[[Random], None]:
    """Let numpy's and Python's own warnings be failures; those of varcal are answers."""

    def run(random: Random) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", vc.exceptions.VarcalWarning)
            target(random)

    return run


#: Each target with its share of all cases.
TARGETS = {
    "sums": (quiet(sums), 20),
    "inference": (quiet(inference), 3),
    "intersections": (quiet(intersections), 1),
    "audits, calibrators": (quiet(whole), 2),
}
