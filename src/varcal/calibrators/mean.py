r"""Repair of predicted means: :math:`\mu \exp\{f_0(\log \mu) + \sum_j f_j(v_j)\}`.

One factor, a curve of μ, then variables: each is fitted by quasi-likelihood with the columns and
the penalties of the variable calibrator, and applied as far as held-out deviance supports it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Self

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._files.saved import Kind
from varcal._files.schema import BrokenError, built, plain
from varcal._input.frames import check_indexes, check_lengths, numbers_of
from varcal._input.groups import check_units, group_numbers
from varcal._input.predictions import Predictions, checked_weights, read_variables
from varcal._input.variables import Variable, refuse_rows
from varcal._options import checked, one_of
from varcal._sums.mean_stats import SHARES, variance_power
from varcal._threads import one_blas_thread
from varcal.calibrators.calibrator import NO_VARIABLES, Estimator, parameter
from varcal.calibrators.rows import (
    CalibrationRows,
    consistent,
    row_counts,
    warn_of_sampling_weights,
)
from varcal.calibrators.schema import Schema
from varcal.calibrators.variable.additive import Design, Fitted, Table, screened
from varcal.calibrators.variable.columns import SCORE, heights_at, pool_rare_levels
from varcal.calibrators.variable.losses import MeanLoss
from varcal.calibrators.variable.reml import fit_blocks
from varcal.calibrators.variable.shrinkage import (
    FEW_SAVINGS,
    RAMPS,
    Folds,
    Stage,
    content_order,
    hashed,
    make_folds,
)
from varcal.exceptions import InputError, VarcalWarning, arguments_named

#: Shares of a correction that are tried on held-out rows; those next to 1 are not told from it, as
#: in the variable calibrator.
SHARES_TRIED, NEXT_TO_ONE = np.linspace(0.0, 1.0, 41), 0.9
#: The largest change of log μ that is judged.
LARGEST_LOG = 30.0
#: The largest part of a row in the sum of squared savings, so that one absurd prediction does not
#: decide, and the steps to find the largest saving that has it.
MOST_PART, CLIPS = 0.05, 20
#: Where the ramp of each correction starts, in standard errors.
STARTS = {"factor": RAMPS["variables"], "curve": RAMPS["score"], "variables": RAMPS["variables"]}
#: Rows on which penalties are learned and corrections judged, at most: it bounds memory.
MOST_ROWS = 100_000
#: The least dispersion, so that outcomes equal to their means leave finite weights.
LEAST_DISPERSION = 1e-12
#: The largest amount, and the inverse of the least positive one: fourth powers must not overflow.
MOST_AMOUNT = 1e30


@dataclass(frozen=True, eq=False)
class MeanModel:
    """A repaired mean.

    Attributes
    ----------
    schema : Schema
        The variables.
    tables : tuple of Table
        What the prediction and each variable add to log μ, or to μ / unit with the identity link.
    stages : tuple of Stage
        How much of each correction is applied, and what it saves of the deviance of held-out rows.
    power, unit : float
        The power of the variance, 0 with the identity link; and what amounts are divided by.
    """

    schema: Schema
    tables: tuple[Table, ...]
    stages: tuple[Stage, ...]
    power: float
    unit: float

    def _check_saved(self) -> None:
        """Raise ValueError unless tables are those of known variables."""
        known = {SCORE, *range(len(self.schema.names))}
        if not {each.variable for each in self.tables} <= known or not 0 < self.unit < np.inf:
            raise ValueError("the model reads unknown variables, or has no unit")

    def predict(self, mu: Floats, columns: list[AnyArray]) -> Floats:
        """Return repaired means."""
        z, eta = scaled(mu, self.power, self.unit), np.zeros(len(mu))
        for each in self.tables:
            values = z if each.variable == SCORE else columns[each.variable]
            eta += heights_at(each.knots, each.effect, values)
        return np.asarray(mu * np.exp(eta) if self.power else mu + self.unit * eta)


@dataclass(eq=False, repr=False, kw_only=True)
class MeanCalibrator(Estimator):
    r"""Calibration of predicted means, such as counts, costs or durations, along variables.

    .. math:: \hat\mu = \mu \exp\{f_0(\log \mu) + \sum_j f_j(v_j)\}

    One factor, a smooth curve of μ, then smooth functions of numbers and dates and random effects
    of categories. They are fitted by quasi-likelihood, whose variance is proportional to μ for
    counts (and shares), to :math:`\mu^{1.5}` for amounts with zeros and to μ² for positive amounts;
    the smoothness of each function is estimated from the data (REML). Each of the three
    corrections is applied as far as it lowers the deviance of held-out rows by more than chance:
    means that need no correction stay about as they are, and so do all means below 20 rows.
    Without variables it is a curve of μ, and one factor where a curve does not help.

    A weight of 2 is the same as repeating the row. Missing values have an effect of their own; an
    unseen category gets the mean effect; a number beyond the fitted range gets that of the end of
    the range. Nothing is random, and the order of rows does not matter.

    Parameters
    ----------
    link : {"log", "identity"}
        With "log" corrections multiply, means are positive and outcomes not negative. With
        "identity" corrections are added, and amounts may be negative.

    Attributes
    ----------
    model_ : MeanModel
        The variables, the tables of effects and the corrections with how much of each is applied.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, 4000)
    >>> claims = rng.poisson(age / 50)
    >>> fitted = MeanCalibrator().fit(np.ones(4000), claims, {"age": age})
    >>> bool(abs(fitted.predict([1, 1], {"age": [25, 75]}) - [0.5, 1.5]).max() < 0.1)
    True
    """

    link: str = parameter("log", one_of("log", "identity"))
    model_: MeanModel = field(init=False)

    def fit(
        self,
        mu: object,
        y: object,
        X: object = None,
        *,
        sample_weight: object = None,
        exposure: object = None,
        groups: object = None,
    ) -> Self:
        """Fit on rows that the model was not trained on.

        Parameters
        ----------
        mu : array-like of shape (n,)
            The predicted means.
        y : array-like of shape (n,)
            The outcomes.
        X : array-like, frame or dict of columns, optional
            The variables.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 counts as two equal rows; a row of weight 0 is left out.
        exposure : array-like of shape (n,), optional
            What rates refer to, such as years of insurance: `mu` and `y` are then amounts per unit
            of exposure.
        groups : array-like of shape (n,), optional
            The unit (patient, customer, …) of each row; its rows are held out together.

        Returns
        -------
        self
        """
        self._check_parameters()
        log = self.link == "log"
        rows = mean_rows(mu, X, y, sample_weight, exposure, groups, positive=log)
        if log and not rows.y.any():
            raise InputError("y is 0 at every row", "give rows with outcomes above 0", "y")
        if rows.weight is not None:
            warn_of_sampling_weights(rows.weight, stacklevel=3)
        with one_blas_thread():
            self.model_ = _fitted(rows, log=log)
        self.read_from_file = False
        for name in self.model_.schema.silent:
            problem = f"variable {name!r} is missing at every row, and left out"
            warnings.warn(problem, VarcalWarning, stacklevel=2)
        return self

    def predict(self, mu: object, X: object = None) -> Floats:
        """Return calibrated means.

        Parameters
        ----------
        mu : array-like of shape (n,)
            The predicted means.
        X : array-like, frame or dict of columns, optional
            The variables that the calibrator was fitted on.

        Returns
        -------
        ndarray of shape (n,)
        """
        self._check_fitted()
        schema = self.model_.schema
        rows = mean_rows(mu, X, positive=self.link == "log")
        if schema.names and X is None:
            problem = f"X is missing: the calibrator was fitted on {', '.join(schema.columns)}"
            raise InputError(problem, "call predict(mu, X)", "X")
        schema.check_zones(rows.variables)
        with consistent(self.read_from_file):
            found = self.model_.predict(rows.p, schema.coded(rows.variables))
            if self.read_from_file and not np.isfinite(found).all():
                raise ValueError("means that are not finite")
        return found

    @checked()
    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted calibrator as JSON, which `varcal.load` reads."""
        self._check_fitted()
        MEAN_CALIBRATOR.write(path, {"parameters": self.get_params(), "model": plain(self.model_)})

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        words = []
        for stage in self.model_.stages:
            part = "in full" if stage.share == 1 else f"at {stage.share:.0%}"
            saves = f"saves {stage.gain:.4f} ± {stage.error:.4f} of deviance on held-out rows"
            applied = f"applied {part}; {saves}" if stage.share else "not applied"
            words.append(f"{stage.name.capitalize()}: {applied}.")
        table, kind = [], "factor" if self.model_.power else "change"
        for each in self.model_.tables:
            name = "mu" if each.variable == SCORE else self.model_.schema.names[each.variable]
            ends = np.array([each.effect.min(), each.effect.max()])
            low, high = (np.exp(ends) if self.model_.power else self.model_.unit * ends).tolist()
            table.append({"term": name, f"least {kind}": low, f"largest {kind}": high})
        return " ".join(words), table


