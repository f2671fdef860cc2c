"""Evidence: the cells that are watched, their sums in a batch, and what adds up over batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from varcal._arrays import Floats, Ints, ratio_or_zero
from varcal._edge_texts import edge_texts, zone_text
from varcal._input.labels import CORRECT, claim_names, collected_keys, position_of
from varcal._sums.bins import Bins, NumericBins, coarse_index
from varcal._sums.plan import BinPlan, Collected, Wanted
from varcal._sums.stats import FIELDS, STAKES
from varcal._text import number_text
from varcal.exceptions import InputError

#: The part of the evidence that is reserved for all rows together. The rest is shared evenly by
#: the variables, and that of a variable by its cells. Set beforehand, not tuned.
ALL_ROWS_PART = 0.2

#: The tables of a plan by claim and variable.
_Tables = Mapping[tuple[int, str], Wanted]
#: Where rows are: a table, one side of it, and whether they are about the opposite claim.
_Source = tuple[Wanted, int, bool]
#: The same by claim and variable.
_Sources = Mapping[tuple[int, str], list[_Source]]
#: Evidence is not followed beyond this, so that it cannot overflow. A smaller value is safe.
MOST = 1e100
#: The rates that intervals average over, as parts of the largest possible one. They span what is
#: best from some ten to many million rows.
_RATES = np.geomspace(0.001, 0.9, 24)
#: Predicted mean errors are held within this: a larger one would allow a lower error relative to
#: it, and so a wider interval for everybody.
MOST_PREDICTED = 0.25
_SIGNS = np.array([1.0, -1.0])


@dataclass(frozen=True)
class Cell:
    """One place: a bin of a variable or all rows, for one claim.

    Attributes
    ----------
    claim : str
        The claim: "probability", "confidence" or "class …".
    variable : str
        The variable; empty for all rows.
    text, label : str
        The bin as text, and with the name of the variable.
    part : float
        Its part of the evidence.
    """

    claim: str
    variable: str
    text: str
    label: str
    part: float


class Cells:
    """All cells of a monitor: for each claim all rows, and then the bins of each variable.

    Parameters
    ----------
    plan : BinPlan
        The bins. Columns that an audit leaves out, such as identifiers, are not watched.
    event : str or None
        The claims, as in `audit`; all that the bins were chosen for by default.

    Attributes
    ----------
    cells : tuple of Cell
        The cells.
    part : ndarray
        The part of each cell of the evidence; they add up to 1.
    variables : tuple of str
        The variables.
    variable_number : ndarray
        The number of each cell's variable; that of all rows comes after the last one.
    slim : BinPlan
        The bins with those tables only that the cells need, without fine cells.
    """

    def __init__(self, plan: BinPlan, event: str | None = None) -> None:
        tables = {
            (one.key, one.names[0]): one
            for one in plan.wanted
            if len(one.names) == 1 and one.limit is None
        }
        named = {name for _, name in tables} - set(plan.left_out)
        names = tuple(one.name for one in plan.along if one.name in named)
        keys = _claims(plan, tables, event)
        if not names:
            raise InputError(
                "bins have no variable to watch",
                "name variables when the bins are chosen: make_bins(…, X=[…])",
                argument="bins",
            )
        sources = {(key, name): _sources(plan, tables, key, name) for key in keys for name in names}
        used = tuple(dict.fromkeys(one for several in sources.values() for one, _, _ in several))
        about = {(one.key, one.names) for one in used}
        bets = [one for one in plan.wanted if one.limit is not None and one.slot[:2] in about]
        self.plan = plan
        self.slim = replace(plan, wanted=(*(replace(one, fine=one.coarse) for one in used), *bets))
        self.variables = names
        self._used = used
        self._starts = [
            np.searchsorted(coarse_index(one.fine, one.coarse), np.arange(one.coarse.size))
            for one in used
        ]
        cap = plan.weight_cap  # to be scaled like weights
        self._cap = 1.0 if cap is None else float(np.ldexp(cap, -plan.part.exponent))
        self._place_cells(keys, sources)

    def _place_cells(self, keys: list[int], sources: _Sources) -> None:
        """List the cells, and where the sums of each are if all tables are put side by side."""
        sizes = [(1 + one.sided) * one.coarse.size for one in self._used]
        offsets = dict(zip(self._used, np.cumsum([0, *sizes]).tolist(), strict=False))
        claims = claim_names(self.plan.classes, keys)
        cells, pieces = [], []
        for key, name in sources:
            claim, part, found = claims[key], _claim_part(keys, key), sources[key, name]
            bins = found[0][0].coarse
            starts = [offsets[table] + side * bins.size for table, side, _ in found]
            place = np.add.outer(starts, np.arange(bins.size))
            opposite = np.broadcast_to([[one] for _, _, one in found], place.shape)
            piece = np.stack([place, opposite])
            if name == self.variables[0]:
                cells.append(Cell(claim, "", "all rows", "all rows", part * ALL_ROWS_PART))
                pieces.append(piece.reshape(2, -1))
            share = part * (1 - ALL_ROWS_PART) / len(self.variables) / bins.size
            cells += [Cell(claim, name, *texts, share) for texts in _texts(bins)]
            pieces += list(np.moveaxis(piece, -1, 0))
        self.cells = tuple(cells)
        self.part = np.array([cell.part for cell in cells])
        order = {name: k for k, name in enumerate((*self.variables, ""))}
        self.variable_number = np.array([order[cell.variable] for cell in cells])
        self._first = np.cumsum([0, *(piece.shape[1] for piece in pieces)])[:-1]
        self._place, opposite = np.concatenate(pieces, axis=1)
        self._opposite = opposite.astype(bool)

    def __len__(self) -> int:
        return len(self.cells)

    def number_of(self, claim: str, variable: str, text: str) -> int:
        """Return the number of a cell; raise ValueError if there is no such cell."""
        named = [(cell.claim, cell.variable, cell.text) for cell in self.cells]
        return named.index((claim, variable, text))

    def moments(self, collected: Collected, *, bets: bool) -> Moments:
        """Return the sums of a batch by cell, and those of bets if they are wanted."""
        slim = collected.plan == self.slim
        if not slim and collected.plan != self.plan:
            raise InputError(
                "batch was collected over other bins than those of the monitor",
                "collect it with the bins that the monitor was made with",
                argument="batch",
            )
        pairs = zip(collected.plan.wanted, collected.tables, strict=True)
        tables = {one.slot: np.asarray(table) for one, table in pairs}
        by_bin = []
        for one, starts in zip(self._used, self._starts, strict=True):
            table = tables[one.slot][: FIELDS.index("square2") + 1]
            table = table if slim else np.add.reduceat(table, starts, axis=-1)
            by_bin.append(_side_by_side(table, 1 + one.sided))
        sums = dict(zip(FIELDS, np.concatenate(by_bin, axis=-1)[..., self._place], strict=False))
        for name in ("hit", "score", "hit2", "score2"):
            whole = sums["weight2" if name.endswith("2") else "weight"]
            sums[name] = np.where(self._opposite, whole - sums[name], sums[name])
        sums = {name: self._added(values) for name, values in sums.items()}
        if self.plan.roles.groups is not None:
            return _moments_of_units(sums)
        gains = None
        if bets:
            found = [tables[one.key, one.names, True][1:] for one in self._used]
            flat = [table.reshape(2, len(STAKES), -1) for table in found]
            won = np.concatenate(flat, axis=-1)[..., self._place]
            # A bet on more hits is one on fewer misses.
            gains = np.moveaxis(self._added(np.where(self._opposite, won[::-1], won)), -1, 0)
        rows = {name: values[0] for name, values in sums.items()}
        return Moments(
            np.stack([rows[name] for name in ("n", "weight", "hit", "score", "square2")]),
            rows["hit2"] - rows["score2"],
            rows["weight2"],
            np.full(len(self), self._cap),
            gains,
        )

    def _added(self, pieces: Floats) -> Floats:
        """Add the pieces of each cell."""
        return np.add.reduceat(pieces, self._first, axis=-1)


def _moments_of_units(sums: Mapping[str, Floats]) -> Moments:
    """Return the moments of units, whose sums are along the first axis."""
    size, error = sums["weight"], sums["hit"] - sums["score"]
    largest = size.max(axis=0)
    added = (sums["n"], size, sums["hit"], sums["score"], error**2)
    return Moments(
        np.stack([values.sum(axis=0) for values in added]),
        (error * size).sum(axis=0),
        (size**2).sum(axis=0),
        np.where(largest > 0, largest, 1.0),
        units=(error, size),
    )


def _side_by_side(sums: Floats, n_sides: int) -> Floats:
    """Return sums by unit, with the bins of all sides in one row."""
    n_units = sums.shape[1] // n_sides
    by_side = sums.reshape(len(sums), n_sides, n_units, -1)
    return by_side.swapaxes(1, 2).reshape(len(sums), n_units, -1)


def _claims(plan: BinPlan, tables: _Tables, event: str | None) -> list[int]:
    """Return the keys of the claims to watch."""
    known = {key for key, _ in tables}
    sided = {key for (key, _), one in tables.items() if one.sided}
    two = len(plan.classes) == 2
    # The confidence follows from all classes, or from either of two.
    if sided and (two or len(sided) == len(plan.classes)):
        known.add(CORRECT)
    if event is None:
        if not two:
            return sorted(known)
        positive = position_of(plan.classes, plan.roles.pos_label)
        about = [key for key in (positive, 1 - positive) if key in known]
        return about[:1] + [CORRECT] * (CORRECT in known)
    keys = collected_keys(plan.classes, event, plan.roles.pos_label)
    if not known.issuperset(keys):
        raise InputError(
            f"event is {event!r}, which the bins were not chosen for",
            f'choose them with make_bins(…, events=["{event}"])',
            argument="event",
        )
    return keys


def _claim_part(keys: list[int], key: int) -> float:
    """Return the part of a claim: the confidence is as important as all classes together."""
    about = len(keys) - (CORRECT in keys)
    if CORRECT not in keys or not about:
        return 1 / len(keys)
    return 0.5 if key == CORRECT else 0.5 / about


def _sources(plan: BinPlan, tables: _Tables, key: int, name: str) -> list[_Source]:
    """Return where the rows of a claim along a variable are.

    The confidence is taken from the tables of classes by predicted side if there are any, because
    only they have bets then. With two classes it is the opposite claim where the class is not the
    predicted one: one minus the score, and one minus the hit.
    """
    about = [one for (_, along), one in tables.items() if along == name and one.sided]
    if key == CORRECT and about:
        if len(plan.classes) > 2:
            return [(one, 1, False) for one in about]
        return [(about[-1], 0, True), (about[-1], 1, False)]
    table = tables[key, name]
    return [(table, side, False) for side in range(1 + table.sided)]


def _texts(bins: Bins) -> list[tuple[str, str]]:
    """Return each bin as text, and with the name of the variable; no two texts overlap."""
    name = bins.name
    if not isinstance(bins, NumericBins):
        return [(text, f"{name}: {text}") for text in bins.labels()]
    edges = bins.edges
    shown = [number_text(edge) for edge in edges]
    if bins.datetime or bins.duration or len(set(shown)) < len(set(edges)):
        shown = edge_texts(edges, datetime=bins.datetime, duration=bins.duration, zone=bins.zone)
    # A bin includes its lower edge only if its cut lies just below that value.
    starts = [True, *(float(np.nextafter(cut, np.inf)) in bins.starts for cut in bins.cuts), False]
    below, above, over = "below", "above", "{} and over"
    if bins.datetime:
        below, above, over = "before", "after", "from {}"
    last = len(edges) - 2
    texts = []
    for k, (low, high) in enumerate(pairwise(shown)):
        low = low if starts[k] else f"{above} {low}"
        text = f"{low} to {below} {high}" if starts[k + 1] else f"{low} to {high}"
        if edges[k] == edges[k + 1]:
            text = shown[k]
        elif k == 0 < last:
            text = f"{below} {high}" if starts[1] else f"up to {high}"
        elif k == last > 0:
            text = over.format(low) if starts[k] else low
        texts.append(text + zone_text(bins.zone))
    texts += ["missing"] * bins.missing
    return [(text, f"{name} {text}") for text in texts]


@dataclass(frozen=True, eq=False)
class Moments:
    """The sums of a batch, with the last axis over cells.

    An item is a row, or with groups a unit: its error is the mean error x = h − s of its rows, and
    its size u their number. The size of a single row is its weight.

    Attributes
    ----------
    sums : ndarray
        Rows, Σ u, Σ u h, Σ u s and Σ u² x² along the first axis.
    error2, weight2 : ndarray
        Σ u² x and Σ u².
    top : ndarray
        The largest size that an item can have.
    gains : ndarray or None
        The logarithms of what bets gained, with two more axes: directions and stakes.
    units : tuple of ndarray or None
        Σ u x and u of each unit, with a first axis over units.
    """

    sums: Floats
    error2: Floats
    weight2: Floats
    top: Floats
    gains: Floats | None = None
    units: tuple[Floats, Floats] | None = None


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
        return np.asarray(np.log1p(part[..., None] * stakes).sum(axis=0))
    _, weight, hit, score, square2 = moments.sums[..., None]
    first = ((hit - score) * _SIGNS - limits * weight) / reach
    signed2, weight2 = moments.error2[..., None] * _SIGNS, moments.weight2[..., None]
    second = (square2 - 2 * limits * signed2 + limits**2 * weight2) / reach**2
    price = -np.log1p(-stakes) - stakes
    return np.asarray(first[..., None] * stakes - second[..., None] * price)


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
        The sums of `Moments` since then, along a first axis.
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
        spent, flow, run = np.zeros((3, *full))
        return cls(0, spent, flow, run, np.zeros(full, dtype=np.intp), np.zeros((5, *full)))

    def update(self, log_e: Floats, moments: Moments) -> None:
        """Add a batch, given its log e-values, shape (…, cells, directions, stakes)."""
        log_e = log_e.reshape(self.run.shape)
        self.t += 1
        # The exponential of the logarithm of MOST may be a little smaller than MOST.
        gain = np.minimum(np.exp(np.minimum(log_e, np.log(MOST) + 1.0)), MOST)
        filled = (moments.sums[0] > 0)[..., None]
        self.spent += filled / (self.t * (self.t + 1))
        self.flow += filled
        for evidence in (self.spent, self.flow):
            evidence *= gain
            np.minimum(evidence, MOST, out=evidence)
        kept = self.run > 0
        self.start[~kept] = self.t
        self.run *= kept
        self.run += log_e
        self.window *= kept
        self.window += moments.sums[..., None]

    def shares(self, part: Floats, *, spent: bool) -> Floats:
        """Return the share of each cell of the evidence, shape (…, cells)."""
        return (self.spent if spent else self.flow).mean(axis=-1) * part

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


@dataclass(eq=False)
class Running:
    """The sums of all batches since the start, by cell, from which the mean gap is estimated.

    Attributes
    ----------
    grouped : bool
        Whether items are units, whose largest size is not known beforehand.
    sums : ndarray
        Rows, Σ u, Σ u h, Σ u s and Σ u² (x − m)² along the first axis, with m the mean error of
        all earlier batches, held within `MOST_PREDICTED`.
    first, top : ndarray
        The largest size of an item in the first batch with rows, and in any batch; without groups
        both are constant.
    """

    grouped: bool
    sums: Floats
    first: Floats
    top: Floats

    @classmethod
    def new(cls, *shape: int, grouped: bool = False) -> Running:
        """Return the sums of no batch; the last number is that of cells."""
        return cls(grouped, np.zeros((5, *shape)), np.zeros(shape), np.zeros(shape))

    def update(self, moments: Moments) -> Floats:
        """Add a batch; return what it added to the sums."""
        _, weight, hit, score, _ = self.sums
        mean = np.clip(ratio_or_zero(hit - score, weight), -MOST_PREDICTED, MOST_PREDICTED)
        added = moments.sums.copy()
        added[4] += mean**2 * moments.weight2 - 2 * mean * moments.error2
        self.sums += added
        filled = added[0] > 0
        self.first = np.where((self.first == 0) & filled, moments.top, self.first)
        self.top = np.where(filled, np.maximum(self.top, moments.top), self.top)
        return added

    def cap(self) -> tuple[Floats, Floats]:
        """Return the largest size that an item can have, and the price of not knowing it before.

        With groups the largest size of a unit is known only when it is seen. It is rounded up to
        the k-th doubling of the first one, which has a part of 1 / ((k + 1)(k + 2)) of the error.
        """
        base = np.where(self.first > 0, self.first, 1.0)
        if not self.grouped:
            return base, np.zeros_like(base)
        k = np.ceil(np.log2(np.maximum(self.top, base) / base) - 1e-12)
        return base * 2.0**k, np.log((k + 1) * (k + 2))

    def interval(self, log_odds: Floats | float) -> tuple[Floats, Floats, Floats]:
        """Return the mean gap and the ends of its interval; without rows −1 to 1."""
        cap, price = self.cap()
        return gap_interval(self.sums, cap, log_odds + price, 1 + MOST_PREDICTED)


def gap_interval(
    sums: Floats, cap: Floats | float, log_odds: Floats | float, lowest: float = 1.0
) -> tuple[Floats, Floats, Floats]:
    """Return a mean gap, and the ends of its interval within [−1, 1].

    Parameters
    ----------
    sums : ndarray
        As those of `Running` along the first axis; with m = 0 those of `Moments`.
    cap : float or ndarray
        The largest size that an item can have.
    log_odds, lowest
        As in `reach_of`.
    """
    _, weight, hit, score, spread = sums
    gap = ratio_or_zero(score - hit, weight)
    reach = cap * reach_of(spread / cap**2, log_odds, lowest)
    half = np.where(weight > 0, ratio_or_zero(reach, weight), np.inf)
    return gap, np.maximum(gap - half, -1.0), np.minimum(gap + half, 1.0)


def reach_of(spread: Floats, log_odds: Floats | float, lowest: float = 1.0) -> Floats:
    r"""Return how far a sum of errors can be from the sum of their means, at all times at once.

    V is the sum of the squared distances of errors from what was predicted before each batch. No
    error is further than c from its prediction on the side that counts. The reach r solves
    :math:`\text{mean}_\lambda \exp(\lambda r - \psi(\lambda) V) = \text{odds}` with
    :math:`\psi(\lambda) = (-\ln(1 - c\lambda) - c\lambda) / c^2`: the mean on the left exceeds the
    odds 2/α at any time with a probability of at most α/2 for either direction (Howard, Ramdas,
    McAuliffe and Sekhon 2021).

    Parameters
    ----------
    spread : ndarray
        V.
    log_odds : float or ndarray
        The logarithm of the odds.
    lowest : float
        The bound c: 1 if 0 was predicted for errors from −1 to 1.

    Examples
    --------
    >>> reach_of(np.array([200.0]), np.log(2 / 0.05)).round(1)
    array([52.6])
    """
    odds = np.asarray(log_odds, np.float64)
    rates = _RATES / lowest
    cost = (-np.log1p(-_RATES) - _RATES) / lowest**2 * np.asarray(spread, np.float64)[..., None]
    # One rate alone gives an upper bound, from which Newton's steps fall to the solution.
    reach = ((cost + odds[..., None] + np.log(len(rates))) / rates).min(axis=-1)
    for _ in range(12):
        power = rates * reach[..., None] - cost
        top = power.max(axis=-1, keepdims=True)
        weight = np.exp(power - top)
        value = top[..., 0] + np.log(weight.mean(axis=-1)) - odds
        slope = (weight * rates).sum(axis=-1) / weight.sum(axis=-1)
        reach = reach - value / slope
    return np.asarray(reach)
