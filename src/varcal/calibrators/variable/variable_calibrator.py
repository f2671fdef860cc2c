"""The variable calibrator: score and all variables, each as far as held-out rows support it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from varcal._arrays import AnyArray, Floats
from varcal._options import check_level, check_share, one_of, or_none
from varcal._threads import one_blas_thread
from varcal.calibrators import steps
from varcal.calibrators.calibrator import Calibrator, parameter
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.rows import (
    CalibrationRows,
    consistent,
    row_counts,
    warn_of_sampling_weights,
)
from varcal.calibrators.schema import Schema
from varcal.calibrators.steps import Step
from varcal.calibrators.variable.columns import pool_rare_levels
from varcal.calibrators.variable.dependence import (
    ORDER_CAUTION,
    Given,
    Judgement,
    Record,
    judgement_of,
    warn_of_few_units,
)
from varcal.calibrators.variable.explain import Effects, Term, effects_of, terms_of, words_of
from varcal.calibrators.variable.many_classes import ClassesModel, fit_many_classes
from varcal.calibrators.variable.shrinkage import Stage, content_order
from varcal.calibrators.variable.two_classes import TILT, LogisticModel, fit_two_classes
from varcal.exceptions import InputError


@dataclass(eq=False, repr=False, kw_only=True)
class VariableCalibrator(Calibrator):
    r"""Calibration by score and many variables together, each as far as the data support it.

    Two classes: corrections of the logit z of the score, one after another,

    .. math:: e_1 = z + a\,(s(z) - z), \qquad e_2 = e_1 + b\,(m(z, v) - e_1), \qquad
              e_3 = e_2 + c\,(e_1 + t(z, v) - e_2), \\
              m = s(z) + \sum_j f_j(v_j) + \sum_{(j,k)} h_{jk}(v_j, v_k),

    a curve s of the score; an additive model m with smooth functions of numbers and dates, random
    effects of categories, effects of missing values and, where residuals ask for them, jumps and
    surfaces of a few pairs; and boosted trees t. The smoothness of every function is estimated from
    the data (REML), and logits are moderated by their posterior variance. More classes: a linear
    map of the log-probabilities that is shrunk towards the identity, a power of the probabilities
    that depends on the variables, and trees.

    How much of each correction is applied (a, b, c) is judged on held-out rows: the share with the
    least loss, as far as its gain is more than chance. Scores that need no correction stay as they
    are, and so do all scores below 20 rows. If a correction is fully applied, the mean probability
    of the calibration rows is the mean outcome.

    A weight of 2 is the same as repeating the row. Weights that are all below 1 are scaled to their
    effective number of rows. Weights that are not whole numbers and are far above 1 cause a
    warning: divide sampling weights by their mean. The rows of a group are held out together and
    count as one observation; with fewer than 5 groups the scores stay unchanged. With `time`,
    corrections are judged on periods that are later than the rows that fitted them. Without either,
    the fit tests whether rows of the same day, of the same value of a number, or of the same
    crossing of two variables are correlated in a way that the model does not explain. Where they
    are, it warns, holds such blocks out together, and applies only what helps in blocks that it has
    not seen (`blocks`). Intervals assume independent rows.

    Scores of 0 and 1 are read as half the least positive score, or half a row if that is less, and
    what is corrected is mixed with one row's part of the mean outcome: no probability is surer
    than the rows. Without variables this is a score-based calibrator. An unseen category gets the
    mean effect, or, where a variable has more than 200 rare categories, the effect that these
    share. A number beyond the fitted range gets that of the end of the range. Nothing is random,
    and the order of rows does not matter.

    Parameters
    ----------
    trees : bool
        Whether to try boosted trees. They are a second model inside the calibrator; False leaves
        curves, which `effects` shows completely.
    monotone : bool
        Whether the probability must not fall when the score rises and V is fixed (two classes);
        excludes trees and pairs.
    preserve_ranking : bool
        Whether to keep the order of all rows by score, and so the AUC. Variables cannot change
        that order, so only the score is calibrated. With more classes, the order of the classes
        within each row is kept.
    max_shift : float, optional
        The largest change of a probability; the mean may then differ from the mean outcome.

    Attributes
    ----------
    model_ : LogisticModel or ClassesModel
        The model.
    stages_ : tuple of Stage
        Every correction: how much of it is applied, and what it saves on held-out rows.
    terms_ : tuple of Term
        Every variable, the score and the pairs: effective degrees of freedom, how much they
        changed probabilities, and whether there is evidence for them.
    score_share_, variables_share_, trees_share_ : float
        How much of the correction by score, by variables and by trees is applied.
    judged_ : Judgement
        Which rows were held out together.
    schema_ : Schema
        The variables.

    References
    ----------
    S. N. Wood, M. Fasiolo (2017), A generalized Fellner-Schall method for smoothing parameter
    optimization, Biometrics 73.
    P. H. C. Eilers, B. D. Marx (1996), Flexible smoothing with B-splines and penalties,
    Statistical Science 11.
    M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach (2019), Beyond
    temperature scaling, NeurIPS.

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

    trees: bool = parameter(True, one_of(True, False))
    monotone: bool = parameter(False, one_of(True, False))
    preserve_ranking: bool = parameter(False, one_of(True, False))
    max_shift: float | None = parameter(None, or_none(check_share))
    model_: LogisticModel | ClassesModel = field(init=False)
    stages_: tuple[Stage, ...] = field(init=False)
    terms_: tuple[Term, ...] = field(init=False)
    judged_: Judgement = field(init=False)
    schema_: Schema = field(init=False)
    _uses_variables = True
    _uses_groups = True

    @property
    def score_share_(self) -> float:
        """How much of the correction by score is applied."""
        return self.stages_[0].share

    @property
    def variables_share_(self) -> float:
        """How much of the correction by variables is applied."""
        return self._share("variables")

    @property
    def trees_share_(self) -> float:
        """How much of the trees is applied."""
        return self._share("trees")

    def _share(self, name: str) -> float:
        return next((stage.share for stage in self.stages_ if stage.name == name), 0.0)

    def _learn(self, rows: CalibrationRows) -> None:
        if self.monotone and rows.n_classes > 2:
            raise InputError(
                f"monotone=True needs two classes; y has {rows.n_classes}",
                "leave out monotone, or calibrate one class against the rest",
            )
        warn_of_few_units(rows)
        self.schema_ = Schema()
        if rows.variables:
            self.schema_ = Schema.of(rows.variables, type(self).__name__)
        if rows.weight is not None:
            warn_of_sampling_weights(rows.weight)
            rows = rows.weighted(row_counts(rows.weight))
        mass = np.ones(len(rows)) if rows.weight is None else rows.weight
        self.schema_ = pool_rare_levels(self.schema_, rows.variables, mass)
        columns = self._columns(rows)
        # The order of rows must not decide how their sums are rounded.
        order = content_order(rows.p, rows.y, [rows.weight, rows.groups, rows.time, *columns])
        looked_at = rows.variables if rows.look_for_blocks else ()
        variables = tuple(each.take(order) for each in looked_at)
        rows, columns, mass = rows.take(order), [each[order] for each in columns], mass[order]
        given = Given(
            rows.p,
            rows.y,
            mass,
            columns,
            self.schema_.n_levels()[: len(columns)],
            rows.groups,
            rows.time,
            variables,
            order,
        )
        record: Record
        if rows.p.ndim == 1:
            monotone, tilt = self.monotone or self.preserve_ranking, TILT * self.preserve_ranking
            self.model_, record = fit_two_classes(
                given, trees=self.trees, monotone=monotone, tilt=tilt
            )
        else:
            self.model_, record = fit_many_classes(
                given, trees=self.trees, plain=self.preserve_ranking
            )
        self.judged_ = judgement_of(rows, record.found)
        self._caution: tuple[str, ...] = ()
        if record.found is not None and record.fallen:
            self._caution = (self.judged_.caution(),)
        elif record.neighbours:
            self._caution = (ORDER_CAUTION,)
        self.stages_ = record.stages
        self.terms_ = terms_of(record, self.schema_.names, self.model_, given)

    def _cautions(self) -> tuple[str, ...]:
        return self._caution

    def _columns(self, rows: CalibrationRows) -> list[AnyArray]:
        """Return the variables that the model uses."""
        columns = self.schema_.coded(rows.variables)
        return [] if self.preserve_ranking and rows.n_classes == 2 else columns

    @one_blas_thread()
    def _answer(self, rows: CalibrationRows) -> Floats:
        return evaluate(self._outputs, rows.p, self._columns(rows), self.schema_.n_levels())

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        answer = self.model_.steps(scores)
        if self.max_shift is None:
            return answer
        before = steps.join(scores)
        change = (steps.join(answer) - before).named("change")
        most = steps.largest(steps.elementwise("abs", change))
        most = steps.clipped(most, 1e-300, np.inf).named("most")
        share = steps.where(
            steps.less(self.max_shift, most), steps.constant(self.max_shift) / most, 1.0
        )
        return steps.items(before + change * share)

    @one_blas_thread()
    def predict_interval(
        self, p: object, X: object = None, *, level: float = 0.95, from_logits: bool = False
    ) -> tuple[Floats, Floats]:
        """Return intervals of the calibrated probabilities.

        They are normal around the calibrated logit. Their variance is that of the additive model
        and of jumps, as far as residuals leave open whether, where and how far effects jump.
        Where trees and curves differ, either may be
        right. With more classes they come from the posterior of the log-probability map and
        of the power. They are intervals of the probability of an outcome, not of the outcome. With
        `max_shift` they end where predictions must end.

        Parameters
        ----------
        p, X, from_logits
            As for `predict_proba`.
        level : float
            The coverage of the intervals, on average over rows.

        Returns
        -------
        low, high : ndarray of shape (n, K)
        """
        check_level(level)
        rows = self._new_rows(p, X, from_logits)
        with consistent(self.read_from_file):
            reach, answer = float(ndtri(0.5 + level / 2)), self._answer(rows)
            low, high = self.model_.interval(
                rows.p, self._columns(rows), self.schema_.n_levels(), reach
            )
            if self.max_shift is not None:
                before = rows.columns()
                low = np.maximum(low, before - self.max_shift)
                high = np.minimum(high, before + self.max_shift)
            return np.minimum(low, answer), np.maximum(high, answer)

    @one_blas_thread()
    def effects(self) -> Effects:
        """Return the effect of each variable on the probability, as curves with bands.

        With trees these show their mean effects; what trees do beyond that is not in any curve.
        """
        self._check_fitted()
        with consistent(self.read_from_file):
            return effects_of(self.model_, self.schema_, self.terms_)

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        trees, names = self.model_.trees, self.schema_.names
        words, table = words_of(self.stages_, self.terms_, trees, names)
        if self.trees and names and (self.monotone or self.preserve_ranking):
            option = "monotone" if self.monotone else "preserve_ranking"
            words.append(f"No trees: {option}=True excludes them.")
        return " ".join([*words, str(self.judged_)]).strip(), table
