"""Cells: the places that a monitor watches, and their sums in a batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._binning.bins import Bins, NumericBins, coarse_index
from varcal._binning.stats import FIELDS
from varcal._engines.bets import STAKES
from varcal._evidence.collected import Collected
from varcal._evidence.plan import BinPlan
from varcal._evidence.tally import Wanted
from varcal._input.events import CORRECT, collected_keys
from varcal._input.labels import position_of
from varcal._monitor.moments import Moments, moments_of_rows, moments_of_units
from varcal._text.edges import edge_texts, zone_text
from varcal._text.gaps import CLASS, CONFIDENCE, RISK
from varcal._text.numbers import number_text
from varcal.exceptions import InputError

#: The part of the evidence that is reserved for all rows together. The rest is shared evenly by
#: the variables, and that of a variable by its cells. Set beforehand, not tuned.
ALL_ROWS_PART = 0.2


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


@dataclass(frozen=True)
class _Piece:
    """Where the rows of a cell are: some bins of one side of a table.

    With two classes, "the prediction is correct" is the opposite claim where the class is not
    the predicted one: one minus the score, and one minus the hit.
    """

    table: Wanted
    side: int
    bins: range
    opposite: bool = False


class Cells:
    """All cells of a monitor.

    Parameters
    ----------
    plan : BinPlan
        The bins. Columns that an audit leaves out, such as identifiers, are not watched.
    event : str or None
        The claims, as in `audit`; all that the bins were chosen for by default.

    Attributes
    ----------
    cells : tuple of Cell
        For each claim all rows, and then the bins of each variable.
    slim : BinPlan
        The bins with those tables only that the cells need, without fine cells.
    """

    def __init__(self, plan: BinPlan, event: str | None = None) -> None:
        self.plan = plan
        tables = {
            (one.key, one.names[0]): one
            for one in plan.wanted
            if len(one.names) == 1 and one.limit is None
        }
        keys = _keys(plan, tables, event)
        names = [
            one.name
            for one in plan.along
            if one.name not in plan.left_out and any(name == one.name for _, name in tables)
        ]
        if not names:
            raise InputError(
                "bins have no variable to watch",
                "name variables when the bins are chosen: make_bins(…, X=[…])",
                argument="bins",
            )
        cells, pieces = [], []
        for key in keys:
            claim, part = _claim(plan, key), _claim_part(keys, key)
            for k, name in enumerate(names):
                found = _pieces(plan, tables, key, name)
                bins = found[0].table.coarse
                if k == 0:
                    cells.append(Cell(claim, "", "all rows", "all rows", part * ALL_ROWS_PART))
                    pieces.append(found)
                share = part * (1 - ALL_ROWS_PART) / len(names) / bins.size
                for j, (text, label) in enumerate(_texts(bins)):
                    cells.append(Cell(claim, name, text, label, share))
                    pieces.append([replace(one, bins=range(j, j + 1)) for one in found])
        self.cells = tuple(cells)
        self._pieces = pieces
        needed = dict.fromkeys(piece.table for several in pieces for piece in several)
        self._tables = tuple(needed)
        bets = [
            one
            for one in plan.wanted
            if one.limit is not None
            and any((one.key, one.names) == (used.key, used.names) for used in needed)
        ]
        self.has_bets = bool(bets)
        usual = [replace(one, fine=one.coarse) for one in needed]
        self.slim = replace(plan, wanted=(*usual, *bets))

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def part(self) -> Floats:
        """The part of each cell of the evidence; they add up to 1."""
        return np.array([cell.part for cell in self.cells])

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables."""
        return tuple(dict.fromkeys(cell.variable for cell in self.cells if cell.variable))

    @cached_property
    def variable_number(self) -> Ints:
        """The number of each cell's variable; that of all rows comes after the last one."""
        number = {name: k for k, name in enumerate(self.variables)}
        return np.array([number.get(cell.variable, len(number)) for cell in self.cells])

    def moments(self, collected: Collected, *, bets: bool) -> Moments:
        """Return the sums of a batch by cell, and those of bets if they are wanted."""
        slim = collected.plan == self.slim
        if not slim and collected.plan != self.plan:
            raise InputError(
                "batch was collected over other bins than those of the monitor",
                "collect it with the bins that the monitor was made with",
                argument="batch",
            )
        where = {one.slot: k for k, one in enumerate(collected.plan.wanted)}
        weighted = self.plan.roles.sample_weight is not None
        fields = _WEIGHTED if weighted else _UNWEIGHTED
        rows = [FIELDS.index(name) for name in fields]
        parts = []
        for table, starts in zip(self._tables, self._starts, strict=True):
            sums = np.asarray(collected.sums.tables[where[table.slot]])[: rows[-1] + 1]
            if not slim:
                sums = np.add.reduceat(sums, starts, axis=-1)
            n_sides, n_units = 1 + table.sided, sums.shape[1] // (1 + table.sided)
            sums = sums[rows].reshape(len(fields), n_sides, n_units, -1)
            parts.append(sums.swapaxes(1, 2).reshape(len(fields), n_units, -1))
        whole = np.concatenate(parts, axis=-1)[..., self._places]
        named = dict(zip(fields, whole, strict=True))
        for name, total in _OPPOSITE:
            if name in named:
                all_of_it = named[total if total in named else "n"]
                named[name] = np.where(self._opposite, all_of_it - named[name], named[name])
        named = {name: self._added(values) for name, values in named.items()}
        if self.plan.roles.groups is not None:
            return moments_of_units(named)
        gains = self._gains(collected, where) if bets else None
        return moments_of_rows(
            {name: values[0] for name, values in named.items()}, self._cap, gains
        )

    def _gains(self, collected: Collected, where: dict[Any, int]) -> Floats:
        """Return the sums of bets by cell, shape (cells, directions, stakes)."""
        parts = [
            np.asarray(collected.sums.tables[where[(one.key, one.names, True)]])[1:].reshape(
                2 * len(STAKES), -1
            )
            for one in self._tables
        ]
        pieces = np.concatenate(parts, axis=-1).take(self._bet_places)
        return np.moveaxis(self._added(pieces), -1, 0)

    @cached_property
    def _bet_places(self) -> Ints:
        """Where the bets on the pieces are, shape (directions, stakes, pieces)."""
        direction, stake = np.mgrid[0:2, 0 : len(STAKES)][..., None]
        # A bet on more hits is one on fewer misses.
        row = (direction ^ self._opposite) * len(STAKES) + stake
        width = sum((1 + one.sided) * one.coarse.size for one in self._tables)
        return np.asarray(row * width + self._places)

    def _added(self, pieces: Floats) -> Floats:
        """Add the pieces of each cell."""
        return np.add.reduceat(pieces, self._ends[:-1], axis=-1)

    @cached_property
    def _cap(self) -> float:
        """The largest weight that a row can have, scaled like weights."""
        if self.plan.weight_cap is None:
            return 1.0
        return float(np.ldexp(self.plan.weight_cap, -self.plan.part.exponent))

    @cached_property
    def _starts(self) -> list[Ints]:
        """The first fine cell of each bin of each table."""
        return [
            np.searchsorted(coarse_index(one.fine, one.coarse), np.arange(one.coarse.size))
            for one in self._tables
        ]

    @cached_property
    def _offsets(self) -> dict[Wanted, int]:
        """Where each table begins if all bins of all sides are put side by side."""
        sizes = [(1 + one.sided) * one.coarse.size for one in self._tables]
        return dict(zip(self._tables, np.cumsum([0, *sizes]).tolist(), strict=False))

    @cached_property
    def _places(self) -> Ints:
        """Where the pieces of the first cell are, then of the second, and so on."""
        found = [
            self._offsets[piece.table] + piece.side * piece.table.coarse.size + k
            for several in self._pieces
            for piece in several
            for k in piece.bins
        ]
        return np.array(found, dtype=np.intp)

    @cached_property
    def _opposite(self) -> Bools:
        """Which of the pieces are of the opposite claim."""
        found = [
            piece.opposite for several in self._pieces for piece in several for _ in piece.bins
        ]
        return np.array(found)

    @cached_property
    def _ends(self) -> Ints:
        """Where the pieces of each cell begin, and the number of all pieces."""
        sizes = [sum(len(piece.bins) for piece in several) for several in self._pieces]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


