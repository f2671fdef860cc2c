"""Findings: what an audit sees along each variable, for one claim or for several at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from varcal._arrays import Floats
from varcal._binning.bins import coarse_index
from varcal._evidence.evidence import Evidence
from varcal._evidence.plan import MOST_FINE_CLASSES
from varcal._evidence.profile import Profile
from varcal._evidence.sided import SidedProfile, correct_of
from varcal._inference._sides.sided_clusters import sided_cluster_law, sided_cluster_tests
from varcal._inference._sides.sided_law import sided_law
from varcal._inference._sides.sided_test import SidedSums, sided_test
from varcal._inference.gap_law import GapLaw
from varcal._inference.measured import (
    LawErrors,
    Measured,
    error_sums_of,
    gap_law,
    measure_all,
    with_p,
)
from varcal._inference.multiplicity import cauchy
from varcal._input.events import CORRECT
from varcal._input.variables import Kind
from varcal._measures.estimate import profile_test

#: The signs of the sides "predicted negative" and "predicted positive" in the claims of two
#: classes: the risk, and the confidence in the predicted class.
RISK_SIGNS, CONFIDENCE_SIGNS = (1.0, 1.0), (-1.0, 1.0)


@dataclass(frozen=True, eq=False)
class ClaimFinding:
    """One claim along one variable.

    Attributes
    ----------
    key : int
        The claim.
    profile : Profile
        Its tables.
    hidden : ndarray
        The gap of each bin without the average gap.
    vece, uneven : Measured
        Its errors, with the claim's own intervals and p-values.
    low, high : float
        Interval of `uneven` for all variables at once.
    """

    key: int
    profile: Profile
    hidden: Floats
    vece: Measured
    uneven: Measured
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Finding:
    """What was found along one variable, before it is ranked.

    Attributes
    ----------
    name, kind : str
        The variable.
    claims : tuple of ClaimFinding
        The claims, the one with the largest uneven error first.
    uneven : Measured
        The largest uneven error, with an interval and a p-value that are valid for all claims.
    low, high : float
        Its interval for all variables at once, before p-values are adjusted.
    """

    name: str
    kind: Kind
    claims: tuple[ClaimFinding, ...]
    uneven: Measured
    low: float
    high: float

    @property
    def main(self) -> ClaimFinding:
        """The claim with the largest uneven error."""
        return self.claims[0]

    @property
    def missing(self) -> float:
        """The share of rows whose value is missing."""
        found = self.main.profile
        return float(found.fine.share[-1]) if found.missing else 0.0


@dataclass
class Seen:
    """The tables of one variable, the law of each claim, and p-values: of all claims, of each."""

    profiles: dict[int, Profile]
    laws: list[GapLaw]
    p_values: list[float] = field(default_factory=list)


def look(
    evidence: Evidence,
    keys: Sequence[int],
    names: Sequence[str],
    *,
    sided: bool,
    level: float,
    n_variables: int,
    random_state: int,
) -> Iterator[Finding]:
    """Look along some variables.

    Parameters
    ----------
    evidence : Evidence
        Where tables come from.
    keys : sequence of int
        The claims.
    names : sequence of str
        The variables.
    sided : bool
        Whether the average gap is taken off for each predicted side, and several claims are
        judged by one hypothesis. Otherwise there is one claim and one overall gap.
    level : float
        Level of intervals.
    n_variables : int
        The number of variables for which intervals hold at once.
    random_state : int
        Seed of simulated null distributions.
    """
    see = see_sides if sided else see_claim
    seen = [see(evidence, keys, name, random_state) for name in names]
    laws = [law for one in seen for law in one.laws]
    tables = [one.profiles[key].coarse for one in seen for key in keys]
    vece = iter(measure_all(tables, level))
    sizes = LawErrors.of(laws)
    alpha, m = 1 - level, len(keys)
    # Only lower limits pay for the choice of the largest claim.
    low = iter(sizes.low(1 - alpha / m))
    low_all = iter(sizes.low(1 - alpha / (m * n_variables)))
    low_own = iter(sizes.low(1 - alpha / n_variables))
    high_own = iter(sizes.high(1 - alpha / n_variables))
    each = iter(sizes.measured(level))
    for one in seen:
        claims, lows, lows_all = [], [], []
        for key, law, p_value in zip(keys, one.laws, one.p_values[1:], strict=True):
            found = one.profiles[key]
            p_vece = profile_test(
                found,
                evidence.rows(key, found.name, found),
                grouped=evidence.grouped,
                random_state=random_state,
            )
            claims.append(
                ClaimFinding(
                    key=key,
                    profile=found,
                    hidden=law.gap,
                    vece=with_p(next(vece), p_vece, level),
                    uneven=with_p(next(each), p_value, level),
                    low=next(low_own),
                    high=next(high_own),
                )
            )
            lows.append(next(low))
            lows_all.append(next(low_all))
        claims.sort(key=lambda claim: (-claim.uneven.debiased, -claim.uneven.value))
        largest = claims[0].uneven
        together = Measured(
            value=largest.value,
            debiased=largest.debiased,
            low=min(max(lows), largest.debiased),
            high=max(claim.uneven.high for claim in claims),
            p_value=one.p_values[0],
            noise_floor=largest.noise_floor,
            noise_high=largest.noise_high,
        )
        yield Finding(
            name=claims[0].profile.name,
            kind=claims[0].profile.kind,
            claims=tuple(claims),
            uneven=with_p(together, one.p_values[0], level),
            low=min(max(lows_all), largest.debiased),
            high=max(claim.high for claim in claims),
        )


def see_claim(evidence: Evidence, keys: Sequence[int], name: str, random_state: int) -> Seen:
    """Return what is needed to judge one claim, with one overall gap."""
    (key,) = keys
    found = evidence.profile(key, name)
    p_value = profile_test(
        found,
        evidence.rows(key, name, found),
        grouped=evidence.grouped,
        uneven=True,
        random_state=random_state,
    )
    return Seen({key: found}, [gap_law(found.coarse, uneven=True)], [p_value, p_value])


def see_sides(evidence: Evidence, keys: Sequence[int], name: str, random_state: int) -> Seen:
    """Return what is needed to judge several claims, by predicted side."""
    about = [key for key in keys if key != CORRECT]
    sides = {key: evidence.sided(key, name) for key in about}
    profiles = {key: one.claim for key, one in sides.items()}
    if CORRECT in keys:
        few = len(about) <= MOST_FINE_CLASSES
        every = list(sides.values())
        profiles[CORRECT] = correct_of(every) if few else evidence.profile(CORRECT, name)
    if len(about) == 1 and CORRECT in keys:
        (one,) = sides.values()
        signs = np.array([CONFIDENCE_SIGNS if key == CORRECT else RISK_SIGNS for key in keys])
        tables = [one.others, one.own]
        p = _sided_p(evidence, tables, signs, one, random_state)
        return Seen(profiles, [_law(evidence, tables, sign) for sign in signs], p.tolist())
    p_values, laws = {}, []
    for key in keys:
        tables = (
            [sides[key].others, sides[key].own]
            if key in sides
            else [one.own for one in sides.values()]
        )
        signs = np.ones((1, len(tables)))
        p_values[key] = _sided_p(evidence, tables, signs, sides.get(key), random_state)[0]
        laws.append(_law(evidence, tables, signs[0]))
    together = cauchy([p_values[key] for key in about])
    if CORRECT in keys:  # as important as all classes together
        together = cauchy([p_values[CORRECT], together])
    return Seen(profiles, laws, [float(together), *(float(p_values[key]) for key in keys)])


def _law(evidence: Evidence, tables: Sequence[Profile], signs: Floats) -> GapLaw:
    coarse = [one.coarse for one in tables]
    if evidence.grouped:
        return sided_cluster_law(coarse, signs)
    return sided_law(error_sums_of(coarse), signs)


def _sided_p(
    evidence: Evidence,
    tables: Sequence[Profile],
    signs: Floats,
    found: SidedProfile | None,
    random_state: int,
) -> Floats:
    """Return the p-value of all claims together and of each; `found` has the rows, if any."""
    first = tables[0]
    placed = np.ones(first.fine.bins.size, dtype=bool)
    placed[-1] = not first.missing
    coarse, fine = [one.coarse for one in tables], [one.fine for one in tables]
    ordered = first.kind != "levels"
    if evidence.grouped:
        order = placed if ordered else None
        return np.array(sided_cluster_tests(coarse, fine, signs, order, seed=random_state))
    sums = SidedSums(
        error_sums_of(coarse),
        error_sums_of(fine) if ordered else None,
        signs,
        placed,
        coarse_index(first.fine.bins, first.coarse.bins),
    )
    rows = None if found is None else evidence.sided_rows(found)
    return sided_test(sums, rows, seed=random_state)
