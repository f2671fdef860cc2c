"""Detector: evidence of a change, added up over batches for every cell, direction and stake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._engines.bets import STAKES
from varcal._monitor.moments import Moments

#: How the evidence of a batch is computed.
BETS, UNITS, SUMS = "bets", "units", "sums"


def log_evidence(moments: Moments, limits: Floats) -> Floats:
    r"""Return log e-values of a batch, shape (…, cells, directions, stakes).

    The mean of an e-value is at most 1 while the mean error is within its limits. The first
    direction is "outcomes more frequent than scores say" (:math:`E[x] \le` limit), the second the
    opposite (:math:`E[-x] \le` limit).

    Parameters
    ----------
    moments : Moments
        The sums of the batch. If they have bets, those are the answer; if they have units, a bet
        is made on each unit. Otherwise the evidence is self-normalized:
        :math:`\lambda A - (-\ln(1 - \lambda) - \lambda) Q` with A the sum of
        :math:`(\pm x - \tau) / (1 + \tau)` and Q that of its squares. It is smaller, as
        :math:`e^{\lambda a - \psi a^2} \le 1 + \lambda a` for :math:`a \ge -1`.
    limits : ndarray of shape (cells, directions)
        The limits.
    """
    if moments.gains is not None:
        return moments.gains
    stakes = np.array(STAKES)
    reach = (1.0 + limits) * moments.top[..., None]
    if moments.units is not None:
        error, size = (values[..., None] for values in moments.units)
        part = (error * _SIGNS - limits * size) / reach
        gains: Floats = np.log1p(part[..., None] * stakes).sum(axis=0)
        return gains
    signed = moments.error[..., None] * _SIGNS
    signed2 = moments.error2[..., None] * _SIGNS
    first = (signed - limits * moments.weight[..., None]) / reach
    second = (
        moments.square2[..., None] - 2 * limits * signed2 + limits**2 * moments.weight2[..., None]
    ) / reach**2
    found: Floats = first[..., None] * stakes - second[..., None] * (-np.log1p(-stakes) - stakes)
    return found


_SIGNS = np.array([1.0, -1.0])


#: Evidence is not followed beyond this, so that it cannot overflow. A smaller value is safe.
MOST = 1e100
#: The sums that are kept since the start of a run of evidence.
WINDOW = ("n", "weight", "hit", "score", "square2")


@dataclass(eq=False)
class Detector:
    r"""Detectors of all cells, directions and stakes; arrays have the shape (…, cells, bets).

    With the e-value :math:`e_t` of batch t, :math:`S \leftarrow (S + 1/(t(t+1))) e_t` is the
    evidence for a change at any batch, spent so that the probability of ever being misled is
    bounded. :math:`R \leftarrow (R + 1) e_t` (Shiryaev–Roberts) bounds the mean time to a false
    alarm. A change begins only at a batch with rows in the cell. The cumulative sum of
    :math:`\log e_t` restarts whenever it falls to 0; its last restart dates a change.

    Attributes
    ----------
    t : int
        Batches so far.
    spent, flow : ndarray
        S and R.
    run : ndarray
        The cumulative sum.
    start : ndarray of int
        The batch at which it began.
    window : ndarray
        The sums `WINDOW` since then, along a first axis.
    """

    t: int
    spent: Floats
    flow: Floats
    run: Floats
    start: Ints
    window: Floats

    @classmethod
    def new(cls, *shape: int) -> Detector:
        """Return a detector before the first batch; the last number is that of cells."""
        full = (*shape, 2 * len(STAKES))
        return cls(
            0,
            np.zeros(full),
            np.zeros(full),
            np.zeros(full),
            np.zeros(full, dtype=np.intp),
            np.zeros((len(WINDOW), *full)),
        )

    def update(self, log_e: Floats, moments: Moments) -> None:
        """Add a batch, given its log e-values, shape (…, cells, directions, stakes)."""
        log_e = log_e.reshape(self.run.shape)
        self.t += 1
        # The exponential of the logarithm of MOST may be a little smaller than MOST.
        gain = np.minimum(np.exp(np.minimum(log_e, np.log(MOST) + 1.0)), MOST)
        filled = (moments.n > 0)[..., None]
        self.spent += filled / (self.t * (self.t + 1))
        self.flow += filled
        for evidence in (self.spent, self.flow):
            evidence *= gain
            np.minimum(evidence, MOST, out=evidence)
        fresh = self.run <= 0
        kept = ~fresh
        self.start[fresh] = self.t
        self.run *= kept
        self.run += log_e
        self.window *= kept
        for sums, name in zip(self.window, WINDOW, strict=True):
            sums += getattr(moments, name)[..., None]

    def shares(self, part: Floats, *, spent: bool) -> Floats:
        """Return the share of each cell of the evidence, shape (…, cells)."""
        evidence = self.spent if spent else self.flow
        return evidence.mean(axis=-1) * part

    def total(self, part: Floats, *, spent: bool) -> Floats:
        """Return the evidence of all cells together."""
        whole = self.shares(part, spent=spent).sum(axis=-1)
        # What is reserved for changes at later batches is not spent yet.
        return np.asarray(whole + 1.0 / (self.t + 1) if spent else whole)

    def log_strength(self, part: Floats) -> Floats:
        """Return the logarithm of each bet's share of R, which is -inf before the first row.

        R is not followed beyond `MOST`, which large batches of several cells reach at once. The
        run of evidence is never above log R below that limit, and tells them apart beyond it.
        """
        with np.errstate(divide="ignore"):
            log_flow = np.log(self.flow)
        found: Floats = np.where(self.run > 0, np.maximum(log_flow, self.run), log_flow)
        return found + np.log(part)[:, None]

    def strongest(self, part: Floats) -> tuple[int, int]:
        """Return the cell and the bet with the most evidence of a change at any batch."""
        return _largest(self.log_strength(part))

    def latest(self) -> tuple[int, int]:
        """Return the cell and the bet whose current run has the most evidence, if it has rows."""
        return _largest(np.where(self.window[WINDOW.index("n")] > 0, self.run, -np.inf))


def _largest(values: Floats) -> tuple[int, int]:
    cell, bet = np.unravel_index(int(values.argmax()), values.shape)
    return int(cell), int(bet)
