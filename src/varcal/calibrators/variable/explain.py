"""What a fitted variable calibrator did: its terms, the curves of effects, and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._edge_texts import edge_texts
from varcal._input.frames import frame_of
from varcal._text import Shown, count, points
from varcal.calibrators.schema import Schema
from varcal.calibrators.variable.additive import Fitted, Table, Tables
from varcal.calibrators.variable.columns import SCORE, heights_at
from varcal.exceptions import InputError

#: The log Bayes factor from which a term counts as active: odds of about 7 to 1.
ACTIVE_EVIDENCE = 2.0
#: Quantiles of the calibration scores at which effects are shown, and points of a curve.
SHOWN_SCORES, CURVE_POINTS = (0.1, 0.5, 0.9), 41
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Term:
    """One variable, the score, or a pair of these in a fitted variable calibrator.

    Attributes
    ----------
    name : str
        The variable; "score" for the score itself; "a × b" for pairs.
    edf : float
        Effective degrees of freedom, 0 where it is not applied.
    moved : float
        The mean absolute change of probabilities on the calibration rows.
    evidence : float
        The log Bayes factor of the term against its absence, given its penalties.
    active : bool
        Whether the evidence is above 2 and the term is applied.
    """

    name: str
    edf: float
    moved: float
    evidence: float
    active: bool


@dataclass(frozen=True)
class Stage:
    """One correction: how much of it is applied, and what it saves on held-out rows.

    Attributes
    ----------
    name : str
        "score", "classes", "variables", "pairs" or "trees".
    share : float
        How much of it is applied, between 0 and 1.
    gain, error : float
        What it saves of the log-loss of held-out rows, and the standard error.
    moved : float
        For trees, the mean absolute change of probabilities on held-out rows.
    """

    name: str
    share: float
    gain: float
    error: float
    moved: float = 0.0


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of one variable, with the effects of others at their mean.

    Attributes
    ----------
    name : str
        The variable.
    kind : {"numeric", "datetime", "duration", "levels"}
        The kind of variable.
    at : tuple
        Values or levels.
    score : float
        The uncalibrated score at which the effect is shown; with many classes, the confidence.
    value : ndarray
        The change of the logit (many classes: of the log inverse temperature) at each value.
    low, high : ndarray
        Its pointwise 95 % interval; where the model is not applied, the interval covers the whole
        effect, which the prediction leaves out.
    inner : tuple of (float, float)
        The 1st and the 99th percentile of the values (by tempered ranks if they are tied), dates
        in seconds since 1970; for levels, the first and the last position.
    missing : ndarray or None
        Effect, low and high of a missing value; None if there were none in the fit.
    """

    name: str
    kind: str
    at: tuple[Any, ...]
    score: float
    value: Floats
    low: Floats
    high: Floats
    inner: tuple[float, float]
    missing: Floats | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Shown):
    """The effects of all variables, each at a low, a middle and a high score.

    Attributes
    ----------
    scale : str
        The scale of effects: "logit" or "log inverse temperature".
    curves : tuple of Effect
        The effects.
    terms : tuple of Term
        The terms, with how much each changed probabilities.
    """

    scale: str
    curves: tuple[Effect, ...]
    terms: tuple[Term, ...]

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        columns = {
            "term": [term.name for term in self.terms],
            "mean change, points": [points(term.moved) for term in self.terms],
            "evidence": [f"{term.evidence:.1f}" for term in self.terms],
            "active": ["yes" if term.active else "no" for term in self.terms],
        }
        note = "evidence: log Bayes factor; plot(name) draws a variable, to_frame() has all curves"
        return f"Effects of {count(len(list(self)), 'variable')} on the {self.scale}", columns, note

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(curve.name for curve in self.curves))

    def __getitem__(self, name: str) -> tuple[Effect, ...]:
        """Return the curves of one variable, in order of the score."""
        found = tuple(curve for curve in self.curves if curve.name == name)
        if not found:
            raise InputError.no_column(name, list(self), "effects")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "scale": self.scale,
            "terms": [vars(term) for term in self.terms],
            "curves": [
                {
                    name: value.tolist() if isinstance(value, np.ndarray) else value
                    for name, value in (vars(each) | {"at": list(each.at)}).items()
                }
                | {"inner": list(each.inner)}
                for each in self.curves
            ],
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a frame (by default pandas) with one row per variable, score and value.

        `at` is null for missing values.
        """
        rows: list[tuple[Any, ...]] = []
        for curve in self.curves:
            ends = zip(curve.value.tolist(), curve.low.tolist(), curve.high.tolist(), strict=True)
            shown: list[tuple[str | None, tuple[float, ...]]]
            shown = list(zip(map(str, curve.at), ends, strict=True))
            if curve.missing is not None:
                shown.append((None, tuple(curve.missing.tolist())))
            rows += [(curve.name, curve.score, at, *sizes) for at, sizes in shown]
        names = ("variable", "score", "at", "effect", "low", "high")
        return frame_of({name: [row[k] for row in rows] for k, name in enumerate(names)}, backend)

    def plot(self, name: str | None = None, ax: Any = None) -> Any:
        """Draw the effect of one variable, by default the one that changed probabilities most.

        Numbers have a curve with a pointwise 95 % band for each score, from the 1st to the 99th
        percentile. Levels, numbers with few values, and missing values have dots with whiskers;
        of many levels, those with the largest effects are shown.

        Parameters
        ----------
        name : str, optional
            The variable.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._report.plot_variables import draw_effect  # noqa: PLC0415

        if name is None:
            known = set(self)
            ranked = sorted(self.terms, key=lambda term: -term.moved)
            name = next((term.name for term in ranked if term.name in known), None)
            if name is None:
                raise InputError("there is no effect to draw", "fit with at least one variable")
        return draw_effect(self[name], ax, self.scale)