#: The sums that are needed, without and with weights.
_UNWEIGHTED = ("n", "hit", "score", "square")
_WEIGHTED = ("n", "weight", "weight2", "hit", "score", "hit2", "score2", "square2")
#: The sums that differ for the opposite claim, and what they are subtracted from.
_OPPOSITE = (("hit", "weight"), ("score", "weight"), ("hit2", "weight2"), ("score2", "weight2"))


def _keys(plan: BinPlan, tables: dict[tuple[int, str], Wanted], event: str | None) -> list[int]:
    """Return the claims to watch."""
    known = {key for key, _ in tables}
    sided = {key for (key, _), one in tables.items() if one.sided}
    two = len(plan.classes) == 2
    # The confidence follows from all classes, or from either of two.
    if sided and (two or len(sided) == len(plan.classes)):
        known.add(CORRECT)
    if event is None:
        if two:
            first = position_of(plan.classes, plan.roles.pos_label)
            about = [key for key in (first, 1 - first) if key in known][:1]
            return [*about, *([CORRECT] if CORRECT in known else [])]
        return sorted(known)
    keys = collected_keys(plan.classes, event, plan.roles.pos_label)
    if not known.issuperset(keys):
        raise InputError(
            f"event is {event!r}, which the bins were not chosen for",
            f'choose them with make_bins(…, events=["{event}"])',
            argument="event",
        )
    return keys


