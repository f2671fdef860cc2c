"""How far to go along a Newton step, so that the loss does not rise."""

from __future__ import annotations

from varcal._arrays import Floats
from varcal.calibrators._variable._reml.losses import Loss

__all__ = ["GUARD_STRIDE", "descent", "not_worse"]


#: A step is halved down to this share of itself while the loss rises by more than the slack.
SHORTEST_STEP = 1e-3
LOSS_SLACK = 1e-7
#: The guard of steps on more rows than fit into one matrix: one of so many rows is looked at, by
#: how much their loss may rise, and the least part of a step.
GUARD_STRIDE = 16
GUARD_TOLERANCE = 0.01
GUARD_LEAST_SHARE = 1e-3


def descent(
    loss: Loss, eta: Floats, shift: Floats, ridge: Floats, now: Floats, goal: Floats
) -> float:
    """Return the first of 1, ½, ¼, … of the way to the goal that lowers the penalized loss."""

    def penalized(share: float) -> float:
        beta = now + share * (goal - now)
        return loss.value(eta + share * shift) + 0.5 * float(ridge @ beta**2)

    before, share = penalized(0.0), 1.0
    while share > SHORTEST_STEP and not penalized(share) <= before + LOSS_SLACK:
        share /= 2.0
    return share


def not_worse(beta: Floats, step: Floats, ridge: Floats, rows: list[tuple[Floats, Loss]]) -> Floats:
    """Return coefficients after a step, or after a part of it if the whole raises the loss.

    Where outcomes are nearly separated, few rows have weight in a Newton step, and it may go far
    beyond the least loss.
    """

    def loss_at(beta: Floats) -> float:
        return (
            sum(loss.value(X @ beta) for X, loss in rows)
            + 0.5 * float(ridge @ beta**2) / GUARD_STRIDE
        )

    before, share = loss_at(beta), 1.0
    # Another sample of rows may have a slightly larger loss after a step of all rows.
    least = before * (1.0 + GUARD_TOLERANCE)
    while not loss_at(beta + share * step) <= least and share > GUARD_LEAST_SHARE:
        share /= 2
    return beta + share * step
