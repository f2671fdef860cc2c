"""What a fitted variable calibrator did: its terms, the curves of effects, and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from varcal._arrays import Floats
from varcal._edge_texts import edge_texts
from varcal._input.frames import frame_of
from varcal._text import Shown, count, points
from varcal.calibrators import steps
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.schema import Schema
from varcal.calibrators.variable.additive import Fitted, Table
from varcal.calibrators.variable.columns import SCORE, heights_at
from varcal.calibrators.variable.dependence import Given, Record
from varcal.calibrators.variable.many_classes import ClassesModel
from varcal.calibrators.variable.shrinkage import Stage
from varcal.calibrators.variable.trees import Trees
from varcal.calibrators.variable.two_classes import LogisticModel
from varcal.exceptions import InputError

#: The log Bayes factor from which a term counts as active: odds of about 7 to 1. In words, evidence
#: is some, strong or very strong from these on.
ACTIVE_EVIDENCE, STRENGTHS = 2.0, (1.0, 3.0, 5.0)
#: The column of changes.
CHANGE = "mean change, points"
#: Quantiles of the calibration scores at which effects are shown, and points of a curve.
SHOWN_SCORES, CURVE_POINTS = (0.1, 0.5, 0.9), 41
#: The least share of a variable in the splits of trees that is named, and how many are.
LEAST_USED, NAMED = 0.05, 4
#: Rows on which the sizes of terms are measured.
MEASURED_ROWS = 5_000
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
    """The effects of all variables; those that vary with the score, at three scores.

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
            CHANGE: [points(term.moved) for term in self.terms],
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


def name_of(variables: tuple[int, ...], names: tuple[str, ...]) -> str:
    """Return the name of a term.

    >>> name_of((-1, 0), ("age",))
    'score × age'
    """
    return " × ".join("score" if k == SCORE else names[k] for k in variables)


def terms_of(
    record: Record, names: tuple[str, ...], model: LogisticModel | ClassesModel, given: Given
) -> tuple[Term, ...]:
    """Return the terms of a fit, the one that changed probabilities most first."""
    found = {name: Term(name, 0.0, 0.0, 0.0, active=False) for name in names}
    columns, mass = [each[:MEASURED_ROWS] for each in given.columns], given.mass[:MEASURED_ROWS]
    p = given.p[:MEASURED_ROWS]
    scores = steps.class_scores(2 if p.ndim == 1 else p.shape[1])
    z = evaluate((model.score_step(scores),), p, columns, given.n_levels)[:, 0]
    eta, respond = model.response(p, columns, given.n_levels)
    for fitted, tables, share in record.fits:
        spans = fitted.design.spans()
        added = [tables.added(variables, steps.score(1)) for variables in spans]
        moves = evaluate(added, z, columns, given.n_levels)
        moves[:, 0] -= heights_at(tables.score.knots, fitted.design.offset, z)
        for (variables, own), move in zip(spans.items(), moves.T, strict=True):
            change = np.abs(respond(eta) - respond(eta - share * move))
            evidence = _evidence(fitted, slice(own.start + (variables == (SCORE,)), own.stop))
            name = name_of(variables, names)
            found[name] = Term(
                name,
                float(fitted.fit.leverage[own].sum()) if share else 0.0,
                float(mass @ change / mass.sum()),
                evidence,
                active=bool(evidence > ACTIVE_EVIDENCE and share),
            )
    return tuple(sorted(found.values(), key=lambda term: -term.moved))


def _evidence(fitted: Fitted, own: slice) -> float:
    """Return the log Bayes factor for coefficients: prior over posterior density at 0."""
    V, beta = fitted.fit.covariance[own, own], fitted.fit.beta[own]
    spread = float(np.linalg.slogdet(V)[1] + np.log(fitted.fit.ridge[own]).sum())
    return 0.5 * (spread + float(beta @ np.linalg.solve(V, beta)))


