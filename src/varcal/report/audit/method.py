"""How the figures of a report were computed, and how to cite them, in words."""

from __future__ import annotations

from varcal._audit.audit_result import Audit
from varcal._audit.comparison import Comparison
from varcal._audit.verdicts import (
    BETTER,
    FIXED,
    MADE_WORSE,
    NO_EVIDENCE,
    TOO_FEW_ROWS,
    UNCHANGED,
    VARIES,
    VARIES_SLIGHTLY,
)
from varcal._text.numbers import count, level_text, percent, points
from varcal._version import __version__
from varcal.report.words import Wording

#: The level of a noise floor.
NOISE = "95%"
_GROUPED = "Rows belong to groups: intervals, bands and tests allow for dependence within them."
_BINNING = {
    "atoms": "one for each frequent value, the others with equal numbers of rows",
    "quantile": "with equal numbers of rows",
    "uniform": "of equal width",
}


def method(audit: Audit, words: Wording) -> tuple[str, ...]:
    """Say how the figures of an audit were computed."""
    level = level_text(audit.level)
    steps = [
        f"Gap: mean {words.score} − {words.hit}. Positive: {words.over}; negative: {words.under}.",
        _bins(audit.n_bins, audit.binning),
        "VECE: the mean of |gap| over the bins, weighted by their rows (Kelly and Smyth, 2023). "
        "It is never below the overall |gap|, whatever the variable.",
        "Beyond: the same after the overall gap is removed. The ranking and the verdicts use it.",
        f"Both are debiased (noise alone makes |gap| positive) and have {level} intervals.",
        "Test: a chi-square test over the bins combined with a score test for smooth trends; "
        f"p-values are adjusted for {count(len(audit), 'variable')} (Holm).",
        f"Verdicts: {VARIES} (adjusted p at most {1 - audit.level:.3g}, interval of beyond above "
        f"{points(audit.threshold)} points); {VARIES_SLIGHTLY} (adjusted p as small, but the "
        f"interval reaches lower); {NO_EVIDENCE} (which is not proof of calibration); "
        f"{TOO_FEW_ROWS} (only a gap above 10 points could have been found).",
        _curves(level, words),
    ]
    if audit.grouped:
        steps.append(_GROUPED)
    return tuple(steps)


def comparison_method(found: Comparison, words: Wording) -> tuple[str, ...]:
    """Say how the figures of a comparison were computed."""
    level = level_text(found.level)
    parts = "groups of rows" if found.grouped else "parts of the rows"
    steps = [
        f"Gap: mean {words.score} − {words.hit}. ECE and VECE: the mean of |gap| over bins of the "
        "score or of a variable, weighted by their rows (Kelly and Smyth, 2023); debiased, as "
        "noise alone makes |gap| positive.",
        _bins(found.n_bins, found.binning),
        f"Chance alone: the plain VECE of a perfect model is below this in {NOISE} of samples.",
        "Differences are paired: each set minus the first, on the same rows. Their "
        f"{level} intervals are from a jackknife over {parts} (ECE, VECE), DeLong's (AUC), or "
        "sandwich intervals of the differences by row (the others).",
        f"Verdicts: {FIXED} (the interval of the difference is on the better side of zero, and the "
        f"remaining error could be chance alone); {BETTER} (on the better side); {MADE_WORSE} "
        f"(on the worse side); {UNCHANGED} (no change could be shown, which is not proof of none).",
        f"Each verdict is at level {level} by itself: of many figures that do not change, about "
        f"{percent(1 - found.level)} get a verdict by chance.",
        _curves(level, words),
    ]
    if found.grouped:
        steps.append(_GROUPED)
    return tuple(steps)


def _bins(n_bins: int, binning: str) -> str:
    return (
        f"Bins: about {n_bins} per numeric variable ({_BINNING[binning]}) unless edges were "
        "given; one per level, with rare levels pooled; one for missing values."
    )


def _curves(level: str, words: Wording) -> str:
    return (
        f"Curves: local polynomials. Shaded around the {words.actual}: pointwise {level} band. "
        f"The strip below marks where the simultaneous {level} band of the whole curve excludes "
        "the prediction."
    )


def citation() -> tuple[str, ...]:
    """Say how to cite the method and the software."""
    return (
        "Kelly, M. and Smyth, P. (2023). Variable-Based Calibration for Machine Learning "
        "Classifiers. AAAI-23. https://arxiv.org/abs/2209.15154",
        f"varcal {__version__} (software). Variable-based calibration audits.",
    )
