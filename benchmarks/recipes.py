"""Simple baselines for the variable calibrator: an additive model and a temperature.

`additive` is a penalized logistic model of the score and V, with penalties from Fellner–Schall
updates. `temperature` is a temperature that depends on V, with one ridge penalty chosen by
five-fold cross-validation. Both are written to be short, not fast or robust.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax


def splines(u: np.ndarray, k: int) -> np.ndarray:
    """Return uniform cubic B-splines on [0, 1]."""
    x = np.clip(u, 0, 1) * (k - 3)
    i = np.minimum(x.astype(int), k - 4)
    t, rows, B = x - i, np.arange(len(u)), np.zeros((len(u), k))
    B[rows, i], B[rows, i + 3] = (1 - t) ** 3 / 6, t**3 / 6
    B[rows, i + 1] = (3 * t**3 - 6 * t**2 + 4) / 6
    B[rows, i + 2] = (-3 * t**3 + 3 * t**2 + 3 * t + 1) / 6
    return B


class Smooth:
    """A variable as a linear and a smooth nonlinear function of its rank."""

    def __init__(self, v: np.ndarray, most: int) -> None:
        self.at, counts = np.unique(v, return_counts=True)
        self.rank = (np.cumsum(counts) - counts / 2) / len(v)
        self.k = min(most, max(5, len(self.at) + 2))
        u = np.interp(v, self.at, self.rank)
        self.centre, self.scale = u.mean(), u.std() or 1.0
        values, vectors = np.linalg.eigh(np.diff(np.eye(self.k), 2, axis=0).T @ np.diff(
            np.eye(self.k), 2, axis=0))  # fmt: skip
        self.turn = vectors[:, 2:] / np.sqrt(values[2:])
        line, raw = (u - self.centre) / self.scale, splines(u, self.k) @ self.turn
        self.mean = raw.mean(axis=0)
        self.slope = line @ (raw - self.mean) / max(line @ line, 1e-300)
        left = raw - self.mean - np.outer(line, self.slope)
        self.size = np.sqrt((left**2).mean(axis=0).sum()) or 1.0

    def __call__(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the linear column and the nonlinear columns."""
        u = np.interp(v, self.at, self.rank)
        line = (u - self.centre) / self.scale
        raw = splines(u, self.k) @ self.turn - self.mean - np.outer(line, self.slope)
        return line[:, None], raw / self.size


