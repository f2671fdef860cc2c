"""Calibrators that map one score: Platt, beta, isotonic, histogram and scaling-binning."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from varcal import _options as options
from varcal._arrays import AnyArray, Floats
from varcal._options import EPS, one_of
from varcal.calibrators import steps
from varcal.calibrators.calibrator import Calibrator, parameter
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.regression import fit_logistic
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.steps import Step, equal, where


@dataclass(eq=False, repr=False)
class OneVsRestCalibrator(Calibrator):
    """One map for two classes; for more, one per class against the rest, then normalized.

    A subclass fits a map, a frozen dataclass of its parameters (`_map`), and says what it does
    (`_map_steps`). A row for which all maps give 0 keeps its uncalibrated probabilities.

    Attributes
    ----------
    maps_ : list
        One fitted map for two classes, K for more; None leaves the score unchanged, for a class
        that no row, or every row, belongs to.
    floor_ : float
        How far scores are kept from 0 and 1 before a logarithm is taken.
    """

    maps_: list[Any] = field(init=False)
    floor_: float = field(init=False)
    #: What a description calls the heights of a map.
    _pieces: ClassVar[str] = "bins"

    def _learn(self, rows: CalibrationRows) -> None:
        self.floor_ = rows.floor(getattr(self, "eps", None))
        columns = {1: rows.p} if rows.p.ndim == 1 else dict(enumerate(rows.p.T))
        self.maps_ = [
            self._fit_map(np.ascontiguousarray(score), rows.y == k, rows.weight)
            for k, score in columns.items()
        ]

    def _fit_map(self, score: Floats, hit: Any, weight: Floats | None) -> Any:
        one_outcome = hit.all() or not hit.any()
        return None if one_outcome else self._map(score, hit.astype(np.float64), weight)

    @abstractmethod
    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> Any:
        """Fit one map on rows with both outcomes."""

    def _map_steps(self, fitted: Any, score: Step) -> tuple[Step, Step]:
        """Return the steps of a map to the probabilities of "no" and "yes"."""
        q = steps.take(steps.find(score, fitted.knots), fitted.heights)
        return 1.0 - q, q

    def _mapped(self, fitted: Any, score: Step) -> tuple[Step, Step]:
        return (1.0 - score, score) if fitted is None else self._map_steps(fitted, score)

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        if len(self.maps_) == 1:
            return self._mapped(self.maps_[0], scores[1])
        pairs = zip(self.maps_, scores, strict=True)
        cells = steps.join([self._mapped(*pair)[1] for pair in pairs]).named("cell")
        some = steps.less(0.0, steps.total(cells))
        kept = where(some, cells, steps.join(scores)).named("kept")
        return steps.items(kept / steps.total(kept))

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        rows = [{} if each is None else self._row(each) for each in self.maps_]
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = [
            {"class": str(label)} | {name: row.get(name) for name in names}
            for label, row in zip(self._mapped_classes(), rows, strict=True)
        ]
        return self._sentence(), table

    def _row(self, fitted: Any) -> dict[str, Any]:
        """Return what the table of `describe` says of a map."""
        lowest, highest = float(fitted.heights.min()), float(fitted.heights.max())
        return {self._pieces: fitted.heights.size, "lowest": lowest, "highest": highest}

    def _inside(self, score: Step) -> Step:
        """Return a score that is kept away from 0 and 1."""
        return steps.clipped(score, self.floor_, 1.0 - max(self.floor_, EPS)).named("inside")

    def _logit(self, score: Step) -> Step:
        inside = self._inside(score)
        return steps.log(inside / (1.0 - inside)).named("logit")

    def _mapped_classes(self) -> AnyArray:
        """Return the class of each map."""
        return self.classes_[1:] if len(self.maps_) == 1 else self.classes_

    @abstractmethod
    def _sentence(self) -> str:
        """Describe the map in words."""


@dataclass(frozen=True, eq=False)
class LinearMap:
    """logit q = coefficients · features + intercept."""

    coef: Floats
    intercept: float


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticCalibrator(OneVsRestCalibrator):
    """A logistic curve of features of the score, with a penalty on their coefficients."""

    l2: float = parameter(0.0, options.check_not_negative)
    eps: float | None = parameter(None, options.or_none(options.check_eps))

    def _features(self, score: Step) -> tuple[Step, ...]:
        """Return the steps to the features of a score, which `_terms` names."""
        return (self._logit(score),)

    @property
    def _terms(self) -> tuple[str, ...]:
        return ("logit p",)

    def _targets(self, hit: Floats, weight: Floats | None) -> Floats:
        """Return what the curve is fitted to."""
        return hit

    def _constraints(self) -> dict[str, Any]:
        """Return the penalty of the features and further arguments of `fit_logistic`."""
        return {"l2": self.l2}

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> Any:
        return self._fit_curve(score, hit, weight)

    def _fit_curve(
        self,
        score: Floats,
        hit: Floats,
        weight: Floats | None,
        added: Sequence[Floats] = (),
        l2_added: float = 0.0,
    ) -> LinearMap:
        """Fit the curve to features of the score and to added ones."""
        own, given = evaluate(self._features(steps.score(1)), score).T, self._constraints()
        given["l2"] = np.repeat([given["l2"], l2_added], [len(own), len(added)])
        fit = fit_logistic(np.vstack([own, *added]), self._targets(hit, weight), weight, **given)
        self.separated_ = self.separated_ or fit.separated
        return LinearMap(fit.coef, fit.intercept)

    def _map_steps(self, fitted: Any, score: Step) -> tuple[Step, Step]:
        return steps.logistic(self._linear(fitted, score))

    def _linear(self, fitted: LinearMap, score: Step) -> Step:
        """Return the step to the intercept and the features times their coefficients."""
        found = steps.constant(fitted.intercept)
        for feature, coefficient in zip(self._features(score), fitted.coef.tolist(), strict=False):
            found = found + feature * coefficient
        return found

    def _row(self, fitted: Any) -> dict[str, Any]:
        values = [*fitted.coef.tolist(), fitted.intercept]
        return dict(zip([*self._terms, "intercept"], values, strict=True))

    def _sentence(self) -> str:
        return f"logit(q) is linear in {' and '.join(self._terms)}."


@dataclass(eq=False, repr=False, kw_only=True)
class PlattCalibrator(LogisticCalibrator):
    r"""Platt scaling: a logistic curve of the score.

    .. math:: \mathrm{logit}\, q = \alpha s + \beta, \qquad
              s = \mathrm{logit}\, p \ \text{or}\ s = p

    With more than two classes, each is calibrated against the rest and rows are normalized.

    Parameters
    ----------
    on : {"logit", "probability"}
        What s is. With the logit, a slope of 1 and an intercept of 0 leave probabilities
        unchanged; the paper uses the probability.
    l2 : float
        λ of the penalty ½λα², scikit-learn's ``1 / C``.
    smooth_targets : bool
        Whether to use Platt's targets, (N₊ + 1) / (N₊ + 2) and 1 / (N₋ + 2), in place of 1 and 0;
        they keep the curve finite where the classes are perfectly separated.
    eps : float, optional
        How far scores are kept from 0 and 1 before the logit; None means the floor of all
        calibrators by score, half of the smallest positive p.

    References
    ----------
    J. Platt (1999), Probabilistic outputs for support vector machines.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> PlattCalibrator().fit(p, y).predict_proba(p[:2]).round(3)
    array([[0.814, 0.186],
           [0.667, 0.333]])
    """

    on: Literal["logit", "probability"] = parameter("logit", one_of("logit", "probability"))
    smooth_targets: bool = parameter(True, options.check_flag)
    maps_: list[LinearMap | None] = field(init=False)

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: p itself, C = 1, targets of 0 and 1."""
        return cls(on="probability", l2=1.0, smooth_targets=False)

    def _features(self, score: Step) -> tuple[Step, ...]:
        return (score,) if self.on == "probability" else super()._features(score)

    @property
    def _terms(self) -> tuple[str, ...]:
        return ("p",) if self.on == "probability" else ("logit p",)

    def _targets(self, hit: Floats, weight: Floats | None) -> Floats:
        return platt_targets(hit, weight) if self.smooth_targets else hit


