"""Audits made by hand, so that every decision of a first screen can be asked for by itself."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np

import varcal as vc
from varcal._audit.audit_result import Audit
from varcal._audit.audit_row import AuditRow, ClaimFigures, ClaimSummary
from varcal._audit.places import Place
from varcal._audit.verdicts import FINDINGS, NO_EVIDENCE, OFF, SIZE_UNCLEAR, SMALL
from varcal._inference.measured import Measured

LIMIT = 0.02


@cache
def template() -> Audit:
    """Return a small real audit, whose curves, tables and diagrams are lent to others."""
    rng = np.random.default_rng(0)
    n = 600
    p = rng.uniform(0.1, 0.9, n)
    y = (rng.random(n) < p).astype(int)
    return vc.audit(y, p, {"v": rng.normal(size=n)}, repair=False)


def measured(value, low, high, p_value=None):
    """Return a size with its interval."""
    p = p_value if p_value is not None else (0.0001 if low > 0 else 0.5)
    return Measured(
        value=value,
        debiased=value,
        low=low,
        high=high,
        p_value=p,
        noise_floor=0.01,
        noise_high=0.02,
        **{
            name: 0.0
            for name in Measured.__dataclass_fields__
            if name
            not in ("value", "debiased", "low", "high", "p_value", "noise_floor", "noise_high")
        },
    )


def claim(name, predicted, observed, reach=0.007, ece=(0.001, 0.0, 0.005), label="yes"):
    """Return one claim over all rows; the interval of its gap is symmetric."""
    gap = predicted - observed
    score = template().first.score
    return ClaimSummary(
        claim=name,
        label="" if name == "confidence" else label,
        predicted=predicted,
        observed=observed,
        gap=gap,
        gap_low=gap - reach,
        gap_high=gap + reach,
        score=replace(score, ece=measured(*ece)),
    )


def place(variable, text, predicted, observed, reach=0.02, *, n=1000, name="risk", level=True):
    """Return a part of a variable."""
    return Place(
        variable=variable,
        claim=name,
        text=text,
        label=f"{variable}: {text}" if level else f"{variable} {text}",
        predicted=predicted,
        observed=observed,
        gap=predicted - observed,
        low=predicted - observed - reach,
        high=predicted - observed + reach,
        n=n,
        share=n / 12_000,
    )


def row(variable, value, low, high, *, name="risk", others=(), ranks=(1, 1), where=None):
    """Return the row of a variable; its verdict follows from the interval."""
    if low <= 0:
        verdict = NO_EVIDENCE
    else:
        verdict = OFF if low > LIMIT else SMALL if high <= LIMIT else SIZE_UNCLEAR
    found = where if where is not None else place(variable, "b", 0.3, 0.45, name=name)
    return AuditRow(
        variable=variable,
        kind="levels",
        verdict=verdict,
        claim=name,
        vece=measured(value, low, high),
        uneven=measured(value, low, high),
        low=low,
        high=high,
        p_holm=0.001 if low > 0 else 0.8,
        p_bh=0.001 if low > 0 else 0.8,
        rank_low=ranks[0],
        rank_high=ranks[1],
        direction="under",
        where="",
        worst="b",
        vce=0.15,
        n_bins=3,
        missing=0.0,
        others=tuple(
            ClaimFigures(other, measured(*figures), measured(*figures), figures[1], figures[2])
            for other, figures in others
        ),
        place=found if verdict in FINDINGS else None,
        weakest=place(variable, "c", 0.3, 0.31, 0.06, n=100, name=name),
    )


def audit(claims, rows, *, places=(), event="both", n_rows=12_281, limit=LIMIT, **more):
    """Return an audit; curves and tables are those of the template."""
    base = template()
    names = [one.variable for one in rows]
    return replace(
        base,
        event=event,
        claims={one.claim: one for one in claims},
        rows=tuple(rows),
        places=tuple(places),
        curves={name: replace(base.curves["v"], variable=name) for name in names},
        other_curves={name: replace(base.curves["v"], variable=name) for name in names}
        if len(claims) == 2
        else {},
        tables=dict.fromkeys(names, base.tables["v"]),
        n_rows=n_rows,
        limit=limit,
        **more,
    )


def repair(before, after, *, allowed=None, protected=(), helps=True):
    """Return what a repair would achieve."""

    def figures(one):
        return SimpleNamespace(
            after=one,
            log_loss=(0.503, 0.298) if helps else (0.503, 0.503),
            log_loss_change=(-0.205, -0.22, -0.19),
            accuracy=(0.788, 0.864),
            variables=tuple(row.variable for row in one.rows),
            helps=helps,
            worse=False,
        )

    return SimpleNamespace(
        n_rows=5000,
        n_learned=5000,
        before=before,
        full=figures(after),
        allowed=None if allowed is None else figures(allowed),
        protected=tuple(protected),
        sampled=False,
        helps=helps,
    )


def repaired(found, after, **options):
    """Return an audit with what a repair would achieve."""
    tried = repair(found, after, **options)
    return replace(found, try_repair=lambda: (tried, ""))


def mock() -> Audit:
    """Return the audit of a network after beta calibration, as in the worked-out page."""
    claims = [
        claim("risk", 0.240, 0.235, ece=(0.027, 0.018, 0.035)),
        claim("confidence", 0.780, 0.784, ece=(0.027, 0.020, 0.034)),
    ]
    confidence = ("confidence", (0.150, 0.140, 0.160))
    married = place("marital-status", "Married-civ-spouse", 0.275, 0.440, 0.022, n=5601)
    rows = [
        row("relationship", 0.156, 0.145, 0.167, others=[confidence], ranks=(1, 2)),
        row(
            "marital-status", 0.155, 0.144, 0.166, others=[confidence], ranks=(1, 2), where=married
        ),
        row("capital-loss", 0.021, 0.016, 0.028, others=[("confidence", (0.01, 0.005, 0.02))]),
        row("native-country", 0.005, 0.001, 0.011, others=[("confidence", (0.0, 0.0, 0.01))]),
        row("noise", 0.001, 0.0, 0.012, others=[("confidence", (0.0, 0.0, 0.01))]),
    ]
    places = [
        married,
        place("age", "36 to 60", 0.262, 0.355, 0.02, n=5706, level=False),
        place("marital-status", "Never-married", 0.202, 0.044, 0.011, n=4097),
    ]
    return audit(claims, rows, places=places)


def fine(n_rows=10_000, high=0.009) -> Audit:
    """Return the audit of a model without faults."""
    claims = [claim("risk", 0.033, 0.033, 0.003), claim("confidence", 0.97, 0.971, 0.003)]
    rows = [
        row("income", 0.003, 0.0, high, others=[("confidence", (0.001, 0.0, high / 2))]),
        row("balance", 0.002, 0.0, high / 2, others=[("confidence", (0.001, 0.0, high / 2))]),
    ]
    return audit(claims, rows, n_rows=n_rows)
