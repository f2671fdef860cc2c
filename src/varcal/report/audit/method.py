"""How the figures of a report were made, and how to cite it, in words."""

from __future__ import annotations

from varcal._audit.audit_result import Audit
from varcal._audit.comparison import Comparison
from varcal._version import __version__
from varcal.report.words import Wording, percent, points

#: The level of a noise floor.
NOISE = "95%"
_BINNING = {
    "atoms": "frequent values alone, the rest of equal support",
    "quantile": "of equal support",
    "uniform": "of equal width",
}


def method(audit: Audit, words: Wording) -> tuple[str, ...]:
    """Say how the figures were made."""
    level = percent(audit.level).replace(".0%", "%")
    steps = [
        f"Gap: mean {words.score} − {words.hit}. Positive: {words.over}; negative: {words.under}.",
        f"Bins: about {audit.n_bins} a numeric variable ({_BINNING[audit.binning]}) unless edges "
        "were given; one a level, rare levels pooled; one for missing values.",
        "VECE: the mean of |gap| over the bins, weighted by their rows (Kelly and Smyth, 2023). "
        "It is never below the overall |gap|, whatever the variable.",
        "Beyond: the same after the overall gap is taken out. The ranking and the verdicts go by "
        "it.",
        f"Both are debiased (noise alone makes |gap| positive) and carry {level} intervals.",
        "Test: chi-square over the bins and a score test on smooth trends, combined; p-values are "
        f"adjusted for {len(audit)} variables (Holm).",
        f"Verdicts: varies (adjusted p at most {1 - audit.level:.3g}, interval of beyond above "
        f"{points(audit.threshold)} points); varies slightly (so is p, but the interval reaches "
        "lower); no evidence (which is not proof of calibration); too few rows (only a gap above "
        "10 points could have been found).",
        f"Curves: local polynomials. Shaded around the {words.actual}: pointwise {level} band. "
        f"The strip below marks where the simultaneous {level} band of the whole curve excludes "
        "the prediction.",
    ]
    if audit.grouped:
        steps.append("Rows belong to groups: intervals, bands and tests allow for dependence.")
    return tuple(steps)


def comparison_method(found: Comparison, words: Wording) -> tuple[str, ...]:
    """Say how the figures of a comparison were made."""
    level = percent(found.level).replace(".0%", "%")
    parts = "groups of rows" if found.grouped else "parts of the rows"
    steps = [
        f"Gap: mean {words.score} − {words.hit}. ECE and VECE: the mean of |gap| over bins of the "
        "score or of a variable, weighted by their rows (Kelly and Smyth, 2023); debiased, as "
        "noise alone makes |gap| positive.",
        f"Bins: about {found.n_bins} a numeric variable ({_BINNING[found.binning]}) unless edges "
        "were given; one a level, rare levels pooled; one for missing values.",
        f"Chance alone: what a perfect model's plain VECE stays below in {NOISE} of samples.",
        "Differences are paired: both sets on the same rows, less the first. Their "
        f"{level} intervals: a jackknife over {parts} (ECE, VECE), DeLong's (AUC), the sandwich "
        "interval of the rows' differences (the others).",
        "Verdicts: fixed (the interval of the difference is on the better side of zero, and the "
        "error left over cannot be told from chance); better (on the better side); made worse "
        "(on the worse side); unchanged (no change could be shown, which is not proof of none).",
        f"Each verdict stands at {level} by itself: of many figures that do not change, about "
        f"{percent(1 - found.level)} get a verdict by chance.",
        f"Curves: local polynomials. Shaded around the {words.actual}: pointwise {level} band. "
        f"The strip below marks where the simultaneous {level} band of the whole curve excludes "
        "the prediction.",
    ]
    if found.grouped:
        steps.append("Rows belong to groups: intervals, bands and tests allow for dependence.")
    return tuple(steps)


def citation() -> tuple[str, ...]:
    """Say how to cite the method and the software."""
    return (
        "Kelly, M. and Smyth, P. (2023). Variable-Based Calibration for Machine Learning "
        "Classifiers. AAAI-23. https://arxiv.org/abs/2209.15154",
        f"varcal {__version__} (software). Variable-based calibration audits.",
    )
