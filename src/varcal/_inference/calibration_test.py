"""The test of whether the gap is zero along a variable, for independent rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Floats, Ints
from varcal._inference.error_sums import ErrorSums
from varcal._inference.multiplicity import cauchy
from varcal._inference.quadratic_forms import quadratic_forms
from varcal._inference.scored_rows import ScoredRows
from varcal._inference.simulated_null import (
    MOST_DRAWS,
    draw_cells,
    draw_hits,
    draws_for,
    is_sparse,
    simulate,
    tail_p,
)

#: Hits are simulated only if the p-value from moments is below this.
SIMULATE_BELOW = 0.2


def calibration_test(
    coarse: ErrorSums,
    fine: ErrorSums | None = None,
    *,
    merge: Ints | None = None,
    rows: ScoredRows | None = None,
    placed: ArrayLike | None = None,
    seed: int = 0,
) -> Floats:
    r"""Return the p-value of "calibrated with respect to v".

    The p-values of two tests are combined by their Cauchy mean: a chi-square test over the
    coarse bins, :math:`Q_1 = \sum_b (\sum_b we)^2 / V_b`, which has power against any pattern,
    and a score test on the Legendre polynomials 0, 1, 2 of the mid-rank of v over the fine
    cells, which has more power against smooth patterns. Both statistics are compared with a
    scaled chi-square distribution that has their exact mean and variance,
    :math:`2 \operatorname{tr}(AV)^2 + \sum_i \kappa_i a_i^2`, where :math:`\kappa_i` is the
    fourth cumulant of a Bernoulli row; this term matters if outcomes are sparse.

    Parameters
    ----------
    coarse, fine : ErrorSums
        Sums over the bins of v. Without ``fine`` (if v has no order) the second test is that of
        the overall gap.
    merge : array of int, optional
        The coarse bin of each fine cell (for sums without leading axes). If it is given, hits are
        simulated if some bin is sparse and the p-value is below `SIMULATE_BELOW`. The result is
        then the rank of the p-value among those of the simulated hits.
    rows : ScoredRows, optional
        The rows behind the sums. If there are at most 10,000 of them, hits are simulated by row,
        and otherwise by cell.
    placed : array of bool, optional
        Which fine cells are ordered along v (the cell of missing values is not).
    seed : int
        Seed of the simulated hits.

    Returns
    -------
    array
        p-values in (0, 1], with the leading shape of the sums.

    References
    ----------
    Liu and Xie (2020), "Cauchy combination test", JASA 115.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> v, s = rng.random(2000), rng.uniform(0.2, 0.8, 2000)
    >>> h = rng.random(2000) < s + 0.2 * (v - 0.5)
    >>> cells = ErrorSums.from_rows((10 * v).astype(int), s, h, n_bins=10)
    >>> bool(calibration_test(cells, cells) < 1e-4)
    True
    """
    forms = quadratic_forms(coarse, fine, placed=placed)
    sums = [coarse.error, coarse.error if fine is None else fine.error]
    p = cauchy([form.p_value(we) for form, we in zip(forms, sums, strict=True)])
    if p.ndim or p >= SIMULATE_BELOW or not is_sparse(coarse):
        return p
    draws = 0 if rows is None else draws_for(rows)
    if rows is not None and draws:
        null = simulate(rows, forms, draw_hits(rows.score, draws, seed))
    elif merge is not None:
        we = draw_cells(coarse if fine is None else fine, MOST_DRAWS, seed)
        bins = np.stack([we[:, merge == b].sum(1) for b in range(coarse.n.shape[-1])], axis=1)
        null = cauchy([form.p_value(x) for form, x in zip(forms, (bins, we), strict=False)])
    else:
        return p
    return np.asarray(tail_p(-np.log(p), -np.log(null)))
