"""`predictable_gap`: how much of the gap can be predicted, intersections included."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtr

from varcal._arrays import Floats, Ints
from varcal._files.schema import built_from, plain, restored
from varcal._inference.multiplicity import cauchy, student_quantile
from varcal._input.labels import CORRECT, audit_keys, claim_names, claim_of
from varcal._input.left_out import must_read
from varcal._input.predictions import ALL, Predictions
from varcal._input.variables import Variable
from varcal._options import check_names, checked, or_none
from varcal._search.cells import read_rows
from varcal._sums.evidence import without_left_out
from varcal._text import count, level_text, p_equation, points, wrapped
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

#: Blocks of rows: each but the first is predicted from those before it.
BLOCKS = 8
#: With fewer rows nothing can be learned.
FEWEST_ROWS = 200
#: With groups, at least so many groups.
FEWEST_GROUPS = 16
#: Above this number of classes only the confidence is judged, to save time.
MOST_CLASSES = 10
#: Decimals of the scores that trees see: processors round the last bits of equal ones apart.
DECIMALS = 9
#: Trees, their depth, the learning rate and the least share of rows in a leaf. Gaps are small
#: beside the noise of outcomes: with 60 trees or depth 4 the value was a tenth to a quarter lower
#: on planted slices and additive gaps of 5,000 rows.
TREES, DEPTH, RATE, LEAF = 30, 3, 0.06, 0.02
#: A leaf has at least so many rows.
LEAST_LEAF = 20
#: Levels with a code of their own; scikit-learn allows 255 categories.
MOST_LEVELS = 250


@dataclass(frozen=True)
class PredictableGap:
    """How much of the gap some variables and the score predict, intersections included.

    Attributes
    ----------
    value : float
        At least this gap, as a root mean square over rows, is predicted by what was learned from
        other rows; 0 if nothing is. It is an estimate of a lower bound of the true root mean
        square of the gap given these variables and the score.
    low : float
        Lower limit of `value` at the level; with one claim it is above 0 exactly where `p_value`
        is below 1 − level. The true gap is at least this large in `level` of all samples.
    p_value : float
        How likely this would be if the scores were right whatever the variables.
    claim : str
        The claim that the value is about: that with the largest lower limit.
    variables : tuple of str
        The variables.
    n_rows, n_blocks : int
        Rows, and the blocks into which they were split.
    level : float
        Level of the lower limit.
    left_out : tuple of (str, str)
        Columns that were left out, with the reason.
    notes : tuple of str
        Remarks, such as that rows are a sample.
    """

    value: float
    low: float
    p_value: float
    claim: str
    variables: tuple[str, ...]
    n_rows: int
    n_blocks: int
    level: float
    left_out: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The finding in one sentence."""
        tested = p_equation(self.p_value)
        known = f"{count(len(self.variables), 'variable')} and the score"
        value = points(self.value)
        if self.low > 0:
            return (
                f"At least {points(self.low)} points of gap can be predicted from {known}, "
                f"{value} by our estimate ({tested})."
            )
        if self.p_value < 1 - self.level:
            return (
                f"A gap can be predicted from {known} ({tested}), {value} points by our estimate."
            )
        return (
            f"No gap that {known} predict was found ({tested}): "
            "what boosted trees find is no more than chance."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return {"sentence": self.sentence, **plain(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PredictableGap:
        """Return the result that `to_dict` described."""
        return restored(lambda: built_from(data, cls), cls, "a predictable gap")

    def __repr__(self) -> str:
        size = f"{points(self.value)} points, at least {points(self.low)}"
        head = f"Predictable gap: {size} ({level_text(self.level)}, {p_equation(self.p_value)})"
        return wrapped("\n".join([head, self.sentence, *self.notes]))


@checked(include=or_none(check_names))
@one_blas_thread()
def predictable_gap(
    y: object,
    p: object = None,
    X: object = ALL,
    *,
    data: object = None,
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    level: float = 0.95,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    include: str | Sequence[str] | None = None,
    random_state: int = 0,
) -> PredictableGap:
    r"""Measure how much of the gap can be predicted from variables and the score.

    Rows are split at random into eight blocks. For every block but the first, boosted trees are
    fitted to hit − score in the blocks before it. What they predict, :math:`g_i`, does not depend
    on the outcomes of the block, so that

    .. math:: z = \frac{\sum_i g_i e_i}{\sqrt{\sum_i g_i^2 s_i (1 - s_i)}}, \quad e = h - s

    is a martingale, about normal if the scores are right whatever the variables; nothing has to
    be simulated. By the Cauchy–Schwarz inequality the expectation of

    .. math:: \theta = \frac{\frac1n\sum_i g_i e_i}{\sqrt{\frac1n\sum_i g_i^2}}

    is at most the root mean square of the true gap given the variables and the score. A value of
    zero means that the trees find nothing left; it does not prove that there is no gap: `slices`
    finds narrow regions better.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `vece`.
    X : frame, dict of columns, array, or column names, optional
        The variables, as in `audit`; those that it leaves out are left out here as well.
    data, classes, sample_weight, from_logits, unlabelled, include
        As in `audit`. Of lazy rows that do not fit into memory, 500,000 are drawn at random.
    level : float
        Level of the lower limit, which is one-sided.
    pos_label : label, optional
        The class whose probability is judged, and that a vector `p` is the probability of;
        the second one by default.
    groups : array-like or column name, optional
        Units that rows belong to. A unit stays in one block, and variances allow for dependence
        within it.
    random_state : int
        Seed of the split. The order of the rows has no influence.

    Returns
    -------
    PredictableGap

    Examples
    --------
    >>> import varcal as vc
    >>> adult = vc.datasets.load_adult()
    >>> X = {name: adult[name] for name in ("age", "hours-per-week", "sex")}
    >>> found = vc.predictable_gap(adult.y, adult.p, X)
    >>> found.claim, 0.1 < found.low < found.value < 0.3
    ('probability', True)
    """
    options = {
        "data": data,
        "classes": classes,
        "pos_label": pos_label,
        "sample_weight": sample_weight,
        "groups": groups,
        "from_logits": from_logits,
        "unlabelled": unlabelled,
        "must_read": must_read(X, include),
    }
    rows = read_rows("predictable_gap()", y, p, X, options)
    read = rows.predictions
    if not read.variables and not read.odd:
        raise InputError("X is None", "give the variables", argument="X")
    kept, left_out = without_left_out(read, X, include)
    keys = audit_keys(kept.classes, pos_label)
    found = predictable_of(kept, keys, level=level, random_state=random_state)
    return replace(found, left_out=tuple(left_out.items()), notes=rows.notes)


def predictable_of(
    rows: Predictions, keys: Sequence[int], *, level: float, random_state: int
) -> PredictableGap:
    """Return the predictable gap of checked rows for the given claims."""
    if len(rows) < FEWEST_ROWS:
        raise InputError(
            f"there are {len(rows)} rows; predictable_gap() learns from some and judges others",
            f"give at least {FEWEST_ROWS}",
            argument="y",
        )
    n_groups = FEWEST_GROUPS if rows.groups is None else len(np.unique(rows.groups))
    if n_groups < FEWEST_GROUPS:
        raise InputError(
            f"groups has {count(n_groups, 'group')}",
            f"at least {FEWEST_GROUPS} are needed: a group is either learned from or judged",
            argument="groups",
        )
    names = claim_names(rows.classes, keys)
    keys = _distinct(rows, keys)
    rows = rows.take(_sorted(rows))
    blocks = random_blocks(len(rows), BLOCKS, rows.groups, np.random.default_rng(random_state))
    each = 1 - (1 - level) / len(keys)
    judged = {key: _claim(rows, key, blocks, each, random_state) for key in keys}
    worst = max(keys, key=lambda key: (judged[key][1], judged[key][0]))
    value, low, _ = judged[worst]
    return PredictableGap(
        value=value,
        low=low,
        p_value=float(cauchy([np.array(p_value) for _, _, p_value in judged.values()])),
        claim=names[worst],
        variables=tuple(variable.name for variable in rows.variables),
        n_rows=len(rows),
        n_blocks=BLOCKS,
        level=level,
    )


def _claim(
    rows: Predictions, key: int, blocks: Ints, level: float, random_state: int
) -> tuple[float, float, float]:
    """Return value, lower limit and p-value of the gap of a claim."""
    claim = claim_of(rows, key)
    score = claim.score
    error, null = claim.hit - score, score * (1 - score)
    weight = np.ones(len(error)) if rows.weight is None else rows.weight
    scores = rows.p if key != CORRECT or rows.p.ndim == 2 else score
    columns = [*_columns(rows.variables), *np.atleast_2d(scores.round(DECIMALS).T)]
    features = np.column_stack(columns)
    levels = np.flatnonzero([variable.kind == "levels" for variable in rows.variables])
    predicted = np.zeros(len(error))
    for k in range(1, BLOCKS):
        learn, judge = blocks < k, blocks == k
        if not (weight[learn].any() and weight[judge].any()):
            continue
        trees = _trees(levels, int(learn.sum()), random_state)
        trees.fit(features[learn], error[learn], None if rows.weight is None else weight[learn])
        found = trees.predict(features[judge])
        size = np.sqrt(np.average(found**2, weights=weight[judge]))
        # Every block is judged with the same size of predictions, later ones by more: trees
        # of few rows predict more noise.
        predicted[judge] = found / size * np.sqrt(k) if size > 0 else 0.0
    used = blocks > 0
    units = None if rows.groups is None else rows.groups[used]
    return _judged(predicted[used], error[used], null[used], weight[used], units, level)


def _judged(
    predicted: Floats, error: Floats, null: Floats, weight: Floats, units: Ints | None, level: float
) -> tuple[float, float, float]:
    """Return value, lower limit and p-value of predictions that outcomes have not influenced."""
    product = weight * predicted * error
    total = float(product.sum())
    scale = float(np.sqrt((weight * predicted**2).sum() * weight.sum()))
    expected = float((weight**2 * predicted**2 * null).sum())
    observed, dof = float((product**2).sum()), np.inf
    if units is not None:
        number = np.unique(units, return_inverse=True)[1]
        sums = np.bincount(number, product)
        sizes = np.bincount(number, np.abs(weight * predicted))
        dof = max(float((sizes**2).sum() ** 2 / (sizes**4).sum()) - 1, 1.0)
        observed = max(observed, float((sums**2).sum()))
    # The larger of the two: that of right scores, and that of the observed products.
    spread = float(np.sqrt(max(expected, observed)))
    if not scale > 0 or not spread > 0:
        return 0.0, 0.0, 1.0
    t = total / spread
    p_value = float(ndtr(-t) if np.isinf(dof) else stdtr(dof, -t))
    low = (total - student_quantile(level, dof) * spread) / scale
    return max(total / scale, 0.0), max(low, 0.0), p_value


def _distinct(rows: Predictions, keys: Sequence[int]) -> list[int]:
    """Return the claims whose gaps differ, and of very many classes only the confidence."""
    if len(rows.classes) == 2:
        # The trees know the score, hence the predicted side: both claims have the same gap.
        return list(keys[:1])
    many = len(rows.classes) > MOST_CLASSES and CORRECT in keys
    return [CORRECT] if many else list(keys)


def _trees(levels: Ints, n_rows: int, random_state: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415  loads when needed

    return HistGradientBoostingRegressor(
        max_iter=TREES,
        max_depth=DEPTH,
        learning_rate=RATE,
        min_samples_leaf=max(LEAST_LEAF, int(LEAF * n_rows)),
        early_stopping=False,
        categorical_features=levels if len(levels) else None,
        random_state=random_state,
    )


def _columns(variables: Sequence[Variable]) -> list[Floats]:
    """Return variables as numbers, NaN where they are missing, levels as codes.

    Of many levels the frequent ones have codes of their own, and the rest share one.
    """
    columns = []
    for variable in variables:
        values = variable.values
        if len(variable.levels) > MOST_LEVELS:
            counts = np.bincount(values[values >= 0], minlength=len(variable.levels))
            rank = np.argsort(np.argsort(-counts, kind="stable"))
            values = np.where(values < 0, -1, np.minimum(rank[values], MOST_LEVELS))
        columns.append(np.where(variable.missing(), np.nan, values).astype(np.float64))
    return columns


def _sorted(rows: Predictions) -> Ints:
    """Return the rows in an order that depends on their values only; equal rows are alike.

    Variables come first and probabilities last: these may be computed, and what processors round
    differently must not move rows to other blocks.
    """
    keys = [*np.atleast_2d(rows.p.T), rows.y]
    keys += [one for one in (rows.weight, rows.groups) if one is not None]
    return np.lexsort([*keys, *_columns(rows.variables)])  # the last key counts first


def random_blocks(
    n_rows: int, n_blocks: int, groups: Ints | None, rng: np.random.Generator
) -> Ints:
    """Return the block of each row, whole groups in one block.

    Examples
    --------
    >>> blocks = random_blocks(8, 4, None, np.random.default_rng(0))
    >>> np.bincount(blocks).tolist()
    [2, 2, 2, 2]
    """
    if groups is None:
        return rng.permutation(n_rows) * n_blocks // n_rows
    number = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(number)
    order = rng.permutation(len(sizes))
    ends = np.cumsum(sizes[order])
    block = np.empty(len(sizes), dtype=np.intp)
    block[order] = ((ends - sizes[order] / 2) * n_blocks / n_rows).astype(np.intp)
    return block[number]
