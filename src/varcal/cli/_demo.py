"""`varcal demo`: audit the bundled model and show its worst variable bin by bin."""

from __future__ import annotations

import click

from varcal.cli import _options as options
from varcal.cli._audit import REPORTS


@click.command()
@click.option(
    "-o",
    "--output",
    metavar="REPORT",
    default="varcal-demo.html",
    show_default=True,
    help="Write a report: .html, .md or .json.",
)
def demo(output: str) -> None:
    """Audit a model of bundled census data and write a report.

    A neural network predicts whether a person earns more than 50,000 dollars. Its confidence
    is too high everywhere, but much more so for some people than for others.

    \b
    Examples:
      varcal demo
      varcal demo -o report.html
    """
    from varcal._audit.audit import audit  # noqa: PLC0415  scipy loads when first needed
    from varcal._measures.bin_table import bin_table  # noqa: PLC0415
    from varcal._text.tables import text_table  # noqa: PLC0415
    from varcal.cli._audit_text import audit_lines  # noqa: PLC0415
    from varcal.datasets import load_adult  # noqa: PLC0415

    options.check_output(output, REPORTS)
    adult = load_adult()
    found = audit(adult.y, adult.p, adult.X)
    print(f"{adult.description}\n")
    print("\n".join(audit_lines(found)))
    worst = found.rows[0].variable
    bins = bin_table(adult.y, adult.p, {worst: adult[worst]}, binning="atoms").columns
    print(f"\n{worst}, bin by bin (gap: confidence − accuracy)\n")
    shown = {
        worst: bins["bin"],
        "rows": bins["n"],
        **{name: [f"{one:.1%}" for one in bins[name]] for name in ("confidence", "accuracy")},
        "gap": [f"{one:+.1%}" for one in bins["gap"]],
    }
    print(text_table(shown) + "\n")
    found.report(output)
    print(f"full report → {output}")