def _loaded(document: dict[str, Any]) -> MeanCalibrator:
    """Return the calibrator that the entries of a file describe."""
    parameters = document["parameters"]
    if not isinstance(parameters, dict) or set(parameters) != {"link"}:
        raise BrokenError("its parameters are not those of this version")
    found = MeanCalibrator(**parameters)
    found._check_parameters()
    found.model_ = built(document["model"], MeanModel)
    if (found.model_.power > 0) != (found.link == "log"):
        raise BrokenError("its link is not that of its model")
    found.read_from_file = True
    return found


#: Saved calibrators of means.
MEAN_CALIBRATOR = Kind("mean calibrator", "a saved calibrator of means", 1, _loaded)


def scaled(mu: Floats, power: float, unit: float) -> Floats:
    """Return what tables of the prediction are read at: log μ or μ, in units."""
    return np.asarray(np.log(mu / unit) if power else mu / unit)


def repaired(
    learn: Predictions, held: Predictions, exposure: Floats | None, *, log: bool, stages: int
) -> Floats:
    """Learn the first corrections from some checked rows, and return the means of others."""
    rows = CalibrationRows(
        learn.p, (), learn.y, learn.weight, learn.variables, learn.groups, exposure=exposure
    )
    model = _fitted(rows.with_weight(), log=log, stages=stages)
    return model.predict(held.p, model.schema.coded(held.variables))


def _fitted(rows: CalibrationRows, *, log: bool, stages: int = len(STARTS)) -> MeanModel:
    """Fit the first corrections one after another, each from where the one before it ends."""
    mass = np.ones(len(rows)) if rows.weight is None else row_counts(rows.weight)
    schema = Schema.of(rows.variables, "MeanCalibrator") if rows.variables else NO_VARIABLES
    schema = pool_rare_levels(schema, rows.variables, mass)
    columns = schema.coded(rows.variables)
    # The order of rows must not decide how their sums are rounded.
    order = content_order(rows.p, rows.y, [mass, rows.exposure, rows.groups, *columns])
    rows, mass = rows.take(order), mass[order]
    columns = [each[order] for each in columns]
    power = variance_power(rows.y, rows.p, rows.exposure) if log else 0.0
    power = 1.0 if power == SHARES else power
    weight = mass if rows.exposure is None else mass * (rows.exposure / rows.exposure.mean())
    unit = float(weight @ rows.y / weight.sum()) if log else float(np.std(rows.y - rows.p)) or 1.0
    z = scaled(rows.p, power, unit)
    loss = MeanLoss(rows.y / unit, weight, z, power)
    loss = replace(loss, weight=weight / dispersion(loss, mass))
    design = Design.of(z, columns, schema.n_levels(), mass, (float(z.min()), float(z.max())))
    some = slice(0, MOST_ROWS)  # in the order of a hash, so that the first rows are a sample
    part, held, count = loss.take(some), [each[some] for each in columns], mass[some]
    groups = None if rows.groups is None else rows.groups[some]
    folds = make_folds(hashed([part.offset, *held]), rows.y[some], count, groups, None)
    bare = replace(design, variables=())
    designs = (replace(bare, score=design.score.narrow(1)), bare, design)
    beta, out, made = np.zeros(0), np.zeros(len(count)), list[Stage]()
    for name, own in list(zip(STARTS, designs, strict=True))[:stages]:
        if name == "variables":
            own = screened(own, held, *part.slopes(out))[0]
        X = own.matrix(part.offset, held)
        if X.shape[1] == len(beta):
            continue
        fit = Fitted(own, X, part, fit_blocks(X, part, own.groups()))
        after = fit.held_out(folds.splits())
        stage = share_of(name, part, count, out, after, folds)
        goal = fit.on_all_rows(z, columns, loss).fit
        beta = np.append(beta, np.zeros(X.shape[1] - len(beta)))
        beta, out = beta + stage.share * (goal.beta - beta), out + stage.share * (after - out)
        covariance, last = goal.covariance, own
        made.append(stage)
    tables = []
    for (k,), span in last.spans().items():
        each = last.by_variable(k)
        variance = np.einsum("ij,jk,ik->i", each.table, covariance[span, span], each.table)
        tables.append(Table(k, each.knots, each.table @ beta[span], variance))
    return MeanModel(schema, tuple(tables), tuple(made), power, unit)


def dispersion(loss: MeanLoss, mass: Floats) -> float:
    """Return Pearson's estimate of the dispersion with one factor."""
    mean = loss.mean(np.zeros(1))
    if loss.power:
        mean = mean * (loss.weight @ loss.y) / (loss.weight @ mean)
    squares = loss.weight * (loss.y - mean) ** 2 / mean**loss.power
    return max(float(squares.sum() / mass.sum()), LEAST_DISPERSION)


def _limited(saved: Floats, mass: Floats) -> Floats:
    """Return savings none of which has more than `MOST_PART` of their sum of squares."""
    most = float(np.abs(saved).max(initial=0.0))
    for _ in range(CLIPS):
        total = float(mass @ np.minimum(np.abs(saved), most) ** 2)
        most = min(most, float(np.sqrt(MOST_PART * total)))
    return np.clip(saved, -most, most)


def share_of(
    name: str, loss: MeanLoss, mass: Floats, before: Floats, after: Floats, folds: Folds
) -> Stage:
    """Return how much of the way between two predictors held-out rows support.

    As `Judge.share`. A gain that few rows carry counts as one of as many rows.
    """
    tested = [np.zeros(len(before), dtype=bool), *(out for _, out in folds.splits())]
    judged = np.logical_or.reduce(tested)
    if not judged.any():
        return Stage(name)
    own, start, count = loss.take(judged), before[judged], mass[judged]
    move = np.clip((after - before)[judged], -LARGEST_LOG, LARGEST_LOG)
    losses = [float(own.rows(start + w * move).sum()) for w in SHARES_TRIED]
    best = float(SHARES_TRIED[int(np.argmin(losses))])
    best = 1.0 if best > NEXT_TO_ONE else best
    rows = float(count.sum())
    saved = own.rows(start) - own.rows(start + best * move)
    slope = best * own.slopes(start)[0] * move
    if folds.units is None:
        saved, slope = saved / count, slope / count
    else:
        unit = np.unique(folds.units[judged], return_inverse=True)[1]
        saved, slope = (np.bincount(unit, x).astype(np.float64) for x in (saved, slope))
        count = np.ones(len(saved))
    plain_gain = float(count @ saved)
    saved, slope = _limited(saved, count), _limited(slope, count)
    gain = min(float(count @ saved), plain_gain) if plain_gain > 0 else 0.0
    spread = saved - count @ saved / count.sum()
    squares = float(count @ spread**2)
    error = max(float(np.sqrt(max(squares, float(count @ slope**2)))), 1e-300)
    fourth = max(float(count @ spread**4), 1e-300)
    independent = min(3 * squares**2 / fourth, float(count.sum()))
    ramp = gain / error - FEW_SAVINGS / max(independent, 1.0) - STARTS[name]
    share = best * float(np.clip(ramp, 0.0, 1.0))
    moved = float(mass[judged] @ np.abs(share * move)) / rows
    # The loss is half the deviance.
    return Stage(name, share, 2 * gain / rows, 2 * error / rows, moved)


def mean_rows(
    mu: object,
    X: object,
    y: object = ...,
    sample_weight: object = None,
    exposure: object = None,
    groups: object = None,
    *,
    positive: bool,
) -> CalibrationRows:
    """Check predicted means, and outcomes unless `y` is ...

    With `positive`, means must be positive and outcomes must not be negative.
    """
    needed = {"mu": mu} if y is ... else {"mu": mu, "y": y}
    if absent := [name for name, each in needed.items() if each is None]:
        raise InputError(f"{absent[0]} is None", "give one number per row", absent[0])
    given = needed | {"sample_weight": sample_weight, "exposure": exposure}
    check_indexes({**given, "X": X, "groups": groups})
    held = {name: numbers_of(each, name) for name, each in given.items() if each is not None}
    unit = None if groups is None else Variable.of(groups, "groups", "groups")
    with arguments_named(v="X"):
        variables = read_variables(X)
    lengths = {name: len(each) for name, each in held.items()}
    lengths |= {f"variable {each.name!r}": len(each) for each in variables}
    check_lengths(lengths | ({} if unit is None else {"groups": len(unit)}), by_name=False)
    held = {name: _amounts(each, name, positive) for name, each in held.items()}
    weight = held.get("sample_weight")
    return CalibrationRows(
        held["mu"],
        (),
        held.get("y", np.empty(0)),
        None if weight is None else checked_weights(weight),
        variables,
        None if unit is None else group_numbers(check_units(unit)),
        exposure=held.get("exposure"),
    ).with_weight()


def _amounts(values: AnyArray, name: str, positive: bool) -> Floats:
    """Refuse values of mu, y or exposure that cannot be used."""
    found: Floats = values.astype(np.float64, copy=False)
    if found.ndim != 1:
        raise InputError(f"{name} has shape {found.shape}", "give one number per row", name)
    if name == "sample_weight":
        return found
    hint = "fill it in, or leave such rows out"
    refuse_rows(~np.isfinite(found), found, name, "is missing or not finite", hint)
    hint = "divide the column by a constant"
    refuse_rows(np.abs(found) > MOST_AMOUNT, found, name, f"is beyond {MOST_AMOUNT:g}", hint)
    hint = 'correct it, or allow amounts of any sign with MeanCalibrator(link="identity")'
    if name == "exposure":
        hint, positive = "exposures are positive: leave such rows out", True
    if positive:
        least = 0.0 if name == "y" else 1 / MOST_AMOUNT
        problem = "is negative" if name == "y" else f"is not positive, or below {least:g}"
        refuse_rows(found < least, found, name, problem, hint)
    return found
