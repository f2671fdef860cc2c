"""The paper's figures, drawn in its own style."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import varcal as vc
from reproduction.corrected_protocol import CorrectedRun
from reproduction.loess import loess_line
from reproduction.paper_protocol import PaperRun
from reproduction.published import AUGMENTED, PUBLISHED, TREE
from reproduction.theorems import THEOREMS, TheoryRun

ACTUAL, PREDICTED = "#0072B2", "#D55E00"
DENSITY, FAINT, INK = "#C3C9D1", "#6B7280", "#1B1F24"


POINTS = 200


def _panels(many: int, *, height: float, share: bool = True) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(3.4 * many, height), layout="constrained")
    axes = figure.subplots(1, many, sharex=share, sharey=share, squeeze=False)[0]
    for ax in axes:
        _plain_axes(ax)
    return figure, list(axes)


def _plain_axes(ax: Axes) -> None:
    """Keep two spines, and make the ticks faint."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(labelsize=9, color=FAINT, labelcolor=INK)


def variable_panels(run: PaperRun, methods: tuple[str, ...]) -> Figure:
    """Draw actual and predicted error along the variable, one panel per method."""
    study = run.study
    figure, axes = _panels(len(methods), height=3.2)
    for ax, method in zip(axes, methods, strict=True):
        _error_lines(ax, run, method)
        vece = run.figures[method, "VECE", study.variable].value
        ax.set_title(f"{method}\nVECE {vece:.2f}%", fontsize=10, color=INK, loc="left")
        ax.set_xlabel(study.axis, fontsize=10, color=INK)
    axes[0].set_ylabel("Error", fontsize=10, color=INK)
    axes[0].set_ylim(bottom=0)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=9,
    )
    return figure


