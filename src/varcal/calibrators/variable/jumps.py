r"""Jumps of variables, which smooth curves pass too slowly.

The fitted effect of a number is looked at again by itself, with the residuals and working weights
of rows, now as a curve and a sum of L steps at unknown places,

.. math:: f(v) = C(v)\,\beta + \sum_{l=1}^{L} h_l\, 1[v > c_l], \qquad h_l \sim N(0, 1),

each of which exists with probability π, at any place. Given the other steps, the posterior of one
has a closed form; repeated for each in turn, they maximize a lower bound of the evidence. A curve
whose penalty was learned without steps follows most of a jump and hides it, and so stiffer
curves are tried too, and averaged by their evidence. The posterior mean is added to the effect;
its variance says where residuals leave open whether, where and how far an effect jumps.

References
----------
G. Wang, A. Sarkar, P. Carbonetto, M. Stephens (2020), A simple new approach to variable selection
in regression, with application to genetic fine mapping, JRSS B 82.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal.calibrators.variable.additive import Fitted, Table, Tables
from varcal.calibrators.variable.columns import Columns

# Tuned constants: chosen on seeds 100 to 109 of `quality.py`'s worlds for intervals.

#: L, and π. With L = 2 intervals next to three jumps held up to 2 points less, and with 5 those
#: with 1,000 rows were 12 % wider; with π = .65 they were 10 % wider.
STEPS, LIKELY = 3, 0.5
#: What the penalty of a curve is multiplied by: every factor of 4 up to 1,024 changed the log-loss
#: of nine worlds by at most .0003.
STIFFER = (1.0, 16.0, 256.0)
#: What the variance by jumps is multiplied by: there may be more than one to a place. Chosen with
#: `PENALTY_DOUBT` so that intervals next to jumps hold 90 % and smooth worlds have none wider.
JUMP_DOUBT = 1.6
#: The least effective degrees of freedom of a variable that may jump: with .5, intervals with 1,000
#: rows were 9 % wider.
LEAST_EDF = 1.5

#: Places at most: with half as many, log-losses in worlds with jumps were .0005 to .0008 larger.
PLACES = 128
#: Rounds at most, and the change that ends them.
ROUNDS, TOLERANCE = 10, 1e-3

#: What jumps change of each effect at the knots and for missing values, and the variance.
Jumps = dict[int, tuple[Floats, Floats]]


def jumps_of(fitted: Fitted, values: dict[int, AnyArray]) -> Jumps:
    """Return the jumps of numbers and the score, −1, given the values of rows."""
    spans, found = fitted.design.spans(), {}
    eta = fitted.X @ fitted.fit.beta
    for each in (fitted.design.score, *fitted.design.variables):
        moved = float(fitted.fit.leverage[spans[each.variable,]].sum()) > LEAST_EDF
        if len(each.knots) > 2 and moved:
            found[each.variable] = jumps_along(fitted, eta, each, values[each.variable])
    return found


def with_jumps(tables: Tables, jumps: Jumps) -> Tables:
    """Return the tables with jumps."""

    def jumping(table: Table) -> Table:
        effect, variance = jumps.get(table.variable, (0.0, 0.0))
        variance = JUMP_DOUBT * variance / tables.scale
        return replace(table, effect=table.effect + effect, variance=table.variance + variance)

    return replace(
        tables, score=jumping(tables.score), variables=tuple(map(jumping, tables.variables))
    )


def jumps_along(
    fitted: Fitted, eta: Floats, each: Columns, values: AnyArray
) -> tuple[Floats, Floats]:
    """Return what jumps change of an effect at the knots and for missing values, and the variance.

    `eta` and `values` are those of rows. The variance is what is added to that of the smooth curve.
    """
    own, m, known = fitted.design.spans()[each.variable,], len(each.knots), ~np.isnan(values)
    place = np.minimum(np.searchsorted(each.knots, values[known]), m - 1)
    loss, eta = fitted.loss.take(known), eta[known]
    residual, weight = (np.bincount(place, sums, m) for sums in loss.slopes(eta))
    share, before = weight / weight.sum(), float(loss.rows(eta).sum())
    C = each.table[:-1] - share @ each.table[:-1]
    effect, ridge = C @ fitted.fit.beta[own], fitted.fit.ridge[own]
    goal = weight * effect + residual - share * residual.sum()
    steps = np.triu(np.ones((m, m)), 1)[np.unique(np.linspace(0, m - 2, PLACES).astype(np.intp))]
    steps -= (steps @ share)[:, None]
    H, cross, gram = (C.T * weight) @ C, (steps * weight) @ C, (steps * weight) @ steps.T
    curves = each.block("curve")
    found: list[tuple[float, Floats, Floats, Floats]] = []
    for factor in STIFFER[: len(STIFFER) if curves.stop else 1]:
        penalty = ridge.copy()
        penalty[curves] *= factor
        V = np.linalg.inv(H + np.diag(penalty))
        beta, followed = V @ (C.T @ goal), cross @ V
        bound, mean, second = single_effects(steps @ goal - cross @ beta, gram - followed @ cross.T)
        evidence = 0.5 * (goal @ C @ beta + np.linalg.slogdet(V)[1] + np.log(penalty).sum())
        apart = steps - followed @ C.T
        smooth = np.einsum("ij,jk,ik->i", C, V, C)
        jumped = second @ apart**2 - ((mean @ apart) ** 2).sum(axis=0)
        new = C @ beta + mean.sum(axis=0) @ apart
        # The loss is quadratic near the fit only.
        move = new - effect
        quadratic = before - residual @ move + 0.5 * weight @ move**2
        if not found:
            without = evidence + STEPS * np.log(1.0 - LIKELY)
            found.append((without, effect, smooth, 0.0 * smooth))
        evidence += bound + float(quadratic - loss.rows(eta + move[place]).sum())
        found.append((evidence, new, smooth, jumped))
    logs, effects, smooth, jumped = map(np.array, zip(*found, strict=True))
    part = np.exp(logs - logs.max())
    part /= part.sum()
    mean = part @ effects
    variance = part @ (smooth + jumped + (effects - mean) ** 2) - smooth[0]
    return np.append(mean - effect, 0.0), np.append(np.maximum(variance, 0.0), 0.0)


def single_effects(score: Floats, S: Floats) -> tuple[float, Floats, Floats]:
    """Return the bound of the evidence, and the posterior of steps.

    Parameters
    ----------
    score, S : ndarray of shape (m,) and (m, m)
        The score of each step without any, and their information.

    Returns
    -------
    bound : float
        That of the evidence for steps against none.
    mean : ndarray of shape (L, m)
        The means of the effects at each place, 0 where there is none.
    second : ndarray of shape (m,)
        The sum over effects of their mean squares.

    Examples
    --------
    >>> bound, mean, second = single_effects(np.array([0.0, 40.0]), np.diag([50.0, 50.0]))
    >>> bound > 10, mean.sum(axis=0).round(2)
    (True, array([0.  , 0.78]))
    """
    m, information = len(score), np.diag(S)
    spread = 1.0 / (1.0 + np.maximum(information, 0.0))
    prior = np.append(np.full(m, np.log(LIKELY / m)), np.log(1.0 - LIKELY))
    mean, total = np.zeros((STEPS, m)), np.zeros(m)
    second, apart = np.zeros((STEPS, m)), np.zeros(STEPS)
    for _ in range(ROUNDS):
        before = mean.copy()
        for k in range(STEPS):
            rest = score - S @ (total - mean[k])
            total -= mean[k]
            logs = prior + np.append(0.5 * (rest**2 * spread + np.log(spread)), 0.0)
            top = logs.max()
            weight = np.exp(logs - top)
            whole = weight.sum()
            weight = weight[:-1] / whole
            mean[k] = weight * rest * spread
            second[k] = weight * ((rest * spread) ** 2 + spread)
            total += mean[k]
            # What remains of the divergence from the prior when terms of the fit are left out.
            apart[k] = top + np.log(whole) - rest @ mean[k] + 0.5 * information @ second[k]
        if np.abs(mean - before).max() < TOLERANCE:
            break
    squares = second.sum(axis=0)
    between = total @ S @ total - sum(each @ S @ each for each in mean)
    fitted = score @ total - 0.5 * (between + information @ squares)
    return float(fitted + apart.sum()), mean, squares
