"""How it was judged how much of each correction is applied, as `describe()` says it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._text.numbers import count
from varcal.calibrators._variable.folds import N_STRETCHES, stretches
from varcal.calibrators._variable.trust import Trusted
from varcal.calibrators.rows import CalibrationRows

#: The warning where rows that stand near one another are correlated.
ORDER_CAUTION = (
    "rows that stand near one another are correlated, which no variable explains: if they are in "
    "the order of time, pass time=…, so that it is judged on later rows; if they are sorted by "
    "patient, store or the like, pass groups=…; blocks=False if new rows come from the same places"
)


@dataclass(frozen=True)
class Judgement:
    """How trust was judged.

    Attributes
    ----------
    how : {"random", "groups", "blocks", "time", "time and groups"}
        Which rows were held out together: any; those of a group; those of a block; or later ones
        than those that fitted.
    of : str
        With blocks, what they are, such as "month × day"; empty if they have no name.
    n_units : int
        The number of groups, blocks or periods; 0 for random rows.
    luck : float
        With blocks that the fit has found, what knowing the luck of each would save in log-loss
        per row; 0 if they were named by the user.
    """

    how: str
    of: str = ""
    n_units: int = 0
    luck: float = 0.0

    def __str__(self) -> str:
        """Return a sentence; nothing for random rows.

        >>> print(Judgement("time", n_units=5))
        Shrinkage was judged forward in time: on 5 periods, by models of earlier rows.
        >>> print(Judgement("blocks", "month × day", 365, 0.021))
        Shrinkage was judged on held-out blocks of month × day (365), whose rows are correlated.
        """
        if self.how == "random":
            return ""
        if self.how.startswith("time"):
            groups = ", and on other groups" if self.how == "time and groups" else ""
            return (
                f"Shrinkage was judged forward in time: on {count(self.n_units, 'period')}, by "
                f"models of earlier rows{groups}."
            )
        if self.how == "groups":
            return f"Shrinkage was judged on held-out groups ({self.n_units:,})."
        of = f" of {self.of}" if self.of else ""
        shared = ", whose rows are correlated" if self.luck else ""
        return f"Shrinkage was judged on held-out blocks{of} ({self.n_units:,}){shared}."

    def caution(self) -> str:
        """Return a warning about blocks that the fit has found.

        >>> Judgement("blocks", "day of date", 90, 0.0214).caution().partition(":")[0]
        'rows of the same day of date are correlated'
        """
        return (
            f"rows of the same {self.of} are correlated: learning the rate of each of the "
            f"{self.n_units:,} would save about {self.luck:.3f} of log-loss per row, but says "
            "nothing about others, so only what helps in blocks that the fit has not seen is "
            "applied; pass blocks=False if new rows come from the same blocks, or time=… if they "
            "come later"
        )


def judgement_of(fitted: Trusted, rows: CalibrationRows) -> Judgement:
    """Return how the trust in fitted models was judged."""
    if fitted.luck is not None:
        luck = fitted.luck
        return Judgement("blocks", str(luck.blocking), luck.n_blocks, luck.worth)
    if rows.time is not None:
        mass = np.ones(len(rows)) if rows.weight is None else rows.weight
        n_periods = int(stretches(rows.time, mass, N_STRETCHES).max())
        return Judgement("time" if rows.groups is None else "time and groups", "", n_periods)
    if rows.groups is None:
        return Judgement("random")
    how, _, of = (rows.together or "groups").partition(" of ")
    return Judgement(how, of, len(np.unique(rows.groups)))


def cautions(judged: Judgement, fitted: Trusted) -> tuple[str, ...]:
    """Return what the user should know about rows that are correlated."""
    if judged.luck and not fitted.independent:
        return (judged.caution(),)
    return (ORDER_CAUTION,) if fitted.lucky_order else ()