def _error_lines(ax: Axes, run: PaperRun, method: str) -> None:
    study = run.study
    x = run.test.variables[study.variable]
    low, high = np.quantile(x, [study.trim, 1 - study.trim])
    at = np.linspace(low, high, POINTS)
    predicted = 1 - run.probabilities[method].max(axis=1)
    for y, name, colour, style in (
        (run.wrong.astype(float), "actual error", ACTUAL, "-"),
        (predicted, "predicted error", PREDICTED, "--"),
    ):
        line = loess_line(x, y, at, span=study.span)
        ax.fill_between(at, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(at, line.fit, color=colour, linestyle=style, linewidth=1.8, label=name)
    ax.set_xlim(at[0], at[-1])
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def reliability_panels(run: PaperRun, methods: tuple[str, ...]) -> Figure:
    """Draw accuracy against confidence in fixed-width bins on (0.5, 1], one panel per method."""
    figure, axes = _panels(len(methods), height=3.9)
    for ax, method in zip(axes, methods, strict=True):
        score = run.probabilities[method].max(axis=1)
        ece = run.figures[method, "ECE", ""].value
        _bars(ax, score, ~run.wrong, np.linspace(0.5, 1.0, 11))
        ax.set_title(f"{method}\nECE {ece:.2f}%", fontsize=10, color=INK, loc="left")
        unseen = int((score <= 0.5).sum())
        rest = f"\n{unseen} rows at or below 50% not shown" if unseen else ""
        ax.set_xlabel(f"Confidence{rest}", fontsize=10, color=INK)
    axes[0].set_ylabel("Accuracy", fontsize=10, color=INK)
    return figure


def _bars(ax: Axes, score: np.ndarray, hit: np.ndarray, edges: np.ndarray) -> None:
    """Draw the accuracy of each bin and the diagonal; bins with few rows are fainter."""
    place = np.clip(np.searchsorted(edges, score) - 1, -1, len(edges) - 2)
    inside = place >= 0
    n = np.bincount(place[inside], minlength=len(edges) - 1)
    rate = np.bincount(place[inside], hit[inside], minlength=len(n)) / np.maximum(n, 1)
    for k in np.flatnonzero(n):
        strength = 0.25 + 0.75 * min(1.0, n[k] / (0.05 * len(score)))
        ax.bar(
            edges[k], rate[k], edges[k + 1] - edges[k], align="edge", color=ACTUAL,
            alpha=strength, edgecolor="white", linewidth=0.8,
        )  # fmt: skip
    low = float(edges[0])
    ax.plot([low, 1], [low, 1], color=INK, linestyle="--", linewidth=1.2)
    ax.set_xlim(low, 1)
    ax.set_ylim(0, 1)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def first_figure(run: PaperRun) -> tuple[Figure, Figure]:
    """Draw Figures 1a and 1b: the positive rate by P(y = 1), and the error along age."""
    method = run.study.score_based
    a, (ax,) = _panels(1, height=3.6)
    _bars(ax, run.probabilities[method][:, 1], run.test.y == 1, np.linspace(0, 1, 11))
    ax.set_xlabel("Predicted probability of disease", fontsize=10, color=INK)
    ax.set_ylabel("Share with disease", fontsize=10, color=INK)
    ece = run.figures[method, "ECE", ""].value
    ax.set_title(f"After {method}: ECE {ece:.2f}%", fontsize=10, color=INK, loc="left")
    b, (ax,) = _panels(1, height=3.6)
    _error_lines(ax, run, method)
    ax.set_xlabel(run.study.axis, fontsize=10, color=INK)
    ax.set_ylabel("Error", fontsize=10, color=INK)
    vece = run.figures[method, "VECE", run.study.variable].value
    ax.set_title(f"After {method}: VECE {vece:.2f}%", fontsize=10, color=INK, loc="left")
    ax.legend(frameon=False, fontsize=9)
    return a, b


def split_dots(run: CorrectedRun) -> Figure:
    """Draw ECE and VECE of each method in every split, the noise, and the paper's values."""
    study = run.study
    figure, axes = _panels(2, height=0.55 * len(run.methods) + 1.6, share=False)
    figure.set_figwidth(9.0)
    rng = np.random.default_rng(0)
    for ax, measure, variable in zip(axes, ("ECE", "VECE"), ("", study.variable), strict=True):
        for place, method in enumerate(run.methods):
            target = (method, measure, variable)
            values = 100 * run.values[target]
            jitter = rng.uniform(-0.22, 0.22, len(values))
            ax.barh(
                place, 100 * run.first[target].noise_high, 0.7, color=DENSITY, zorder=1,
                label="possible by chance alone" if place == 0 else None,
            )  # fmt: skip
            ax.plot(
                values, place + jitter, ".", color=ACTUAL, alpha=0.45, markersize=4, zorder=2,
                label=f"{len(values)} splits" if place == 0 else None,
            )  # fmt: skip
            printed = PUBLISHED[study.name].get(target)
            if printed is not None and printed.printed and study.same_model:
                ax.plot(
                    [float(printed.printed)], [place], "D", color=PREDICTED, markersize=6,
                    markeredgecolor="white", zorder=3, label=_once(ax, "in the paper"),
                )  # fmt: skip
        ax.set_yticks(range(len(run.methods)), run.methods if ax is axes[0] else [])
        ax.set_ylim(len(run.methods) - 0.5, -0.5)
        ax.set_xlim(left=0)
        name = f"VECE along {study.axis.partition(' (')[0].lower()}" if variable else "ECE"
        ax.set_xlabel(f"{name} (%)", fontsize=10, color=INK)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return figure


def _once(ax: Axes, name: str) -> str | None:
    return None if name in ax.get_legend_handles_labels()[1] else name


def study_pictures(run: PaperRun) -> dict[str, Figure]:
    """Return the paper's figures of a study by file name."""
    study = run.study
    if study.name == "cardio":
        a, b = first_figure(run)
        return {"figure-1a": a, "figure-1b": b}
    pictures = {
        "variable-plots": variable_panels(run, study.shown),
        "reliability": reliability_panels(run, study.shown),
    }
    if AUGMENTED in study.methods:
        shown = (study.score_based, TREE, AUGMENTED)
        pictures["augmented-beta"] = variable_panels(run, shown)
    return pictures


def curve_panels(curves: Mapping[str, vc.results.Curve]) -> Figure:
    """Draw curves along the same variable side by side, on the same scale."""
    figure, axes = _panels(len(curves), height=3.6, share=False)
    for ax, (name, curve) in zip(axes, curves.items(), strict=True):
        curve.plot(ax)
        ax.set_title(f"{name}\n{ax.get_title(loc='left')}", fontsize=9, color=INK, loc="left")
    if next(iter(curves.values())).kind != "levels":
        low, high = zip(*(ax.get_ylim() for ax in axes), strict=True)
        for ax in axes:
            ax.set_ylim(min(low), max(high))
    return figure


def corrected_pictures(run: CorrectedRun) -> dict[str, Any]:
    """Return the figures of the corrected protocol by file name."""
    study = run.study
    x = {study.axis: run.test.variables[study.variable]}
    curves = {
        method: vc.curve(run.test.y, run.probabilities[method], x, classes=range(study.classes))
        for method in study.shown
    }
    return {"splits": split_dots(run), "corrected-variable-plots": curve_panels(curves)}


def theory_picture(run: TheoryRun) -> Figure:
    """Draw ECE and VECE against α, with formulas as lines and simulations as marks."""
    figure = Figure(figsize=(10.2, 3.7), layout="constrained")
    shown = (2, 10)
    for ax, (theorem, title) in zip(figure.subplots(1, 3), THEOREMS.items(), strict=True):
        _plain_axes(ax)
        for k, style in zip(shown, ("-", "--"), strict=True):
            cases = [one for one in run.cases if (one.theorem, one.classes) == (theorem, k)]
            alphas = [case.alpha for case in cases]
            for name, colour, mark in (("ECE", PREDICTED, "o"), ("VECE", ACTUAL, "s")):
                field = name.lower()
                ax.plot(
                    alphas, [getattr(case, f"{field}_formula") for case in cases],
                    color=colour, linestyle=style, linewidth=1.4, label=f"{name}, K = {k}",
                )  # fmt: skip
                ax.plot(
                    alphas, [getattr(case, field) for case in cases], mark, color=colour,
                    markersize=4 if name == "ECE" else 7,
                    fillstyle="full" if name == "ECE" else "none",
                )  # fmt: skip
        ax.set_title(title.replace(": ", ":\n"), fontsize=10, color=INK, loc="left")
        ax.set_xlabel("α", fontsize=10, color=INK)
        ax.set_ylim(bottom=-0.01)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes = figure.axes
    axes[0].set_ylabel("Error (lines: formula, marks: simulated)", fontsize=10, color=INK)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure
