"""Dirichlet calibration: logits that are linear in the log-probabilities of all classes."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from varcal._arrays import Floats
from varcal._options import EPS, check_eps, check_not_negative, one_of, or_none
from varcal._threads import one_blas_thread
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.softmax import blocks, fit_softmax, softmax
from varcal.calibrators.steps import Step, clipped, constant, dot, join, log
from varcal.calibrators.steps import softmax as softmax_steps


class DirichletCalibrator(Calibrator):
    r"""Dirichlet calibration: a full linear map of the log-probabilities.

    .. math:: q \propto \exp(W \ln p + b), \qquad
              \min_{W, b}\ \text{mean log-loss} + \lambda \|W - W_0\|^2 + \mu \|b\|^2

    Any number of classes; K² + K parameters.

    Parameters
    ----------
    l2 : float
        λ.
    l2_intercept : float, optional
        μ; None means λ.
    penalty : {"all", "off_diagonal"}
        Whether λ applies to all of W or only off its diagonal (ODIR).
    toward : {"identity", "zero"}
        W₀. Towards the identity, few rows change little; towards zero, as first published, they
        give flat probabilities. With zero, the last rows of W and b are fixed at 0.
    eps : float
        The least p before taking the logarithm.

    Attributes
    ----------
    coef_ : ndarray of shape (K, K)
        W.
    intercept_ : ndarray of shape (K,)
        b.

    References
    ----------
    M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach (2019), Beyond
    temperature scaling, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
    >>> fit = DirichletCalibrator(l2=0.1).fit(p, [0, 1, 1, 2])
    >>> fit.predict_proba(p[:1]).round(3)
    array([[0.74 , 0.216, 0.045]])
    """

    _state = ("coef_", "intercept_")
    _parameters: ClassVar = {
        "l2": check_not_negative,
        "l2_intercept": or_none(check_not_negative),
        "penalty": one_of("all", "off_diagonal"),
        "toward": one_of("identity", "zero"),
        "eps": check_eps,
    }

    def __init__(
        self,
        *,
        l2: float = 1e-3,
        l2_intercept: float | None = None,
        penalty: Literal["all", "off_diagonal"] = "all",
        toward: Literal["identity", "zero"] = "identity",
        eps: float = EPS,
    ) -> None:
        self.l2 = l2
        self.l2_intercept = l2_intercept
        self.penalty = penalty
        self.toward = toward
        self.eps = eps

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: λ = μ = 1e-3, towards zero."""
        return cls(toward="zero", eps=2.2e-308)

    def _learn(self, rows: CalibrationRows) -> None:
        k = rows.n_classes
        identity = np.hstack([np.eye(k), np.zeros((k, 1))])
        weights = np.full((k, k + 1), float(self.l2))
        if self.penalty == "off_diagonal":
            np.fill_diagonal(weights, 0.0)
        weights[:, -1] = self.l2 if self.l2_intercept is None else self.l2_intercept
        free = np.ones((k, k + 1), dtype=bool)
        target, start = identity, identity
        if self.toward == "zero":
            free[-1] = False
            target, start = np.zeros((k, k + 1)), identity - identity[-1]
        logs = np.log(np.maximum(rows.columns(), self.eps))
        fit = fit_softmax(
            _Full(np.hstack([logs, np.ones((len(rows), 1))])),
            rows.y,
            rows.weight,
            k,
            penalty=weights.ravel(),
            target=target.ravel(),
            start=start.ravel(),
            free=free.ravel(),
        )
        theta = fit.theta.reshape(k, k + 1)
        self.coef_, self.intercept_ = theta[:, :k].copy(), theta[:, k].copy()
        self.separated_ = fit.separated

    @one_blas_thread()
    def _answer(self, rows: CalibrationRows) -> Floats:
        answer = np.empty((len(rows), rows.n_classes))
        for part in blocks(len(rows), rows.n_classes):
            logs = np.log(np.maximum(rows.block(part).columns(), self.eps))
            answer[part] = softmax(logs @ self.coef_.T + self.intercept_)
        return answer

    def _steps(self, scores: tuple[Step, ...], *, exact: bool = True) -> tuple[Step, ...]:
        logs = log(clipped(join(scores), self.eps, np.inf)).named("log_p")
        logits = dot(logs, self.coef_.T) + constant(self.intercept_)
        q = softmax_steps(logits.named("logit"))
        return tuple(q.item(k) for k in range(q.width))

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        off = self.coef_ - np.diag(np.diag(self.coef_))
        words = (
            "The logit of each class is a sum of coefficients times ln(p) of all classes, plus an "
            f"intercept; the largest one off the diagonal is {np.abs(off).max():.3g} in size."
        )
        table = [
            {"class": str(label)}
            | {f"ln p({other})": float(w) for other, w in zip(self.classes_, row, strict=True)}
            | {"intercept": float(shift)}
            for label, row, shift in zip(self.classes_, self.coef_, self.intercept_, strict=True)
        ]
        return words, table


class _Full:
    """Logits W·x of features x = (ln p, 1)."""

    def __init__(self, features: Floats) -> None:
        self.features = features
        self.k = features.shape[1] - 1
        self.n_parameters = self.k * (self.k + 1)

    def logits(self, theta: Floats, rows: slice) -> Floats:
        return np.asarray(self.features[rows] @ theta.reshape(self.k, -1).T)

    def adjoint(self, cells: Floats, rows: slice) -> Floats:
        return np.asarray(cells.T @ self.features[rows]).ravel()

    def squares(self, cells: Floats, rows: slice) -> Floats:
        return np.asarray(cells.T @ self.features[rows] ** 2).ravel()

    def hessian(self, probability: Floats, weight: Floats, rows: slice) -> Floats:
        features, m = self.features[rows], self.k + 1
        rooted = probability * np.sqrt(weight)[:, None]
        wide = (rooted[:, :, None] * features[:, None, :]).reshape(len(features), -1)
        hessian = -(wide.T @ wide)
        for j in range(self.k):
            own = slice(j * m, (j + 1) * m)
            hessian[own, own] += (features * (weight * probability[:, j])[:, None]).T @ features
        return hessian