def applied(share: float) -> str:
    """Return how much of a correction is applied, in words.

    >>> applied(1.0), applied(0.25), applied(0.0)
    ('applied in full', 'applied at 25%', 'not applied')
    """
    if share > 0.995:
        return "applied in full"
    return f"applied at {share:.0%}" if share else "not applied"


def name_of(variables: tuple[int, ...], names: tuple[str, ...]) -> str:
    """Return the name of a term.

    >>> name_of((-1, 0), ("age",))
    'score × age'
    """
    return " × ".join("score" if k == SCORE else names[k] for k in variables)


def terms_of(
    fitted: Fitted,
    tables: Tables,
    share: float,
    names: tuple[str, ...],
    identity: Floats,
    z: Floats,
    columns: list[AnyArray],
    moved: Callable[[Floats], float],
) -> tuple[Term, ...]:
    """Return the terms of a fit.

    Parameters
    ----------
    fitted, tables
        The fit and its tables.
    share : float
        How much of it is applied.
    names : tuple of str
        All variables.
    identity : ndarray
        The predictor that changes nothing, at the knots of the score.
    z, columns
        Rows on which changes are measured.
    moved : callable
        Returns the mean absolute change of probabilities when something is taken from the logit.
    """
    edf: dict[tuple[int, ...], float] = {}
    own: dict[tuple[int, ...], list[slice]] = {}
    groups, ridge = fitted.design.groups(), fitted.fit.ridge
    leverage = 1.0 - ridge * np.diag(fitted.fit.covariance)
    for k, (_, variables, part) in enumerate(fitted.blocks()):
        used = float(leverage[part].sum()) if groups[part.start] >= 0 else 1.0
        edf[variables] = edf.get(variables, 0.0) + used
        own.setdefault(variables, [])
        if k:
            own[variables].append(part)
    terms = []
    for variables, size in edf.items():
        evidence = _evidence(fitted, own[variables])
        added = _added(tables, variables, identity, z, columns) if share else z
        change = moved(share * added) if share else 0.0
        active = bool(evidence > ACTIVE_EVIDENCE and share)
        name = name_of(variables, names)
        terms.append(Term(name, size if share else 0.0, change, evidence, active))
    return tuple(terms)