def platt_targets(hit: Floats, weight: Floats | None) -> Floats:
    """Return Platt's targets, which differ from 0 and 1 by more where there are fewer rows."""
    yes = float(hit.sum() if weight is None else hit @ weight)
    no = float(hit.size if weight is None else weight.sum()) - yes
    low, high = 1.0 / (no + 2.0), (yes + 1.0) / (yes + 2.0)
    return low + hit * (high - low)


@dataclass(eq=False, repr=False, kw_only=True)
class BetaCalibrator(LogisticCalibrator):
    r"""Beta calibration: the curve between two beta distributions.

    .. math:: \mathrm{logit}\, q = a \ln p - b \ln(1 - p) + c, \qquad a, b \ge 0

    With a = b = 1 and c = 0 probabilities stay unchanged. With more than two classes, each is
    calibrated against the rest and rows are normalized.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}
        All three; a = b; or c = (b − a) · ln ½, which keeps a score of ½ at ½.
    nonnegative : bool
        Whether a, b ≥ 0, so that a higher score never gets a lower probability.
    l2 : float
        λ of the penalty ½λ(a² + b²), scikit-learn's ``1 / C``.
    eps : float, optional
        How far scores are kept from 0 and 1 before the logarithms; None means the floor of all
        calibrators by score, half of the smallest positive p. betacal has 2.2e-16.
    clip : {"all", "exact"}
        Whether all scores within `eps` of 0 or 1 are moved, or only those equal to 0 or 1.

    References
    ----------
    M. Kull, T. Silva Filho, P. Flach (2017), Beta calibration, AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> BetaCalibrator(parameters="am").fit(p, y).predict_proba(p[:2]).round(3)
    array([[0.979, 0.021],
           [0.86 , 0.14 ]])
    """

    parameters: Literal["abm", "am", "ab"] = parameter("abm", one_of("abm", "am", "ab"))
    nonnegative: bool = parameter(True, options.check_flag)
    clip: Literal["all", "exact"] = parameter("all", one_of("all", "exact"))
    maps_: list[LinearMap | None] = field(init=False)

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: C = 1, a and b of any sign, clip="exact"."""
        return cls(nonnegative=False, l2=1.0, eps=1e-4, clip="exact")

    def _features(self, score: Step) -> tuple[Step, ...]:
        inside = self._inside(score)
        if self.clip == "exact":  # only scores of exactly 0 or 1 are moved
            below = where(equal(score, 1.0), 1.0 - self.floor_, score)
            inside = where(equal(score, 0.0), self.floor_, below).named("inside")
        low, high = (
            steps.log(inside).named("ln_p"),
            (-steps.log(1.0 - inside)).named("minus_ln_rest"),
        )
        if self.parameters == "am":
            return (low + high,)
        centre = np.log(2.0)
        return (low + centre, high - centre) if self.parameters == "ab" else (low, high)

    @property
    def _terms(self) -> tuple[str, ...]:
        pairs = {"am": ("logit p",), "ab": ("ln 2p", "-ln 2(1-p)")}
        return pairs.get(self.parameters, ("ln p", "-ln(1-p)"))

    def _constraints(self) -> dict[str, Any]:
        n_bounded = len(self._terms) if self.nonnegative else 0
        # A coefficient in place of two has the penalty of both.
        l2 = self.l2 * (3 - len(self._terms))
        return {"l2": l2, "n_nonnegative": n_bounded, "intercept": self.parameters != "ab"}


@dataclass(frozen=True, eq=False)
class Pieces:
    """Heights at knots, or of bins between knots; a score at a knot is in the bin below."""

    knots: Floats
    heights: Floats


@dataclass(eq=False, repr=False, kw_only=True)
class IsotonicCalibrator(OneVsRestCalibrator):
    r"""Isotonic regression, by scikit-learn's pool-adjacent-violators.

    .. math:: \min_{q\ \text{non-decreasing in}\ p} \sum_i w_i (y_i - q(p_i))^2

    Straight lines join the levels. Predictions are often exactly 0 or 1, in which case one wrong
    row makes the log-loss infinite; `describe` says so. With more than two classes, each is
    calibrated against the rest and rows are normalized.

    References
    ----------
    B. Zadrozny, C. Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates, KDD.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> IsotonicCalibrator().fit(p, y).predict_proba(p)[:, 1]
    array([0. , 0. , 0.5, 0.5, 1. , 1. ])
    """

    maps_: list[Pieces | None] = field(init=False)
    _pieces = "knots"

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> Pieces:
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415  only a fit needs it

        fit = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        fit.fit(score, hit, sample_weight=weight)
        knots, heights = (np.asarray(x, np.float64) for x in (fit.X_thresholds_, fit.y_thresholds_))
        return Pieces(knots, heights)

    def _map_steps(self, fitted: Any, score: Step) -> tuple[Step, Step]:
        q = steps.curve(score, fitted.knots, fitted.heights)
        return 1.0 - q, q

    def _sentence(self) -> str:
        ends = {float(each.heights[k]) for each in self.maps_ if each is not None for k in (0, -1)}
        words = "A non-decreasing curve of straight lines between knots."
        if ends & {0.0, 1.0}:
            words += (
                " It gives probabilities of exactly 0 or 1: one row that contradicts them makes "
                "the log-loss infinite."
            )
        return words


@dataclass(eq=False, repr=False, kw_only=True)
class HistogramCalibrator(OneVsRestCalibrator):
    r"""Histogram binning: all scores in a bin get the bin's hit rate.

    .. math:: q(p) = \frac{\sum_{i: p_i \in B(p)} w_i y_i}{\sum_{i: p_i \in B(p)} w_i}

    The value of an empty bin is its midpoint. With more than two classes, each is calibrated
    against the rest and rows are normalized.

    Parameters
    ----------
    n_bins : int
        The number of bins; with ties there may be fewer.
    binning : {"quantile", "uniform"}
        Bins of nearly equal weight, with edges midway between neighbouring scores, or bins of
        equal width.

    References
    ----------
    B. Zadrozny, C. Elkan (2001), Obtaining calibrated probability estimates from decision trees
    and naive Bayesian classifiers, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> HistogramCalibrator(n_bins=3).fit(p, y).predict_proba(p)[:, 1]
    array([0. , 0. , 0.5, 0.5, 1. , 1. ])
    """

    n_bins: int = parameter(10, options.whole(1, options.MOST_BINS))
    binning: Literal["quantile", "uniform"] = parameter("quantile", one_of("quantile", "uniform"))
    maps_: list[Pieces | None] = field(init=False)

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> Pieces:
        if self.binning == "uniform":
            edges = np.arange(1, self.n_bins + 1) / self.n_bins
        else:
            edges = _chunk_edges(score, weight, self.n_bins)
        return Pieces(edges[:-1], _bin_means(edges, score, hit, weight))

    def _sentence(self) -> str:
        return "Steps: the hit rate of each bin of the score."


@dataclass(eq=False, repr=False, kw_only=True)
class ScalingBinningCalibrator(OneVsRestCalibrator):
    r"""Scaling-binning: the mean of a Platt curve g over the bin that g falls in.

    .. math:: \mathrm{logit}\, g(p) = \alpha\, \mathrm{logit}\, p + \beta, \qquad
              q(p) = \operatorname{mean}\{g(p_i) : g(p_i) \in B(g(p))\}

    Bins hold nearly equal numbers of calibration rows; the value of an empty one is its midpoint.
    With more than two classes, each is calibrated against the rest and rows are normalized.

    Parameters
    ----------
    n_bins : int
        The number of bins; with ties there may be fewer.
    normalize : bool
        Whether rows are made to sum to 1. Otherwise each column is calibrated by itself, also
        with two classes, and the sum of a row is arbitrary.
    l2 : float
        λ of the penalty ½λα², scikit-learn's ``1 / C``.
    eps : float, optional
        How far scores are kept from 0 and 1 before the logit; None means the floor of all
        calibrators by score, half of the smallest positive p.

    References
    ----------
    A. Kumar, P. Liang, T. Ma (2019), Verified uncertainty calibration, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> ScalingBinningCalibrator(n_bins=2).fit(p, y).predict_proba(p)[:, 1].round(3)
    array([0.177, 0.177, 0.177, 0.823, 0.823, 0.823])
    """

    n_bins: int = parameter(10, options.whole(1, options.MOST_BINS))
    normalize: bool = parameter(True, options.check_flag)
    l2: float = parameter(1e-10, options.check_not_negative)
    eps: float | None = parameter(None, options.or_none(options.check_eps))
    maps_: list[Pieces | None] = field(init=False)

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: 10 bins, each column by itself, not normalized."""
        return cls(normalize=False, eps=1e-12)

    def _learn(self, rows: CalibrationRows) -> None:
        super()._learn(rows)
        if not self.normalize and rows.p.ndim == 1:
            self.maps_ = [self._fit_map(1.0 - rows.p, rows.y == 0, rows.weight), *self.maps_]

    @property
    def _normalized(self) -> bool:
        return bool(self.normalize)

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> Pieces:
        from scipy.special import expit  # noqa: PLC0415  only a fit needs it

        logit = evaluate([self._logit(steps.score(1))], score).T
        fit = fit_logistic(logit, hit, weight, l2=self.l2)
        self.separated_ = self.separated_ or fit.separated
        slope, intercept = float(fit.coef[0]), fit.intercept
        scaled = expit(slope * logit[0] + intercept)
        edges = _chunk_edges(scaled, weight, self.n_bins)
        values = _bin_means(edges, scaled, scaled, weight)
        # Edges of the curve as cuts of the score.
        inner = np.clip(edges[:-1], np.finfo(np.float64).tiny, 1.0 - EPS)
        cuts = expit((np.log(inner) - np.log1p(-inner) - intercept) / slope) if slope else inner
        return Pieces(cuts, values) if slope >= 0 else Pieces(cuts[::-1], values[::-1])

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        if self.normalize:
            return super()._steps(scores)
        return tuple(self._mapped(*pair)[1] for pair in zip(self.maps_, scores, strict=True))

    def _sentence(self) -> str:
        return "Steps on a Platt curve: its mean in each bin."


