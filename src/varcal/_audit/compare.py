"""`compare`: sets of probabilities for the same held-out rows, against the first of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from varcal._arrays import Floats, Ints
from varcal._audit.comparison import HIGHER_IS_BETTER, Comparison, ComparisonRow
from varcal._audit.verdicts import BASELINE, BETTER, FIXED, MADE_WORSE, UNCHANGED
from varcal._engines.kernel_numpy import bin_rows
from varcal._evidence.profile import Profile, profile, rows_behind
from varcal._evidence.question import BinOptions
from varcal._inference.duality import with_p
from varcal._inference.measured import Measured, debiased_without, measure
from varcal._inference.paired import auc_parts, mean_interval, row_losses, sum_interval
from varcal._input.events import Claim, claims
from varcal._input.groups import buckets
from varcal._input.predictions import ALL, Predictions
from varcal._input.variables import Variable
from varcal._measures.curve import Curve, curve_of
from varcal._measures.estimate import profile_test
from varcal._options import check_level
from varcal._runtime.threads import one_blas_thread
from varcal.exceptions import InputError

HITS = ("recomputed", "first")
#: Without groups, rows are split into this many parts, each of which the jackknife omits once.
N_PARTS = 100


@one_blas_thread
def compare(
    y: object,
    methods: Mapping[str, object],
    X: object = ALL,
    *,
    data: object = None,
    event: str = "correct",
    hits: str = "recomputed",
    n_bins: int = 10,
    binning: str = "quantile",
    bins: object = None,
    edges: str | None = None,
    level: float = 0.95,
    classes: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    sample_weight: object = None,
    groups: object = None,
    unlabelled: str = "raise",
    random_state: int = 0,
) -> Comparison:
    r"""Compare sets of probabilities for the same held-out rows with the first of them.

    The figures are accuracy, log-loss, Brier score, AUC (two classes), ECE, and the VECE of each
    variable. Each comes with an interval, its paired difference from the first set (also with an
    interval) and a verdict. Intervals of differences are jackknife intervals over parts of the
    rows for ECE and VECE, DeLong's for AUC, and sandwich intervals for the others.

    Parameters
    ----------
    y : array-like or column name
        Labels.
    methods : dict
        Probabilities by name, as arrays or column names; the first is the baseline.
    X : frame, dict of columns, or column names, optional
        The variables. By default every column of `data` that has no other role; None for no
        variables.
    data, event, n_bins, binning, bins, edges, classes, pos_label, sample_weight, unlabelled
        As in `vece`; `event` is "correct" or "positive".
    hits : {"recomputed", "first"}
        Which prediction counts under ``event="correct"``: each set's own most likely class, or
        that of the first set. The second is the rule of the paper; it does not show that a
        calibrator changes predictions.
    level : float
        The level of all intervals.
    groups : array-like or column name, optional
        Units that rows belong to.
    random_state : int
        Seed of the split of the rows into parts.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(4000, "tilt", vece=0.1)
    >>> truth = sim.p - sim.gap(sim.v)
    >>> found = vc.compare(sim.y, {"raw": sim.p, "repaired": truth.clip(0, 1)}, {"v": sim.v},
    ...                    event="positive")
    >>> found.row("repaired", "VECE", "v").verdict
    'fixed'
    """
    check_level(level)
    if hits not in HITS:
        raise InputError.choice("hits", hits, HITS)
    if event == "classwise":
        raise InputError(
            "event is 'classwise', which makes one claim per class; a comparison judges one claim",
            'use event="correct" or "positive"',
            argument="event",
        )
    if not isinstance(methods, Mapping) or not methods:
        raise InputError(
            f"methods must be a dict of probabilities by name; got {type(methods).__name__}",
            'for example {"raw": p0, "beta": p1}',
            argument="methods",
        )
    if len({str(name) for name in methods}) < len(methods):
        raise InputError(
            f"methods has two of the same name: {list(methods)}", "rename one", argument="methods"
        )
    if X is ALL and data is None:
        X = None
    checked = {
        str(name): Predictions.of(
            y,
            p,
            X,
            data=data,
            classes=classes,
            sample_weight=sample_weight,
            groups=groups,
            unlabelled=unlabelled,
        )
        for name, p in methods.items()
    }
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    first = next(iter(checked.values()))
    part, n_parts = _parts(first, random_state)
    sides: list[_Side] = []
    for name, one in checked.items():
        (claim,) = claims(one, event, pos_label)
        if hits == "first" and event == "correct" and sides:
            claim = Claim(claim.score, sides[0].claim.hit, claim.label)
        sides.append(_Side(name, one, claim))
    rows = [row for side in sides for row in _loss_rows(side, sides[0], level)]
    if len(first.classes) == 2:
        rows += [_auc_row(side, sides[0], level) for side in sides]
    curves: dict[str, dict[str, Curve]] = {}
    for variable in (None, *first.variables):
        figures = [
            _figure(side, variable, options, part, n_parts, level, random_state) for side in sides
        ]
        name = "" if variable is None else variable.name
        rows += [
            _error_row(side, figure, figures[0], name, level)
            for side, figure in zip(sides, figures, strict=True)
        ]
        # A variable without a single value has figures but no curve.
        if name and len(figures[0].profile.cells()):
            curves[name] = {
                side.name: curve_of(
                    figure.profile,
                    event,
                    level=level,
                    vece=figure.measured,
                    backend=first.backend,
                )
                for side, figure in zip(sides, figures, strict=True)
            }
    order = {name: k for k, name in enumerate(checked)}
    keys = list(dict.fromkeys((row.metric, row.variable) for row in rows))
    rows.sort(key=lambda row: (keys.index((row.metric, row.variable)), order[row.method]))
    return Comparison(
        rows=tuple(rows),
        methods=tuple(checked),
        event=event,
        hits=hits,
        level=level,
        n_rows=len(first),
        backend=first.backend,
        curves=curves,
        n_dropped=first.n_dropped,
        n_bins=n_bins,
        binning=binning,
        grouped=first.groups is not None,
    )


@dataclass(frozen=True, eq=False)
class _Side:
    name: str
    predictions: Predictions
    claim: Claim


@dataclass(frozen=True, eq=False)
class _Figure:
    profile: Profile
    measured: Measured
    without: Floats  # the debiased figure with each part of the rows omitted


def _parts(predictions: Predictions, seed: int) -> tuple[Ints, int]:
    part, n_parts = buckets(predictions.unit)
    if part is not None:
        return part, n_parts
    n = len(predictions)
    n_parts = min(N_PARTS, n)
    return np.random.default_rng(seed).permutation(np.arange(n) % n_parts), n_parts


def _loss_rows(side: _Side, base: _Side, level: float) -> list[ComparisonRow]:
    found = []
    mine, theirs = (
        row_losses(one.predictions.p, np.asarray(one.predictions.y, np.intp))
        for one in (side, base)
    )
    for metric, values in mine.items():
        settings = (side.predictions.weight, side.predictions.groups, level)
        value, low, high = mean_interval(values, *settings)
        apart = mean_interval(values - theirs[metric], *settings)
        found.append(_row(side, side is base, metric, "", (value, low, high), math.nan, apart))
    return found


def _auc_row(side: _Side, base: _Side, level: float) -> ComparisonRow:
    def positive(one: _Side) -> Floats:
        p = one.predictions.p
        return p if p.ndim == 1 else p[:, 1]

    hit = base.predictions.y == 1
    groups = side.predictions.groups
    value, influence = auc_parts(positive(side), hit, side.predictions.weight)
    before, reference = auc_parts(positive(base), hit, side.predictions.weight)
    reach = sum_interval(influence, groups, level)
    apart = sum_interval(influence - reference, groups, level)
    change = value - before
    return _row(
        side,
        side is base,
        "AUC",
        "",
        (value, value - reach, value + reach),
        math.nan,
        (change, change - apart, change + apart),
    )


def _figure(
    side: _Side,
    variable: Variable | None,
    options: BinOptions,
    part: Ints,
    n_parts: int,
    level: float,
    seed: int,
) -> _Figure:
    claim = side.claim
    along = variable or Variable("confidence", "numeric", claim.score)
    if variable is None:
        options = {**options, "bins": None}
    found: Profile = profile(side.predictions, claim, along, options)
    measured = with_p(
        measure(found.coarse, level),
        profile_test(
            found,
            rows_behind(side.predictions, claim, along, found),
            grouped=side.predictions.unit is not None,
            random_state=seed,
        ),
        level,
    )
    by_part = bin_rows(
        found.coarse.bins,
        [along],
        claim.score,
        claim.hit,
        side.predictions.weight,
        part,
        n_parts,
    )
    return _Figure(found, measured, debiased_without(by_part))


def _error_row(
    side: _Side, figure: _Figure, base: _Figure, variable: str, level: float
) -> ComparisonRow:
    metric = "VECE" if variable else "ECE"
    measured = figure.measured
    change = measured.debiased - base.measured.debiased
    apart = figure.without - base.without
    n = len(apart)
    se = math.sqrt((n - 1) / n * float(((apart - apart.mean()) ** 2).sum()))
    reach = float(stdtrit(n - 1, 0.5 + level / 2)) * se
    return _row(
        side,
        figure is base,
        metric,
        variable,
        (measured.debiased, measured.low, measured.high),
        measured.noise_high,
        (change, change - reach, change + reach),
        within_noise=measured.p_value > 1 - level,
    )


def _row(
    side: _Side,
    baseline: bool,
    metric: str,
    variable: str,
    value: tuple[float, float, float],
    noise: float,
    change: tuple[float, float, float],
    *,
    within_noise: bool = False,
) -> ComparisonRow:
    if baseline:
        verdict, change = BASELINE, (0.0, 0.0, 0.0)
    else:
        verdict = _verdict(metric, change, within_noise)
    return ComparisonRow(side.name, metric, variable, *value, noise, *change, verdict)


def _verdict(metric: str, change: tuple[float, float, float], within_noise: bool) -> str:
    _, low, high = change
    if metric in HIGHER_IS_BETTER:
        low, high = -high, -low
    if high < 0:
        return FIXED if within_noise else BETTER
    return MADE_WORSE if low > 0 else UNCHANGED
