"""Labels of any type, the columns of p that they belong to, and what probabilities claim."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal._input.variables import (
    LARGEST_EXACT,
    Variable,
    extremes,
    present_levels,
    refuse_rows,
    sort_levels,
)
from varcal._options import check_choice
from varcal._text import CLASS, CONFIDENCE, RISK
from varcal.exceptions import InputError, shown

if TYPE_CHECKING:
    from varcal._input.predictions import Predictions

EVENTS = ("correct", "positive", "classwise")
#: Collections and monitors can also hold the claims of all classes at once.
COLLECTED_EVENTS = ("both", *EVENTS)
#: The key of the claim that the most likely class is right; other keys are positions of classes.
CORRECT = -1


@dataclass(frozen=True)
class Part:
    """Facts about all rows, for reading a batch of them.

    Attributes
    ----------
    classes : tuple
        Every label, in the order of the columns of `p`; empty if the labels are not known and rows
        are only checked.
    by_meaning : bool
        Whether labels are 0/1 or booleans, which are interchangeable.
    exponent : int
        Weights are divided by 2 to this power.
    date_formats : mapping
        How dates are written in each column of text that is dates (`dates`).
    calendar : tuple
        The parts of dates that are variables of their own (`dates`).
    """

    classes: tuple[Hashable, ...]
    by_meaning: bool = False
    exponent: int = 0
    date_formats: Mapping[str, str] = field(default_factory=dict)
    calendar: tuple[tuple[str, str, str], ...] = ()


class Labels(Variable):
    """The outcome column before it is matched with the columns of p."""

    @classmethod
    def of(cls, column: object, name: str = "y", argument: str = "y") -> Labels:
        """Read a column of labels: integers, booleans, strings or categories."""
        read = Variable.of(column, name, argument)
        if read.kind in ("datetime", "duration"):
            held = "durations" if read.kind == "duration" else "dates"
            hint = "labels are integers, booleans, strings or categories"
            raise InputError(f"y holds {held}", hint, "y")
        return cls(name, read.kind, read.values, read.levels)

    def check_missing(self, unlabelled: str, part: Part | None) -> None:
        """Refuse rows without a label unless they are to be dropped, and some row has one."""
        unknown = self.missing()
        if unlabelled == "raise":
            hint = "fill it in, or drop such rows with {unlabelled}"
            refuse_rows(unknown, None, "y", "has no label", hint, {"unlabelled": "drop"})
        if part is None and unknown.all():
            raise InputError("y has no label at any row", "at least one outcome is needed", "y")

    def are_shares(self, p: Floats) -> bool:
        """Tell whether these are soft labels: shares between 0 and 1 beside a vector p.

        Beside a p of only 0 and 1 they are not: such y and p are swapped.
        """
        values = self.values
        if self.kind == "levels" or values.dtype.kind != "f" or p.ndim != 1:
            return False
        low, high = extremes(values)
        between = low >= 0 and high <= 1 and bool((values != np.floor(values)).any())
        return between and not bool(np.all((p == 0) | (p == 1)))

    def check_numbers(self, p: Floats, swapped: str = "") -> None:
        """Refuse numbers that are not labels; the hint says if y and p look swapped."""
        values = self.values
        if self.kind == "levels" or values.dtype.kind != "f":
            return
        values = values.astype(np.float64)  # in half precision the limit would be infinite
        inexact = ~(np.abs(values) <= LARGEST_EXACT)
        hint = "floating-point labels are whole and at most 2**53; give integers or strings"
        refuse_rows(inexact, values, "y", "is not a label", hint)
        hint = "labels are integers, booleans, strings or categories; if these are probabilities, "
        hint += "{y} and {p} are swapped; for amounts or counts pass {outcome} "
        hint += "to audit(), estimate() or bin_table(), and repair them with MeanCalibrator"
        if p.ndim == 1 and bool(np.all((p == 0) | (p == 1))):
            hint = swapped or "{y} and {p} look swapped: {y} is the outcome, {p} the probability"
        elif swapped:
            hint = "labels are integers, booleans, strings or categories; shares, amounts and "
            hint += "counts are for MeanCalibrator"
        off = values != np.floor(values)
        names = {"y": None, "p": None, "outcome": "mean"}
        refuse_rows(off, values, "y", "is not a label", hint, names)

    def encode(
        self, n_classes: int, given: Sequence[Hashable] | None, part: Part | None = None
    ) -> tuple[AnyArray, tuple[Hashable, ...]]:
        """Return the column of p that each label belongs to, and the classes.

        Labels 0/1 and booleans always mean [0, 1]. Any others are assigned to the columns in
        sorted order (the order of categories is not used), unless classes are given; those of a
        batch are the classes of all rows, with which 0/1 and booleans may be interchangeable.
        """
        given = given if part is None else part.classes
        by_meaning = given is None if part is None else part.by_meaning
        if by_meaning and n_classes == 2 and (pair := self._zero_one()):
            return pair
        codes, found = self._numbered()
        if given is not None:
            return self._by_given(codes, found, _checked_classes(n_classes, given))
        if len(found) != n_classes:
            shown = ", ".join(map(repr, found[:8])) + (" …" if len(found) > 8 else "")
            problem = f"y holds {len(found)} distinct labels ({shown}), but there are probabilities"
            hint = "list every label in the order of the probability columns with {classes}"
            raise InputError(f"{problem} for {n_classes} classes", hint, "y", {"classes": ...})
        return codes, found

    def distinct(self) -> tuple[Hashable, ...]:
        """Return the labels of a batch, while those of other batches are not known."""
        levels = self.levels
        return levels if levels == (False, True) else self._numbered()[1]

    def _zero_one(self) -> tuple[AnyArray, tuple[Hashable, ...]] | None:
        """Encode labels that are all 0/1 or booleans; return None if some are not."""
        values, levels = self.values, self.levels
        if self.kind == "numeric":
            low, high = extremes(values)
            return (_integers(values), (0, 1)) if low >= 0 and high <= 1 else None
        if not levels or any(level not in (0, 1) for level in levels):
            return None
        meaning = np.array([level == 1 for level in levels], dtype=np.intp)
        pair = (False, True) if isinstance(levels[0], bool) else (0, 1)
        return values if meaning.tolist() == [0, 1] else meaning[values], pair

    def _numbered(self) -> tuple[Ints, tuple[Hashable, ...]]:
        """Number the labels that occur, in sorted order."""
        if self.kind == "levels":
            codes, labels = sort_levels(*present_levels(self.values, self.levels))
            return codes, tuple(labels)
        values = _integers(self.values)
        low, high = (int(end) for end in extremes(values))
        if high - low <= 1:  # two numbers need no sorting
            return (values - values.min()).astype(np.intp), tuple(range(low, high + 1))
        found, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.intp), tuple(found.tolist())

    def _by_given(
        self, codes: Ints, found: Sequence[Hashable], classes: tuple[Hashable, ...]
    ) -> tuple[Ints, tuple[Hashable, ...]]:
        position = {label: k for k, label in enumerate(classes)}
        lookup = np.array([position.get(label, -1) for label in found], dtype=np.intp)
        in_order = lookup[codes]
        if (lookup < 0).any():
            labels = np.fromiter(found, dtype=object)[codes]
            problem = f"is not among classes {list(classes)!r}"
            hint = "add it to {classes}, or check the type of the labels"
            refuse_rows(in_order < 0, labels, "y", problem, hint, {"classes": None})
        return in_order, classes


def _checked_classes(n_classes: int, given: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Refuse classes that are not distinct labels, one for each class of the probabilities."""
    scalar = isinstance(given, np.ndarray) and not given.ndim
    if isinstance(given, str) or not isinstance(given, Iterable) or scalar:
        raise InputError(f"classes is {shown(given)}", "give a list of labels", "classes")
    listed = islice(given, n_classes + 1)  # one more than needed, however long it is
    classes = tuple(c.item() if isinstance(c, np.generic) else c for c in listed)
    hashable = all(isinstance(c, Hashable) for c in classes)
    if not hashable or not len(classes) == len(set(classes)) == n_classes:
        raise InputError(
            f"classes must name {n_classes} distinct labels, one for each class of the "
            f"probabilities; got {list(classes)!r}",
            "give one label per probability column, in their order",
            "classes",
        )
    return classes


