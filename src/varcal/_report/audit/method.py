"""How the figures of a report were computed, what its words mean, and how to cite them."""

from __future__ import annotations

from varcal._audit.audit_result import Audit
from varcal._audit.comparison import LEAST_CHANGE, Comparison
from varcal._audit.metric_text import UNITS
from varcal._audit.verdicts import (
    BETTER,
    FIXED,
    MADE_WORSE,
    NO_EVIDENCE,
    OFF,
    SIZE_UNCLEAR,
    SMALL,
    TOO_FEW_ROWS,
    UNCHANGED,
)
from varcal._text.gaps import CLASS, CONFIDENCE, RISK
from varcal._text.numbers import count, decimals, level_text, limit_text, percent, points
from varcal._text.sentences import Code, Named, Sentence, cut
from varcal._version import __version__

#: The level of a noise floor.
NOISE = "95%"
_GROUPED = "Rows belong to groups: intervals, bands and tests allow for dependence within them."
_BINNING = {
    "atoms": "one for each frequent value, the others with equal numbers of rows",
    "quantile": "with equal numbers of rows",
    "uniform": "of equal width",
}


def glossary(audit: Audit) -> tuple[tuple[str, Sentence], ...]:
    """Explain the words of the page."""
    words = [
        (
            "Points",
            Sentence.of(
                "Percentage points. Says 27.5%, happens 44.0%: off by 16.5 points. All errors are "
                "in points; rates and shares of rows have a % sign."
            ),
        )
    ]
    if RISK in audit.claims:
        label = audit.claims[RISK].label
        words.append(
            (
                "Risk",
                Sentence.of(
                    "The probability of the outcome",
                    *((" ", Named(cut(label))) if label else ()),
                    ". It is wrong if, of the rows that are given 30%, it does not happen in 30 of "
                    "100.",
                ),
            )
        )
    if any(claim.startswith(CLASS) for claim in audit.claims):
        words.append(
            (
                "Class",
                Sentence.of(
                    "The probability of one class. It is wrong if, of the rows that are given 30% "
                    "for the class, not 30 of 100 belong to it."
                ),
            )
        )
    if CONFIDENCE in audit.claims:
        words.append(
            (
                "Confidence",
                Sentence.of(
                    "How sure the model is of its own answer, the most probable class. It is wrong "
                    "if answers given with 80% are not right 80 times in 100."
                ),
            )
        )
    words += [
        (
            "ECE",
            Sentence.of(
                "Expected calibration error: how far off the model is on average when rows are "
                "grouped by its score. It does not see errors that cancel within a group."
            ),
        ),
        (
            "Uneven error",
            Sentence.of(
                "How far off the model is along a variable, on average over rows, once the average "
                "gap (of each predicted side) is taken off: what the average hides. In code ",
                Code("uneven"),
                "; with the gap left in it is VECE, the variable-based calibration error.",
            ),
        ),
        (
            "Surely, interval",
            Sentence.of(
                "“Surely” means that the whole interval lies on that side. "
                f"{level_text(audit.level)} of such intervals contain the truth; those of groups "
                "and variables do so for all of them at once."
            ),
        ),
        (
            "Repair",
            Sentence.of(
                "A second step that shifts the probabilities by what these rows teach about each "
                "variable. Its figures are those of rows that it was not fitted on."
            ),
        ),
    ]
    return tuple(words)


def method(audit: Audit) -> tuple[str, ...]:
    """Say how the figures of an audit were computed."""
    level, limit = level_text(audit.level), limit_text(audit.limit)
    many = count(len(audit.rows), "variable")
    several = len(audit.claims) > 1
    steps = [
        f"Verdicts: {OFF.capitalize()}: evidence, and the interval is above {limit} points. "
        f"{SIZE_UNCLEAR.capitalize()}: evidence, interval on both sides of {limit}. "
        f"{SMALL.capitalize()}: evidence, interval below {limit}. {NO_EVIDENCE.capitalize()}: "
        f"adjusted p above {1 - audit.level:.3g}, which is not proof of calibration. "
        f"{TOO_FEW_ROWS.capitalize()}: only an error above 10 points could have been found.",
        "Gap: what the model says minus what happens.",
        _bins(audit.n_bins, audit.binning),
        "VECE: the mean of |gap| over the bins, weighted by their rows (Kelly and Smyth, 2023). "
        "Uneven error: the same once the average gap of each predicted side is taken off. "
        "Both are debiased, as noise alone makes |gap| positive.",
        f"Test: one p-value per variable{' that holds for all claims' if several else ''}, "
        f"adjusted for {many} (Holm). Intervals of uneven error hold for {many} at once, those of "
        "groups for all places of all variables at once.",
        _curves(level),
    ]
    attempt = audit.repair
    if attempt is not None:
        steps.append(f"Repair: VariableCalibrator, cross-fitted on {count(attempt.n_rows, 'row')}.")
    if audit.grouped:
        steps.append(_GROUPED)
    return tuple(steps)


def comparison_method(found: Comparison) -> tuple[str, ...]:
    """Say how the figures of a comparison were computed."""
    level = level_text(found.level)
    steps = [
        "Gap: what the model says minus what happens. ECE and VECE: the mean of |gap| over bins of "
        "the score or of a variable, weighted by their rows (Kelly and Smyth, 2023); debiased, as "
        "noise alone makes |gap| positive.",
        _bins(found.n_bins, found.binning),
        f"Chance alone: the plain VECE of a perfect model is below this in {NOISE} of samples.",
        "Differences are paired: each set minus the first, on the same rows. Their "
        f"{level} intervals are from the changes of scores, in which outcomes cancel (VECE), from "
        "the intervals of both errors and their correlation (ECE), DeLong's (AUC), or "
        "sandwich intervals of the differences by row (the others).",
        f"Verdicts: {FIXED} (surely better, and the remaining error could be chance alone); "
        f"{BETTER} (surely better); {MADE_WORSE} (surely worse); {UNCHANGED} (no change that "
        "matters could be shown, which is not proof of none).",
        "Verdicts are adjusted for their number (Holm): the probability of any wrong verdict of a "
        f"change is at most {percent(1 - found.level)} for the whole table. They also need a size: "
        + ", ".join(f"{metric} {_least(metric)}" for metric in LEAST_CHANGE)
        + ".",
        _curves(level),
    ]
    if found.grouped:
        steps.append(_GROUPED)
    return tuple(steps)


def _least(metric: str) -> str:
    """Write the least size of a change of a metric that gets a verdict."""
    size = LEAST_CHANGE[metric]
    return f"{points(size)} points" if metric in UNITS else decimals(size, 4)


def _bins(n_bins: int, binning: str) -> str:
    return (
        f"Bins: about {n_bins} per numeric variable ({_BINNING[binning]}) unless edges were "
        "given; one per level, with rare levels pooled; one for missing values."
    )


def _curves(level: str) -> str:
    return (
        f"Curves: local polynomials with the simultaneous {level} band of the whole curve. The bar "
        "below marks where it excludes the prediction."
    )


def citation() -> tuple[str, ...]:
    """Say how to cite the method and the software."""
    return (
        "Kelly, M. and Smyth, P. (2023). Variable-Based Calibration for Machine Learning "
        "Classifiers. AAAI-23. https://arxiv.org/abs/2209.15154",
        f"varcal {__version__} (software). Variable-based calibration audits.",
    )
