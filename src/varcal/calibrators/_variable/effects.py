"""The effects of variables on the calibrated probability, as a result with tables and plots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from varcal._arrays import Floats
from varcal._input.frames import frame_of
from varcal._text.html_tables import Shown
from varcal._text.numbers import count, points
from varcal.exceptions import InputError


@dataclass(frozen=True)
class Term:
    """One variable, or a pair, in a fitted variable calibrator.

    Attributes
    ----------
    name : str
        The variable; "score" for the score itself; "a × b" for pairs.
    edf : float
        Effective degrees of freedom, 0 where the model is not trusted at all.
    moved : float
        The mean absolute change of probabilities on the calibration rows.
    evidence : float
        The log Bayes factor of the term against its absence, given its penalties.
    active : bool
        Whether the evidence is above 2 and the model is applied; terms with less evidence are
        shrunk to nearly nothing.
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
        Its pointwise 95 % interval; where the model is not trusted, the interval covers the whole
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
                    "name": curve.name,
                    "kind": curve.kind,
                    "at": list(curve.at),
                    "score": curve.score,
                    "value": curve.value.tolist(),
                    "low": curve.low.tolist(),
                    "high": curve.high.tolist(),
                    "inner": list(curve.inner),
                    "missing": None if curve.missing is None else curve.missing.tolist(),
                }
                for curve in self.curves
            ],
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a frame (by default pandas) with one row per variable, score and value.

        `at` is null for missing values.
        """
        rows: list[tuple[Any, ...]] = []
        for curve in self.curves:
            ends = zip(curve.value.tolist(), curve.low.tolist(), curve.high.tolist(), strict=True)
            points: list[tuple[str | None, tuple[float, ...]]]
            points = list(zip(map(str, curve.at), ends, strict=True))
            if curve.missing is not None:
                points.append((None, tuple(curve.missing.tolist())))
            rows += [(curve.name, curve.score, at, *sizes) for at, sizes in points]
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
        from varcal._plotting.curve import draw_effect  # noqa: PLC0415

        if name is None:
            known = set(self)
            ranked = sorted(self.terms, key=lambda term: -term.moved)
            name = next((term.name for term in ranked if term.name in known), None)
            if name is None:
                raise InputError("there is no effect to draw", "fit with at least one variable")
        return draw_effect(self[name], ax, self.scale)