def additive(
    p: np.ndarray, y: np.ndarray, V: np.ndarray, p_new: np.ndarray, V_new: np.ndarray
) -> np.ndarray:
    """Return P(y = 1) for new rows."""

    def logit(q: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(q, 1e-12)) - np.log(np.maximum(1 - q, 1e-12))

    z = logit(p)
    low, high = np.quantile(z, [0.005, 0.995])
    kept = np.clip(z, low, high)
    centre, scale = kept.mean(), kept.std() or 1.0
    of_score, fold = Smooth(kept, 10), np.abs(kept)
    smooths = [Smooth(column, 10) for column in V.T]

    def columns(q: np.ndarray, V: np.ndarray) -> list[np.ndarray]:
        z = np.clip(logit(q), low, high)
        unit = ((z - centre) / scale)[:, None]
        found = [np.ones((len(z), 1)), unit]
        found += [(np.abs(z) - fold.mean())[:, None] / (fold.std() or 1.0), of_score(z)[1]]
        for smooth, column in zip(smooths, V.T, strict=True):
            line, curve = smooth(column)
            found += [line, curve, unit * line, unit * curve]
        return found

    blocks = columns(p, V)
    X = np.hstack(blocks)
    group = np.repeat(np.arange(len(blocks)) - 2, [block.shape[1] for block in blocks])
    group = np.maximum(group, -1)
    size = np.bincount(group[group >= 0])
    penalty, beta = np.ones(len(size)), np.zeros(X.shape[1])
    beta[0] = logit(np.array([y.mean()]))[0]
    active = np.ones(len(size), dtype=bool)

    def penalized(beta: np.ndarray) -> float:
        ridge = np.where(group >= 0, penalty[group], 0)
        eta = X @ beta
        return float((np.logaddexp(0, eta) - y * eta).sum() + (ridge * beta**2).sum() / 2)

    for _ in range(60):
        mean, start = expit(X @ beta), beta
        H = (X * np.maximum(mean * (1 - mean), 1e-6)[:, None]).T @ X
        right, before = H @ beta + X.T @ (y - mean), penalty.copy()
        for _ in range(20):
            ridge = np.where(group >= 0, np.where(active, penalty, 1e9)[group], 0) + 1e-9
            covariance = np.linalg.inv(H + np.diag(ridge))
            beta = covariance @ right
            edf = size - penalty * np.bincount(group[group >= 0], np.diag(covariance)[group >= 0])
            squares = np.bincount(group[group >= 0], beta[group >= 0] ** 2)
            after = np.clip(np.maximum(edf, 1e-8) / np.maximum(squares, 1e-12), 1e-6, 1e9)
            converged = np.abs(np.log(after / penalty)[active]).max(initial=0) < 1e-3
            penalty = np.where(active, after, penalty)
            active &= edf >= 0.02
            if converged:
                break
        step = 1.0
        while step > 1e-3 and not penalized(start + step * (beta - start)) <= penalized(start):
            step /= 2
        beta = start + step * (beta - start)
        if step == 1 and np.abs(np.log(penalty / before)[active]).max(initial=0) < 5e-3:
            break

    def moderated(X: np.ndarray) -> np.ndarray:
        spread = np.einsum("ij,ij->i", X @ covariance, X)
        return X @ beta / np.sqrt(1 + np.pi / 8 * spread)

    eta, shift = moderated(X), 0.0
    for _ in range(50):
        mean = expit(eta + shift)
        shift += np.clip((y.mean() - mean.mean()) / (mean * (1 - mean)).mean(), -2, 2)
    return expit(moderated(np.hstack(columns(p_new, V_new))) + shift)


def temperature(
    p: np.ndarray, y: np.ndarray, V: np.ndarray, p_new: np.ndarray, V_new: np.ndarray
) -> np.ndarray:
    """Return the probabilities of many classes for new rows."""

    def logs(q: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(q, 1e-300))

    smooths = [Smooth(column, 8) for column in V.T]

    def design(V: np.ndarray) -> np.ndarray:
        parts = [np.hstack(s(column)) for s, column in zip(smooths, V.T, strict=True)]
        return np.hstack([np.ones((len(V), 1)), *parts])

    def fit(X: np.ndarray, L: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
        own = L[np.arange(len(y)), y]

        def objective(beta: np.ndarray) -> tuple[float, np.ndarray]:
            power = np.exp(np.clip(X @ beta, -8, 8))
            log_q = log_softmax(L * power[:, None], axis=1)
            mean = (np.exp(log_q) * L).sum(axis=1)
            value = -log_q[np.arange(len(y)), y].sum() + ridge / 2 * (beta[1:] ** 2).sum()
            slope = X.T @ (power * (mean - own))
            slope[1:] += ridge * beta[1:]
            return value, slope

        return minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B").x

    X, L = design(V), logs(p)
    fold = np.random.default_rng(0).permutation(len(y)) % 5
    ridges = np.geomspace(0.3, 300, 7)
    losses = np.zeros(len(ridges))
    for k, ridge in enumerate(ridges):
        for f in range(5):
            out = fold == f
            beta = fit(X[~out], L[~out], y[~out], ridge)
            log_q = log_softmax(L[out] * np.exp(X[out] @ beta)[:, None], axis=1)
            losses[k] -= log_q[np.arange(out.sum()), y[out]].sum()
    beta = fit(X, L, y, ridges[losses.argmin()])
    return np.exp(log_softmax(logs(p_new) * np.exp(design(V_new) @ beta)[:, None], axis=1))
