"""The variable calibrator: score and all variables in one additive model."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, ndtri

from varcal._arrays import AnyArray, Floats
from varcal._options import check_level, check_share, one_of, or_none
from varcal._threads import one_blas_thread
from varcal.calibrators._variable import trust
from varcal.calibrators._variable._blocks.correlated_rows import Search
from varcal.calibrators._variable._blocks.judgement import Judgement, cautions, judgement_of
from varcal.calibrators._variable._columns.score_basis import log_odds
from varcal.calibrators._variable._growth.explain_growth import growth_sentences
from varcal.calibrators._variable._growth.growth import Growth
from varcal.calibrators._variable.additive_model import PairTrial
from varcal.calibrators._variable.effects import Effects, Term
from varcal.calibrators._variable.explain import (
    ACTIVE_EVIDENCE,
    applied,
    curves_of,
    pair_name,
    terms_of_fit,
)
from varcal.calibrators._variable.folds import RowKeys, content_order
from varcal.calibrators._variable.intervals import interval_of_predictor, widened
from varcal.calibrators._variable.many_classes import (
    TemperatureModel,
    certainty,
    fit_temperature_model,
)
from varcal.calibrators._variable.model_steps import (
    limited,
    logistic_model_steps,
    temperature_model_steps,
)
from varcal.calibrators._variable.rare_levels import pool_rare_levels
from varcal.calibrators._variable.trust import Trusted
from varcal.calibrators._variable.two_classes import (
    MONOTONE_GRID,
    LogisticModel,
    fit_logistic_model,
)
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.held_out import row_counts, warn_of_sampling_weights
from varcal.calibrators.rows import CalibrationRows, consistent
from varcal.calibrators.schema import Schema
from varcal.calibrators.steps import Step
from varcal.exceptions import InputError

#: Rows on which the sizes of terms are measured.
MEASURED_ROWS = 10_000
#: The least slope along the score's logit with `preserve_ranking`, which keeps distinct scores
#: distinct.
TILT = 1e-5


class VariableCalibrator(Calibrator):
    r"""Calibration by score and many variables together, each as far as the data support it.

    Two classes: a penalized additive model of the logit, shrunk towards the score as it is,

    .. math:: \eta = z + s(z) + \sum_j \{f_j(v_j) + \tilde z\, g_j(v_j)\}
              + \sum_{(j,k)} h_{jk}(v_j, v_k), \qquad z = \mathrm{logit}\, p, \qquad
              \mathrm{logit}\, q = \eta + l(\eta),

    with smooth functions of numbers and dates, random effects of categories, and effects of
    missing values. The last curve, l, is learned from left-out rows, if it helps. More classes: a
    temperature that depends on the same terms, :math:`q_k \propto p_k^{e^\eta}`, and a small
    correction for classes that are confused with one another; the most probable class stays the
    most probable.

    From 300 rows of two classes on, a second stage learns what is left: boosted trees that start at
    the score and, from 2,000 rows on, tables of pairs of variables. Held-out rows decide which
    tables are added and how far trees are mixed in; where they show no gain, the first stage stays
    as it is.

    The smoothness of each function is estimated from the data (REML). A pair of variables gets a
    term of its own only if it lowers the loss of held-out rows. Unless the evidence for the whole
    model is clear, held-out rows decide how far it is trusted over the score alone, and that over
    leaving the scores unchanged: with few rows the result shrinks to score-based calibration, and
    below 20 rows to the identity. Logits are moderated by their posterior variance. If the model
    is fully trusted, the mean probability of the calibration rows equals the mean outcome; if it
    is trusted in part, the mean moves that part of the way.

    A weight of 2 is the same as repeating the row. Weights that are all below 1 are scaled to their
    effective number of rows. Weights that are not whole numbers and are far above 1 cause a
    warning: divide sampling weights by their mean. The rows of a group are held out together and
    count as one observation of how much a model helps, and only held-out groups decide how far it
    is trusted; with fewer than 5 groups the scores stay unchanged. With `time`, models are judged
    on periods that are later than the rows that fitted them. Without either, the fit tests whether
    rows of the same day, of the same value of a number, or of the same crossing of two variables
    are correlated that the model does not explain. Where they do, it warns, holds such blocks out
    together, and trusts only what helps in blocks that it has not seen (`blocks`). Intervals assume
    independent rows.

    A score of exactly 0 or 1 is treated as one a little beyond the least or largest of the
    others. Without variables this is a score-based calibrator. An unseen category gets the mean
    effect, or, where a variable has more than 200 rare categories, the effect that these share.
    A number beyond the fitted range gets that of the end of the range. Nothing is random, and the
    order of rows does not matter.

    Parameters
    ----------
    interactions : {"auto", False}
        Whether to look for interactions of two variables; False also excludes `growth`.
    monotone : bool
        Whether the probability must not fall when the score rises and V is fixed (two classes).
        With variables, prediction takes about sixty times as long.
    preserve_ranking : bool
        Whether to keep the order of all rows by score, and so the AUC. Variables cannot change
        that order, so only the score is calibrated. With more classes, the order of the classes
        within each row is kept.
    max_shift : float, optional
        The largest change of a probability; the mean may then differ from the mean outcome.
    keep_argmax : bool
        With more than two classes, whether the most probable class must stay the same.
    growth : bool
        Whether to add trees and tables of pairs where there are at least 300 rows of two classes
        and held-out rows support them; `monotone` and `preserve_ranking` exclude them.

    Attributes
    ----------
    model_ : LogisticModel or TemperatureModel
        The model.
    terms_ : tuple of Term
        Every variable, the score and the pairs: effective degrees of freedom, how much they
        changed probabilities, and whether there is evidence for them.
    pairs_ : tuple of PairTrial
        The candidate pairs.
    edf_ : float
        Effective degrees of freedom of the model, 0 if none is trusted.
    score_trust_, variables_trust_ : float
        How far the curve of the score is trusted over the scores as they are, and the model of
        all variables over that, between 0 and 1.
    judged_ : Judgement
        Which rows were held out together when trust was judged.
    schema_ : Schema
        The variables.

    References
    ----------
    S. N. Wood, M. Fasiolo (2017), A generalized Fellner-Schall method for smoothing parameter
    optimization, Biometrics 73.
    P. H. C. Eilers, B. D. Marx (1996), Flexible smoothing with B-splines and penalties,
    Statistical Science 11.
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017), On calibration of modern neural networks,
    ICML.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> v = {"age": rng.uniform(20, 80, 3000), "noise": rng.normal(size=3000)}
    >>> p = rng.uniform(0.05, 0.95, 3000)
    >>> y = rng.random(3000) < p ** (v["age"] / 50)
    >>> fit = VariableCalibrator().fit(p, y, v)
    >>> new = {"age": [30, 70], "noise": [0, 0]}
    >>> q = fit.predict_proba([0.5, 0.5], new)[:, 1]
    >>> bool((abs(q - [0.66, 0.38]) < 0.05).all())  # the truth
    True
    >>> low, high = fit.predict_interval([0.5, 0.5], new)
    >>> bool((low[:, 1] < [0.66, 0.38]).all() and (high[:, 1] > [0.66, 0.38]).all())
    True
    >>> [term.name for term in fit.terms_ if term.active]
    ['age']
    """

    model_: LogisticModel | TemperatureModel
    terms_: tuple[Term, ...]
    pairs_: tuple[PairTrial, ...]
    edf_: float
    score_trust_: float
    variables_trust_: float
    judged_: Judgement
    schema_: Schema
    _state = (
        "model_",
        "terms_",
        "pairs_",
        "edf_",
        "score_trust_",
        "variables_trust_",
        "judged_",
        "schema_",
    )
    _parameters: ClassVar = {
        "interactions": one_of("auto", False),
        "monotone": one_of(True, False),
        "preserve_ranking": one_of(True, False),
        "keep_argmax": one_of(True, False),
        "growth": one_of(True, False),
        "max_shift": or_none(check_share),
    }
    _uses_variables = True
    _uses_groups = True

    def __init__(
        self,
        *,
        interactions: Literal["auto", False] = "auto",
        monotone: bool = False,
        preserve_ranking: bool = False,
        max_shift: float | None = None,
        keep_argmax: bool = True,
        growth: bool = True,
    ) -> None:
        self.interactions = interactions
        self.monotone = monotone
        self.preserve_ranking = preserve_ranking
        self.max_shift = max_shift
        self.keep_argmax = keep_argmax
        self.growth = growth

    def _learn(self, rows: CalibrationRows) -> None:
        if self.monotone and rows.n_classes > 2:
            raise InputError(
                f"monotone=True needs two classes; y has {rows.n_classes}",
                "leave out monotone, or calibrate one class against the rest",
            )
        if rows.groups is not None:
            trust.warn_of_few(len(np.unique(rows.groups)), rows.together or "groups", "unit")
        elif rows.time is not None:
            trust.warn_of_few(len(np.unique(rows.time)), "time", "instant")
        self.schema_ = (
            Schema.of(rows.variables, type(self).__name__) if rows.variables else Schema((), (), ())
        )
        columns = self._columns(rows)
        n_levels = [len(levels) for levels in self.schema_.levels[: len(columns)]]
        if rows.weight is not None:
            warn_of_sampling_weights(rows.weight)
            rows = rows.weighted(row_counts(rows.weight))
        # The order of rows must not decide how their sums are rounded.
        order = content_order(rows.p, rows.y, [rows.weight, rows.groups, rows.time, *columns])
        search = Search.of(rows.variables, order) if rows.look_for_blocks else None
        rows, columns = rows.take(order), [column[order] for column in columns]
        model: LogisticModel | TemperatureModel
        if rows.p.ndim == 1:
            z = log_odds(rows.p)
            model, fitted = fit_logistic_model(
                rows.p,
                rows.y.astype(np.float64),
                columns,
                n_levels,
                rows.weight,
                groups=rows.groups,
                time=rows.time,
                search=search,
                interactions=bool(self.interactions),
                monotone=self.monotone or self.preserve_ranking,
                tilt=TILT if self.preserve_ranking else 0.0,
                growth=self.growth,
            )
        else:
            z = certainty(rows.p)
            model, fitted = fit_temperature_model(
                rows.p,
                rows.y,
                columns,
                n_levels,
                rows.weight,
                groups=rows.groups,
                time=rows.time,
                search=search,
                interactions=bool(self.interactions),
                keep_argmax=self.keep_argmax,
                confusions=not self.preserve_ranking,
            )
        self.model_ = model
        self.judged_ = judgement_of(fitted, rows)
        self._caution = cautions(self.judged_, fitted)
        self._record_terms(fitted, rows, z, columns)
        self.model_, self.schema_ = pool_rare_levels(self.model_, self.schema_)

    def _cautions(self) -> tuple[str, ...]:
        return self._caution

    def _columns(self, rows: CalibrationRows) -> list[AnyArray]:
        """Return the variables that the model uses."""
        columns = self.schema_.align(rows.variables, unseen=-2)
        return [] if self.preserve_ranking and rows.n_classes == 2 else columns

    def _record_terms(
        self, fitted: Trusted, rows: CalibrationRows, z: Floats, columns: list[AnyArray]
    ) -> None:
        """Set the attributes that describe the fit."""
        live = [columns[k] for k in self.model_.full.design.live()]
        some = RowKeys.of(rows.p, rows.y, rows.weight, z, live).sample(MEASURED_ROWS)
        part = rows.block(some)
        here = [column[some] for column in columns]
        mass = np.ones(len(some)) if rows.weight is None else rows.weight[some]
        eta = self._predictor(part.p, here)
        before = self._top(part.p, eta)

        def moved(taken: Floats) -> float:
            return float(mass @ np.abs(before - self._top(part.p, eta - taken)) / mass.sum())

        names = self.schema_.names
        largest, share = fitted.full, fitted.full_share
        unapplied: dict[str, float] = {}
        if not share:
            full = terms_of_fit(largest, z[some], here, names, share, moved)
            unapplied = {term.name: term.evidence for term in full}
            largest, share = fitted.score, fitted.score_share
            here = []
        terms = terms_of_fit(largest, z[some], here, names, share, moved, unapplied)
        self.terms_ = terms
        self.pairs_ = fitted.full.trials
        self.edf_ = float(sum(term.edf for term in terms))
        self.score_trust_, self.variables_trust_ = fitted.score_share, fitted.full_share

    def _predictor(self, p: Floats, columns: list[AnyArray]) -> Floats:
        if isinstance(self.model_, LogisticModel):
            return self.model_.log_odds(p, columns)
        return self.model_.log_power(p, columns)

    def _top(self, p: Floats, eta: Floats) -> Floats:
        """Return the probability of the second class, or with more classes the largest one."""
        if isinstance(self.model_, LogisticModel):
            return np.asarray(expit(eta))
        return np.asarray(self.model_.probabilities(p, eta).max(axis=1))

    @one_blas_thread()
    def _answer(self, rows: CalibrationRows) -> Floats:
        columns = self._columns(rows)
        return self._limited(rows, self._probabilities(rows.p, self._predictor(rows.p, columns)))

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        with_variables = bool(self.schema_.names) and not (
            self.preserve_ranking and len(scores) == 2
        )
        if not isinstance(self.model_, LogisticModel):
            answer = temperature_model_steps(self.model_, scores, exact=True)
        elif self.model_.monotone and with_variables:
            raise InputError(
                "monotone=True cannot be exported: a prediction is the largest of up to "
                f"{MONOTONE_GRID + MONOTONE_GRID // 2} predictions at other scores",
                "fit without monotone, or use preserve_ranking=True, which can be exported",
            )
        else:
            answer = logistic_model_steps(
                self.model_, scores[1], with_variables=with_variables, exact=True
            )
        return limited(answer, scores, self.max_shift)

    def _probabilities(self, p: Floats, eta: Floats) -> Floats:
        if not isinstance(self.model_, LogisticModel):
            return self.model_.probabilities(p, eta)
        return np.column_stack([expit(-eta), expit(eta)])

    def _limited(self, rows: CalibrationRows, answer: Floats) -> Floats:
        """Limit the change of scores to `max_shift`."""
        if self.max_shift is None:
            return answer
        before = rows.columns()
        if rows.p.ndim == 1:
            kept = np.clip(answer[:, 1], rows.p - self.max_shift, rows.p + self.max_shift)
            return np.column_stack([1.0 - kept, kept])
        most = np.abs(answer - before).max(axis=1)
        share = np.where(most > self.max_shift, self.max_shift / np.maximum(most, 1e-300), 1.0)
        return np.asarray(before + share[:, None] * (answer - before))

    @one_blas_thread()
    def predict_interval(
        self, p: object, X: object = None, *, level: float = 0.95
    ) -> tuple[Floats, Floats]:
        """Return intervals of the calibrated probabilities.

        They come from the posterior of the model with all variables: of the logit, or with more
        classes of the log inverse temperature and of the correction of each class's logit, normal
        around the prediction. With two classes, what smooth curves leave out, as far as residuals
        show it, is added. They are intervals of the probability of an outcome, not of the outcome.
        With `max_shift` they end where predictions must end. With more classes and
        `keep_argmax=True`, the probability of a class that would have become the largest, and was
        limited, may lie outside.

        Parameters
        ----------
        p, v
            As for `predict_proba`.
        level : float
            The coverage of the intervals, on average over rows.

        Returns
        -------
        low, high : ndarray of shape (n, K)
        """
        check_level(level)
        rows = self._new_rows(p, X)
        with consistent(self.read_from_file):
            return self._interval(rows, level)

    def _interval(self, rows: CalibrationRows, level: float) -> tuple[Floats, Floats]:
        columns = self._columns(rows)
        eta = self._predictor(rows.p, columns)
        reach = float(ndtri(0.5 + level / 2)) * self.model_.error(rows.p, columns, eta)
        answer = self._limited(rows, self._probabilities(rows.p, eta))
        low, high = interval_of_predictor(
            answer, eta, reach, lambda other: self._probabilities(rows.p, other)
        )
        if isinstance(self.model_, TemperatureModel):
            wide = float(ndtri(0.5 + level / 2)) * self.model_.class_error(rows.p)
            low, high = widened(answer, low, -wide), widened(answer, high, wide)
        if self.max_shift is not None:
            before = rows.columns()
            low = np.maximum(low, np.minimum(answer, before - self.max_shift))
            high = np.minimum(high, np.maximum(answer, before + self.max_shift))
        return low, high

    @one_blas_thread()
    def effects(self) -> Effects:
        """Return the effect of each variable on the probability, as curves with bands."""
        self._check_fitted()
        binary = isinstance(self.model_, LogisticModel)
        with consistent(self.read_from_file):
            curves = (
                ()
                if self.preserve_ranking and binary
                else curves_of(
                    self.model_.full, self.schema_, self.model_.full_share, expit, self._growth
                )
            )
        scale = "logit" if binary else "log inverse temperature"
        return Effects(scale, curves, self.terms_)

    @property
    def _growth(self) -> Growth | None:
        """The second stage, if there is one."""
        return self.model_.growth if isinstance(self.model_, LogisticModel) else None

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        names = self.schema_.names
        own = [pair_name(trial.pair, names) for trial in self.pairs_ if trial.admitted]
        inactive = [term for term in self.terms_ if not term.active]
        weak = [term.name for term in inactive if term.evidence > ACTIVE_EVIDENCE]
        off = [term.name for term in inactive if term.name not in weak]
        words = [
            f"{self.edf_:.1f} effective degrees of freedom.",
            f"Score correction: {applied(self.score_trust_)}.",
            f"Variable correction: {applied(self.variables_trust_)}." if names else "No variables.",
        ]
        if own:
            words.append(f"Pairs with a term of their own: {', '.join(own)}.")
        if weak:
            words.append(f"Some evidence, but too little to be applied: {', '.join(weak)}.")
        if off:
            words.append(f"Little or no evidence for: {', '.join(off)}.")
        if self._growth is not None:
            words += growth_sentences(self._growth, names)
        elif self.growth and names and (self.monotone or self.preserve_ranking):
            option = "monotone" if self.monotone else "preserve_ranking"
            words.append(f"No tables and trees: {option}=True excludes them.")
        if str(self.judged_):
            words.append(str(self.judged_))
        table = [
            {
                "term": term.name,
                "edf": round(term.edf, 2),
                "moved": round(term.moved, 5),
                "evidence": round(term.evidence, 1),
            }
            for term in self.terms_
        ]
        return " ".join(words), table