def _chunk_edges(score: Floats, weight: Floats | None, n_bins: int) -> Floats:
    """Return the right edges of nearly equal chunks of the sorted scores; the last one is 1.

    An edge lies midway between the last score of a chunk and the first of the next. Chunks are
    those of `numpy.array_split`; a weight counts as that many equal rows.
    """
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    reached = np.arange(1.0, score.size + 1) if weight is None else np.cumsum(weight[order])
    total, inner = float(reached[-1]), np.arange(1, n_bins)
    whole, rest = divmod(total, n_bins)
    # Fractional weights are not counts of rows: split the total into equal fractions.
    is_count = weight is None or bool((weight == np.floor(weight)).all())
    bounds = inner * whole + np.minimum(inner, rest) if is_count else inner * total / n_bins
    ends = np.searchsorted(reached, bounds[bounds > 0], side="left").clip(0, len(score) - 1)
    first = np.searchsorted(ordered, ordered[ends], side="right")
    kept = first < score.size
    return np.unique(np.append(0.5 * (ordered[ends[kept]] + ordered[first[kept]]), 1.0))


def _bin_means(edges: Floats, score: Floats, value: Floats, weight: Floats | None) -> Floats:
    """Return the weighted mean of a value in each bin; of an empty bin, its midpoint."""
    index = np.searchsorted(edges, score, side="left")
    mass = np.bincount(index, weight, minlength=edges.size)
    sums = np.bincount(index, value if weight is None else value * weight, minlength=edges.size)
    middle = 0.5 * (np.append(0.0, edges[:-1]) + edges)
    return np.asarray(np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), middle))
