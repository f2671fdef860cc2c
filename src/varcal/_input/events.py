"""What a probability claims: predictions become pairs of a score and a hit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats
from varcal._input.labels import position_of
from varcal._input.predictions import Predictions
from varcal._options import check_choice
from varcal._text import CLASS, CONFIDENCE, RISK
from varcal.exceptions import InputError

EVENTS = ("correct", "positive", "classwise")
#: Collections and monitors can also hold the claims of all classes at once.
COLLECTED_EVENTS = ("both", *EVENTS)
#: The key of the claim that the most likely class is right; other keys are positions of classes.
CORRECT = -1


@dataclass(frozen=True, eq=False)
class Claim:
    """One claim per row: the event has probability `score`, and `hit` is what happened.

    Attributes
    ----------
    score : ndarray of float
        The claimed probabilities.
    hit : ndarray of bool or float
        What happened: whether the event did, or with which share between 0 and 1.
    label : hashable or None
        The class that the claim is about; None for "the prediction is correct".
    """

    score: Floats
    hit: AnyArray
    label: Hashable = None


def claim_keys(
    classes: Sequence[Hashable], event: str = "correct", pos_label: Hashable = None
) -> list[int]:
    """Return the keys of the claims of an event: `CORRECT`, or the positions of classes.

    >>> claim_keys(["no", "yes"], "positive"), claim_keys(["a", "b", "c"], "classwise")
    ([1], [0, 1, 2])
    """
    check_choice("event", event, EVENTS)
    if event == "positive" and len(classes) != 2:
        raise InputError(
            f"event is 'positive', which needs two classes; there are {len(classes)}",
            'use {event}, or "classwise" for one figure over all classes',
            argument="event",
            settings={"event": "correct"},
        )
    positive = position_of(classes, pos_label)
    if event == "correct":
        return [CORRECT]
    return [positive] if event == "positive" else list(range(len(classes)))


def audit_keys(classes: Sequence[Hashable], pos_label: Hashable = None) -> list[int]:
    """Return the keys of the claims that an audit judges.

    With two classes that is the claim about the positive class, with more `CORRECT` and the
    claims about every class.

    >>> audit_keys(["no", "yes"]), audit_keys(["a", "b", "c"])
    ([1], [-1, 0, 1, 2])
    """
    positive = position_of(classes, pos_label)
    return [CORRECT, *range(len(classes))] if len(classes) > 2 else [positive]


def collected_keys(
    classes: Sequence[Hashable], event: str, pos_label: Hashable = None
) -> list[int]:
    """Return the keys of the claims of an event; "both" are those of an audit, and `CORRECT`.

    >>> collected_keys(["no", "yes"], "both"), collected_keys(["no", "yes"], "classwise")
    ([1, -1], [0, 1])
    """
    check_choice("event", event, COLLECTED_EVENTS)
    if event != "both":
        return claim_keys(classes, event, pos_label)
    keys = audit_keys(classes, pos_label)
    return keys if CORRECT in keys else [*keys, CORRECT]


def claim_names(classes: Sequence[Hashable], keys: Sequence[int]) -> dict[int, str]:
    """Name claims by their keys: the probability, the confidence, or a class.

    The claim about one of two classes is the probability, unless the other class has one, too.

    >>> claim_names(["no", "yes"], [1, CORRECT])
    {1: 'probability', -1: 'confidence'}
    """
    single = len(classes) == 2 and sum(key != CORRECT for key in keys) == 1
    return {
        key: CONFIDENCE if key == CORRECT else RISK if single else f"{CLASS}{classes[key]}"
        for key in keys
    }


def predicted(predictions: Predictions, key: int) -> Bools:
    """Return in which rows the class of a claim is the predicted one (ties: the first class).

    >>> predicted(Predictions.of([0, 1, 1], [0.2, 0.9, 0.5]), 1)
    array([False,  True, False])
    """
    return _predicts(predictions.p, key)


def claim_of(predictions: Predictions, key: int) -> Claim:
    """Return the claim with the given key.

    For `CORRECT` it is s = max_k p_k against "the argmax was right" (ties go to the first class),
    for the position k of a class s = p_k against y = k.

    >>> claim = claim_of(Predictions.of([0, 1, 1], [0.2, 0.9, 0.4]), CORRECT)
    >>> claim.score, claim.hit
    (array([0.8, 0.9, 0.6]), array([ True,  True, False]))
    """
    p, y = predictions.p, predictions.y
    if predictions.soft:
        return _soft_claim(predictions, key)
    if key == CORRECT:
        return Claim(_largest(p), _predicts(p, y))
    score = p[:, key] if p.ndim == 2 else p if key == 1 else 1.0 - p
    return Claim(score, y == key, predictions.classes[key])


def _soft_claim(predictions: Predictions, key: int) -> Claim:
    """Return a claim about soft labels: the share of the class, or of the more likely one."""
    p, y = predictions.p, predictions.y
    second = p if p.ndim == 1 else p[:, 1]
    if key == CORRECT:
        return Claim(_largest(p), np.where(second > 0.5, y, 1.0 - y))
    label = predictions.classes[key]
    return Claim(second, y, label) if key == 1 else Claim(1.0 - second, 1.0 - y, label)


def _largest(p: Floats) -> Floats:
    if p.ndim == 1:
        other = 1.0 - p
        return np.maximum(p, other, out=other)
    return np.maximum(p[:, 0], p[:, 1]) if p.shape[1] == 2 else p.max(axis=1)


def _predicts(p: Floats, position: Any) -> Bools:
    """Return whether the class at a position is the most likely one (ties: the first class)."""
    if p.ndim == 1:
        return (p > 0.5) == (position == 1)
    if p.shape[1] == 2:
        return (p[:, 1] > p[:, 0]) == (position == 1)
    return p.argmax(axis=1) == position