def effects_of(
    model: LogisticModel | ClassesModel, schema: Schema, terms: tuple[Term, ...]
) -> Effects:
    """Return the effect of every variable; those that vary with the score, at three scores."""
    scale = "logit" if isinstance(model, LogisticModel) else "log inverse temperature"
    tables = model.full
    if tables is None:
        return Effects(scale, (), terms)
    knots = tables.score.knots
    scores = np.interp(SHOWN_SCORES, np.linspace(0, 1, len(knots)), knots)
    curves = []
    for k, table in enumerate(tables.variables):
        surfaces = [each for each in tables.products if each.variables == (SCORE, table.variable)]
        grown = model.of_trees[k] if isinstance(model, LogisticModel) and model.of_trees else None
        for z in scores if surfaces else scores[1:2]:
            whole = table.effect
            for each in surfaces:
                at = [np.interp(z, knots, heights[:-1]) for heights in each.first]
                whole = whole + np.asarray(at) @ each.second
            value = model.full_share * whole
            if grown is not None:
                value = value + model.tree_share * (grown - value)
            # The part that is not applied is not ruled out.
            left = (1 - model.full_share) ** 3 * whole**2
            reach = _NORMAL_95 * np.sqrt(tables.scale * table.variance + left)
            curves.append(_curve(table, schema, float(expit(z)), value, reach))
    return Effects(scale, tuple(curves), terms)


def _curve(table: Table, schema: Schema, score: float, value: Floats, reach: Floats) -> Effect:
    k = table.variable
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
        dates = schema.kinds[k] == "datetime"
        at = tuple(edge_texts(values.tolist(), datetime=True) if dates else values.tolist())
    value, low, high = heights.T
    return Effect(schema.names[k], schema.kinds[k], at, score, value, low, high, inner, gone)


def words_of(
    stages: tuple[Stage, ...], terms: tuple[Term, ...], trees: Trees | None, names: tuple[str, ...]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return sentences about the corrections, and the table of what each moved."""
    words = [_sentence(stage) for stage in stages]
    table = [
        {
            "step": _step_of(term.name),
            "along": term.name,
            CHANGE: round(100 * term.moved, 2),
            "evidence": f"{_strength(term.evidence)} (log Bayes factor {term.evidence:.1f})",
        }
        for term in terms
    ]
    if not names:
        words.append("No variables.")
    if trees is not None:
        labels = ["score" if each.variable < 0 else names[each.variable] for each in trees.cells]
        best = [k for k in np.argsort(-trees.used, kind="stable") if trees.used[k] >= LEAST_USED]
        along = ", ".join(list(dict.fromkeys(labels[k] for k in best))[:NAMED])
        words.append(
            f"The {trees.value.shape[0] * trees.value.shape[1]} trees, mostly along {along}, make "
            "this a second model to be validated as one; trees=False leaves curves only."
        )
        saved = f"saves {stages[-1].gain:.4f} ± {stages[-1].error:.4f} of held-out log-loss"
        moved = round(100 * stages[-1].moved, 2)
        table.append({"step": "trees", "along": along, CHANGE: moved, "evidence": saved})
    return words, table


def _step_of(name: str) -> str:
    return "pairs" if " × " in name else "score" if name == "score" else "variables"


def _strength(evidence: float) -> str:
    """Return a log Bayes factor in words, after Kass and Raftery (1995).

    >>> [_strength(each) for each in (-0.1, 2.5, 4.0, 50.0)]
    ['none', 'some', 'strong', 'very strong']
    """
    return ("none", "some", "strong", "very strong")[np.searchsorted(STRENGTHS, evidence)]


def _sentence(stage: Stage) -> str:
    """Return how much of a correction is applied, and what it saves.

    >>> _sentence(Stage("trees", 0.25, 0.004, 0.001))
    'Trees: applied at 25%; saves 0.0040 ± 0.0010 of log-loss on held-out rows.'
    """
    name = {
        "score": "Score alone",
        "classes": "Map between classes",
        "variables": "Score and variables",
        "pairs": "Pairs of variables",
        "trees": "Trees",
    }[stage.name]
    if not stage.share:
        return f"{name}: not applied."
    much = "applied in full" if stage.share > 0.995 else f"applied at {stage.share:.0%}"
    return (
        f"{name}: {much}; saves {stage.gain:.4f} ± {stage.error:.4f} of log-loss on held-out rows."
    )
