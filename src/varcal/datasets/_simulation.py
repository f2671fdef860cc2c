"""`Simulation`: simulated rows together with their true calibration errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Floats
from varcal._input.frames import frame_of
from varcal._options import check_seed, checked, whole
from varcal.exceptions import InputError, shown

#: Cells per bin in numerical integrals over bins. It is even, so that a jump in the middle of a bin
#: falls between two cells.
CELLS_PER_BIN = 1000
#: The most rows of a simulation, some four gigabytes.
MOST_ROWS = 100_000_000
#: Every bin of the truth is a mean over many cells.
MOST_TRUE_BINS = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    r"""Rows of a simulated classifier whose calibration errors are known.

    The gap is mean score minus hit rate: positive is overconfident. With the score :math:`s`, the
    hit :math:`h` and the variable :math:`v`,

    .. math:: \mathrm{ECE} = E\,\bigl|\,s - P(h \mid s)\bigr|, \qquad
              \mathrm{VECE} = E\,\bigl|E[s \mid v] - P(h \mid v)\bigr|.

    Attributes
    ----------
    name : str
        The function that simulated the rows, with its parameters.
    event : {"correct", "positive"}
        What the score is the probability of: that the argmax is right, or that y = 1.
    y : ndarray of int, shape (n,)
        Labels 0 … K − 1.
    p : ndarray of float, shape (n, K) or (n,)
        Class probabilities; only P(y = 1) if the event is ``"positive"``.
    v : ndarray, shape (n,)
        The variable.
    rate : ndarray of float, shape (n,)
        The true probability of a hit in each row, which a perfect model would predict.
    ece, vece : float
        The population values (integrals, not binned).
    gap : callable
        The true gap as a function of v.
    score_gap : callable
        The true gap as a function of the score.
    score_quantile : callable
        The score as a function of its rank in (0, 1).

    References
    ----------
    Kelly & Smyth (2023), Variable-Based Calibration for Machine Learning Classifiers, AAAI.

    Examples
    --------
    >>> from varcal.datasets import make_gap
    >>> sim = make_gap(1000, "tilt", vece=0.04)
    >>> sim.p.shape, round(sim.vece, 3)
    ((1000,), 0.04)
    >>> sim.gap([0.1, 0.9]).round(3)
    array([-0.064,  0.064])
    """

    name: str
    event: str
    y: NDArray[np.int64]
    p: Floats
    v: AnyArray
    rate: Floats
    ece: float
    vece: float
    gap: Callable[[Any], Floats]
    score_gap: Callable[[Any], Floats]
    score_quantile: Callable[[Any], Floats]

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return (
            f"Simulation({self.name}: {len(self):,} rows, ece={self.ece:.4g}, vece={self.vece:.4g})"
        )

    @checked(n_bins=whole(1, MOST_TRUE_BINS))
    def ece_in_bins(self, n_bins: int = 10) -> float:
        """Return the population's ECE over bins of equal support.

        An estimate over ``n_bins`` quantile bins converges to this value. It is at most ``ece``,
        because gaps of opposite sign cancel inside a bin.

        Parameters
        ----------
        n_bins : int, default 10
            The number of bins over the score.

        Returns
        -------
        float
            The limit of the binned estimate.

        Examples
        --------
        >>> from varcal.datasets import make_gap
        >>> sim = make_gap(100, "tilt", vece=0.04)
        >>> round(sim.ece, 4), round(sim.ece_in_bins(10), 4)
        (0.0127, 0.0126)
        """
        return _in_bins(self.score_gap(self.score_quantile(_cell_ranks(n_bins))), n_bins)

    @checked(n_bins=whole(1, MOST_TRUE_BINS))
    def vece_in_bins(self, n_bins: int = 10) -> float:
        """Return the population's VECE over bins of equal support; v must be continuous.

        Parameters
        ----------
        n_bins : int, default 10
            The number of bins over the variable.

        Returns
        -------
        float
            The limit of the binned estimate.

        Raises
        ------
        InputError
            If v is tied or categorical, because bins of equal support then do not exist.

        Examples
        --------
        >>> from varcal.datasets import make_gap
        >>> round(make_gap(100, "tilt", vece=0.04).vece_in_bins(5), 6)
        0.0384
        """
        if self.v.dtype.kind != "f":
            raise InputError(
                f"vece_in_bins: v of {self.name} has ties, so its bins cannot have equal support",
                "compare with .vece, or average .gap(v) over your own bins",
            )
        # A continuous v is always from U(0, 1), so that a value is its own rank.
        return _in_bins(self.gap(_cell_ranks(n_bins)), n_bins)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one frame with the columns y, p (or p_0 … p_{K−1}) and v.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow", "modin", "cudf"}, default "pandas"
            The library of the frame.

        Returns
        -------
        frame
            A frame (or table) of that library.

        Examples
        --------
        >>> from varcal.datasets import make_gap
        >>> list(make_gap(5).to_frame("pandas").columns)
        ['y', 'p', 'v']
        """
        probabilities = (
            {"p": self.p}
            if self.p.ndim == 1
            else {f"p_{k}": self.p[:, k] for k in range(self.p.shape[1])}
        )
        v = self.v.astype(object) if self.v.dtype.kind == "U" else self.v
        return frame_of({"y": self.y, **probabilities, "v": v}, backend)


def _cell_ranks(n_bins: int) -> Floats:
    cells = n_bins * CELLS_PER_BIN
    return (np.arange(cells) + 0.5) / cells


def _in_bins(gap: Floats, n_bins: int) -> float:
    return float(np.abs(gap.reshape(n_bins, -1).mean(axis=1)).mean())


def check_rows(argument: str, n: object) -> int:
    """Return the number of rows, after checking that it is a positive integer."""
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise InputError(
            f"{argument} must be a positive integer; got {shown(n)}",
            "for example n=10_000",
            argument=argument,
        )
    if n > MOST_ROWS:
        raise InputError(
            f"{argument} is at most {MOST_ROWS:,}; got {shown(n)}",
            "simulate several parts with different seeds",
            argument=argument,
        )
    return int(n)


def check_random_state(argument: str, value: object) -> int | np.random.Generator | None:
    """Return a seed, a generator or None, after checking that it is one."""
    if value is None or isinstance(value, np.random.Generator):
        return value
    return check_seed(argument, value)


#: How every simulator checks its arguments.
SIMULATOR = {"n": check_rows, "random_state": check_random_state}