def _claim(plan: BinPlan, key: int) -> str:
    if key == CORRECT:
        return CONFIDENCE
    return RISK if len(plan.classes) == 2 else f"{CLASS}{plan.classes[key]}"


def _claim_part(keys: list[int], key: int) -> float:
    """Return the part of a claim: the confidence is as important as all classes together."""
    about = sum(one != CORRECT for one in keys)
    if CORRECT not in keys:
        return 1 / about
    if key == CORRECT:
        return 0.5 if about else 1.0
    return 0.5 / about


def _pieces(
    plan: BinPlan, tables: dict[tuple[int, str], Wanted], key: int, name: str
) -> list[_Piece]:
    """Return where the rows of a claim along a variable are.

    The confidence is taken from the tables of classes by predicted side if there are any, because
    only they have bets then.
    """
    about = [one for (_, along), one in tables.items() if along == name and one.sided]
    if key == CORRECT and about:
        if len(plan.classes) > 2:
            return [_Piece(one, 1, range(one.coarse.size)) for one in about]
        bins = range(about[-1].coarse.size)
        return [_Piece(about[-1], 0, bins, opposite=True), _Piece(about[-1], 1, bins)]
    table = tables[key, name]
    bins = range(table.coarse.size)
    return [_Piece(table, side, bins) for side in range(1 + table.sided)]


def _texts(bins: Bins) -> list[tuple[str, str]]:
    """Return each bin as text, and with the name of the variable, in the words of an audit."""
    name = bins.name
    if not isinstance(bins, NumericBins):
        return [(text, f"{name}: {text}") for text in bins.labels()]
    edges = bins.edges
    shown = [number_text(edge) for edge in edges]
    told_apart = len(set(shown)) == len(set(edges))
    if bins.datetime or bins.duration or not told_apart:
        shown = edge_texts(edges, datetime=bins.datetime, duration=bins.duration, zone=bins.zone)
    last = len(edges) - 2
    texts = []
    for k in range(len(edges) - 1):
        low, high = shown[k], shown[k + 1]
        text = low if edges[k] == edges[k + 1] else f"{low} to {high}"
        if k == 0 < last:
            text = f"up to {high}"
        elif k == last > 0:
            text = f"from {low}" if bins.datetime else f"{low} and over"
        texts.append(text + zone_text(bins.zone))
    texts += ["missing"] * bins.missing
    return [(text, f"{name} {text}") for text in texts]
