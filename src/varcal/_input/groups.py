"""Groups: the unit that a row belongs to, by number and by bucket."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import blake2b

import numpy as np

from varcal._arrays import Bools, Ints
from varcal._input.variables import Variable, present_levels, refuse_rows, sort_levels
from varcal.exceptions import InputError

#: Groups are hashed into at most this many buckets.
N_BUCKETS = 256


def check_units(unit: Variable) -> Variable:
    """Refuse rows without a group."""
    hint = "every row must belong to a group"
    refuse_rows(unit.missing(), None, "groups", "is missing", hint)
    return unit


def group_numbers(unit: Variable) -> Ints:
    """Number the groups."""
    if unit.kind == "levels":
        return unit.values
    return np.unique(unit.values, return_inverse=True)[1].astype(np.intp)


def distinct_groups(unit: Variable) -> list[Hashable]:
    """Return the groups that rows belong to, sorted."""
    if unit.kind == "levels":
        return sort_levels(*present_levels(unit.values, unit.levels))[1]
    return list(np.unique(unit.values).tolist())


def buckets(
    unit: Variable | None, known: Sequence[Hashable] | None = None
) -> tuple[Ints | None, int]:
    """Return the bucket of each row (its group if there are few, else a hash) and their number.

    Parameters
    ----------
    unit : Variable or None
        The group of each row.
    known : sequence, optional
        All groups, sorted, if there are few. If it is empty, groups are always hashed, so that
        batches with different groups can be merged.

    Examples
    --------
    >>> buckets(Variable.of(["b", "a", "b"], "unit"))
    (array([1, 0, 1]), 2)
    >>> one, two = (Variable.of(names, "unit") for names in (["b", "a"], ["c", "b"]))
    >>> bool(buckets(one, ())[0][0] == buckets(two, ())[0][1])
    True
    """
    if unit is None:
        return None, 1
    if known is None:
        numbers = group_numbers(unit)
        n_groups = int(numbers.max()) + 1
        check_two_groups(n_groups)
        if n_groups <= N_BUCKETS:
            return numbers, n_groups
    elif known:
        return _positions(unit, known), len(known)
    return _hashes(unit), N_BUCKETS


def sided_buckets(
    side: Bools | None, bucket: Ints | None, n_buckets: int
) -> tuple[Ints | None, int]:
    """Return buckets of which there is one set per predicted side.

    >>> sided_buckets(np.array([False, True]), None, 1)
    (array([0, 1]), 2)
    """
    if side is None:
        return bucket, n_buckets
    shifted = side.astype(np.intp) * n_buckets
    return shifted if bucket is None else shifted + bucket, 2 * n_buckets


def check_two_groups(n_groups: int) -> None:
    """Refuse a single group."""
    if n_groups < 2:
        raise InputError("groups has only one group", "at least two groups are needed", "groups")


def _positions(unit: Variable, known: Sequence[Hashable]) -> Ints:
    position = {level: k for k, level in enumerate(known)}
    levels, numbers = unit.levels, unit.values
    if unit.kind != "levels":
        values, numbers = np.unique(unit.values, return_inverse=True)
        levels = tuple(values.tolist())  # Python integers: floats would merge large ones
    lookup = np.array([position.get(level, 0) for level in levels], dtype=np.intp)
    return lookup[numbers]


def _hashes(unit: Variable) -> Ints:
    """Hash values into buckets that are the same in every process and on every machine."""
    if unit.kind == "levels":
        texts = (str(level).encode() for level in unit.levels)
        digests = [blake2b(text, digest_size=1).digest()[0] for text in texts]
        return np.array(digests, dtype=np.intp)[unit.values]
    mixed = (unit.values.astype(np.float64) + 0.0).view(np.uint64)  # −0.0 is 0.0
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(56)).astype(np.intp)
