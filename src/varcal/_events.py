"""What a probability claims: predictions become (score, hit) pairs, and classes are forgotten."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._options import check_choice
from varcal._predictions import Predictions
from varcal.exceptions import InputError

EVENTS = ("correct", "positive", "classwise")


@dataclass(frozen=True, eq=False)
class Claim:
    """One claim a row: the event has probability `score`; `hit` tells whether it came true.

    Attributes
    ----------
    score : ndarray of float
        The claimed probability.
    hit : ndarray of bool
        Whether the event happened.
    label : hashable or None
        The class that the claim speaks of; None for "the prediction is correct".
    """

    score: NDArray[np.float64]
    hit: NDArray[np.bool_]
    label: Hashable = None


def claims(
    predictions: Predictions, event: str = "correct", pos_label: Hashable = None
) -> Iterator[Claim]:
    """Yield the claims of an event: one, or for "classwise" one a class.

    Parameters
    ----------
    predictions : Predictions
        Checked predictions.
    event : {"correct", "positive", "classwise"}
        "correct": s = max_k p_k against "the argmax was right" (ties go to the first class).
        "positive": s = P(y = positive) against y (two classes). "classwise": s = p_k against
        y = k, for each k.
    pos_label : label, optional
        The positive class, the second one by default.

    Examples
    --------
    >>> (claim,) = claims(Predictions.of([0, 1, 1], [0.2, 0.9, 0.4]))
    >>> claim.score, claim.hit
    (array([0.8, 0.9, 0.6]), array([ True,  True, False]))
    """
    check_choice("event", event, EVENTS)
    if pos_label is not None and event != "positive":
        raise InputError(
            f'pos_label={pos_label!r} has no meaning with event="{event}"',
            'use event="positive", or leave pos_label out',
        )
    if event == "correct":
        yield _correct(predictions)
    elif event == "positive":
        position = _position(predictions, pos_label)
        yield _about(predictions, position)
    else:
        for position in range(len(predictions.classes)):
            yield _about(predictions, position)


def _correct(predictions: Predictions) -> Claim:
    p, y = predictions.p, predictions.y
    if p.ndim == 1:
        return Claim(np.maximum(p, 1.0 - p), (p > 0.5) == (y == 1))
    if p.shape[1] == 2:
        return Claim(np.maximum(p[:, 0], p[:, 1]), (p[:, 1] > p[:, 0]) == (y == 1))
    return Claim(p.max(axis=1), p.argmax(axis=1) == y)


def _about(predictions: Predictions, position: int) -> Claim:
    p: NDArray[Any] = predictions.p
    pair = p.ndim == 1
    score = (p if position == 1 else 1.0 - p) if pair else p[:, position]
    return Claim(score, predictions.y == position, predictions.classes[position])


def _position(predictions: Predictions, pos_label: Hashable) -> int:
    classes = predictions.classes
    if len(classes) != 2:
        raise InputError(
            f'event="positive" needs two classes; p has {len(classes)}',
            'use event="correct" or event="classwise"',
        )
    if pos_label is None:
        return 1
    check_choice("pos_label", pos_label, classes)
    return classes.index(pos_label)