def _evidence(fitted: Fitted, parts: list[slice]) -> float:
    """Return the log Bayes factor for coefficients: prior over posterior density at 0."""
    if not parts:
        return 0.0
    at = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    V, beta = fitted.fit.covariance[np.ix_(at, at)], fitted.fit.beta[at]
    spread = float(np.linalg.slogdet(V)[1] + np.log(fitted.fit.ridge[at]).sum())
    return 0.5 * (spread + float(beta @ np.linalg.solve(V, beta)))


def _added(
    tables: Tables, variables: tuple[int, ...], identity: Floats, z: Floats, columns: list[AnyArray]
) -> Floats:
    """Return what a term adds to the predictor of rows."""
    if variables == (SCORE,):
        return heights_at(tables.score.knots, tables.score.effect - identity, z)
    found = np.zeros(len(z))
    values = [z if k == SCORE else columns[k] for k in variables]
    if len(variables) == 1:
        table = tables.table(variables[0])
        unit = heights_at(tables.score.knots, tables.unit, z)
        found = found + heights_at(table.knots, table.effect, values[0])
        return found + unit * heights_at(table.knots, table.varying, values[0])
    knots = [tables.table(k).knots for k in variables]
    for product in tables.products:
        for a, b in zip(product.first, product.second, strict=True):
            if product.variables == variables:
                found += heights_at(knots[0], a, values[0]) * heights_at(knots[1], b, values[1])
    return found


def curves_of(
    tables: Tables,
    schema: Schema,
    share: float,
    scores: Floats,
    level_of: Callable[[Floats], Floats],
    of_trees: dict[int, Floats],
    tree_share: float,
) -> tuple[Effect, ...]:
    """Return the effect of every variable, at some scores each.

    Parameters
    ----------
    tables : Tables
        The additive model.
    schema : Schema
        The variables.
    share : float
        How much of it is applied.
    scores : ndarray
        Logits at which effects are shown.
    level_of : callable
        Turns a score's logit into the score that is shown.
    of_trees : dict of int to ndarray
        The mean effect of trees at the knots of variables.
    tree_share : float
        How much of the trees is applied.
    """
    varies = any(each.varying.any() for each in tables.variables)
    shown = scores if varies else scores[len(scores) // 2 :][:1]
    return tuple(
        _curve(tables, each, schema, share, float(z), level_of, of_trees, tree_share)
        for each in tables.variables
        for z in shown
    )


def _curve(
    tables: Tables,
    table: Table,
    schema: Schema,
    share: float,
    z: float,
    level_of: Callable[[Floats], Floats],
    of_trees: dict[int, Floats],
    tree_share: float,
) -> Effect:
    k = table.variable
    unit = float(np.interp(z, tables.score.knots, tables.unit[:-1]))
    whole = table.effect + unit * table.varying
    value = share * whole
    if k in of_trees:
        value = value + tree_share * (of_trees[k] - value)
    # The part that is not applied is not ruled out.
    reach = _NORMAL_95 * np.sqrt(
        tables.scale * table.variance + (1 - share) * (whole - share * whole) ** 2
    )
    heights = np.column_stack([value, value - reach, value + reach])
    gone = heights[-1] if table.variance[-1] > 0 else None
    if not len(table.knots):
        at: tuple[Any, ...] = schema.shown_levels(k)
        heights, inner = heights[: len(at)], (0.0, len(at) - 1.0)
    else:
        values = table.knots
        if len(values) > CURVE_POINTS:
            even = np.linspace(0, len(values) - 1, CURVE_POINTS)
            values = np.interp(even, np.arange(len(values)), values)
        heights = np.column_stack([np.interp(values, table.knots, each[:-1]) for each in heights.T])
        ends = np.interp([0.01, 0.99], np.linspace(0, 1, len(table.knots)), table.knots)
        inner = (float(ends[0]), float(ends[1]))
        kind = schema.kinds[k]
        at = (
            tuple(edge_texts(values.tolist(), datetime=True))
            if kind == "datetime"
            else tuple(values.tolist())
        )
    return Effect(
        schema.names[k], schema.kinds[k], at, float(level_of(np.array([z]))[0]),
        heights[:, 0], heights[:, 1], heights[:, 2], inner, gone,
    )  # fmt: skip
