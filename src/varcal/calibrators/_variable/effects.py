"""What a variable does to the calibrated probability, as a result that can be read and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from varcal._arrays import Floats
from varcal._input.frames import frame_of
from varcal.exceptions import InputError

__all__ = ["Effect", "Effects", "Term"]


@dataclass(frozen=True)
class Term:
    """One variable, or a pair, in a fitted variable calibrator.

    Attributes
    ----------
    name : str
        The variable; "score" for the score itself; "a × b" for pairs.
    edf : float
        Effective degrees of freedom of all its terms, 0 where the model is not trusted at all.
    moved : float
        The mean absolute change of the probability that they make on the calibration rows.
    evidence : float
        The log Bayes factor of the term against none, its penalties as learned.
    active : bool
        Whether that is above 2; a term without evidence is shrunk to next to nothing.
    """

    name: str
    edf: float
    moved: float
    evidence: float
    active: bool


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of one variable, other variables at their mean effect.

    Attributes
    ----------
    name : str
        The variable.
    kind : {"numeric", "datetime", "levels"}
        What it holds.
    at : tuple
        Values or levels.
    score : float
        The uncalibrated score at which the effect is shown; of many classes, the confidence.
    value : ndarray
        The change of the logit (many classes: of the log inverse temperature) at each value.
    low, high : ndarray
        Its pointwise 95 % interval; where the model is not trusted it is that of the whole effect
        which the answer leaves out.
    inner : tuple of (float, float)
        The 1st and the 99th percentile of the values (of tempered ranks where they are tied), dates
        in seconds since 1970; of levels, the first and the last position.
    missing : ndarray or None
        Effect, low and high of a missing value; None where the fit saw none.
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


@dataclass(frozen=True, eq=False)
class Effects:
    """The effects of all variables, each at a low, a middle and a high score.

    Attributes
    ----------
    scale : str
        What changes: "logit" or "log inverse temperature".
    curves : tuple of Effect
        The effects.
    terms : tuple of Term
        How much each variable moved.
    """

    scale: str
    curves: tuple[Effect, ...]
    terms: tuple[Term, ...]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(curve.name for curve in self.curves))

    def __getitem__(self, name: str) -> tuple[Effect, ...]:
        """Return the curves of one variable, by rising score."""
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
        """Return one row for each variable, score and value, as a frame (pandas by default).

        Where `at` is null, the value is missing.
        """
        rows: list[tuple[Any, ...]] = []
        for curve in self.curves:
            ends = zip(curve.value.tolist(), curve.low.tolist(), curve.high.tolist(), strict=True)
            told: list[tuple[str | None, tuple[float, ...]]]
            told = list(zip(map(str, curve.at), ends, strict=True))
            if curve.missing is not None:
                told.append((None, tuple(curve.missing.tolist())))
            rows += [(curve.name, curve.score, at, *sizes) for at, sizes in told]
        names = ("variable", "score", "at", "effect", "low", "high")
        return frame_of({name: [row[k] for row in rows] for k, name in enumerate(names)}, backend)

    def plot(self, name: str | None = None, ax: Any = None, *, backend: str = "matplotlib") -> Any:
        """Draw the effect of one variable, by default of the one that moved most.

        Curves with pointwise 95 % bands, one a score; dots with whiskers for levels, for numbers
        with few values, and for missing values. Numbers are drawn from the 1st to the 99th
        percentile, and of many levels those with the largest effects.

        Parameters
        ----------
        name : str, optional
            The variable.
        ax : matplotlib Axes, optional
            Where to draw; a new figure without it.
        backend : {"matplotlib", "plotly"}
            Who draws.

        Returns
        -------
        matplotlib Axes, or plotly Figure
        """
        from varcal.plotting import draw  # noqa: PLC0415

        if name is None:
            known = set(self)
            ranked = sorted(self.terms, key=lambda term: -term.moved)
            name = next((term.name for term in ranked if term.name in known), None)
            if name is None:
                raise InputError("there is no effect to draw", "fit with at least one variable")
        return draw("effect", self[name], ax=ax, backend=backend, scale=self.scale)