def position_of(classes: Sequence[Hashable], pos_label: Hashable) -> int:
    """Return the position of the positive one of two classes, the second one by default.

    >>> position_of(["bad", "good"], None), position_of(["bad", "good"], "bad")
    (1, 0)
    """
    if pos_label is None:
        return 1
    if len(classes) != 2:
        meaning = f"has no meaning with {len(classes)} classes"
        problem = f"pos_label is {shown(pos_label)}, which {meaning}"
        raise InputError(problem, "omit {pos_label}", "pos_label", {"pos_label": None})
    check_choice("pos_label", pos_label, classes)
    return list(classes).index(pos_label)


def _integers(values: AnyArray) -> AnyArray:
    return values.astype(np.int64) if values.dtype.kind == "f" else values


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

    >>> from varcal._input.predictions import Predictions
    >>> predicted(Predictions.of([0, 1, 1], [0.2, 0.9, 0.5]), 1)
    array([False,  True, False])
    """
    return _predicts(predictions.p, key)


def claim_of(predictions: Predictions, key: int) -> Claim:
    """Return the claim with the given key.

    For `CORRECT` it is s = max_k p_k against "the argmax was right" (ties go to the first class),
    for the position k of a class s = p_k against y = k.

    >>> from varcal._input.predictions import Predictions
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
