"""`varcal demo`: a network passes ECE, an audit finds its errors, one line repairs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from varcal.cli import _options as options

if TYPE_CHECKING:
    from varcal._arrays import AnyArray, Floats
    from varcal.datasets import Dataset

#: People of the proof: a name, the variable, and which values of it are meant.
PEOPLE: tuple[tuple[str, str, Callable[[AnyArray], AnyArray]], ...] = (
    ("married", "marital-status", lambda status: status == "Married-civ-spouse"),
    ("never married", "marital-status", lambda status: status == "Never-married"),
    ("below 30", "age", lambda age: age < 30),
    ("40 to 60", "age", lambda age: (age >= 40) & (age <= 60)),
)
NEXT = """\
Next, with a file of your own predictions:
  varcal audit preds.csv --label y --prob p -o report.html
  varcal calibrate preds.csv --label y --prob p --variables a,b -o repair.json
  varcal apply repair.json new.csv -o repaired.csv
In Python: import varcal as vc, and the two lines above."""


@click.command(cls=options.EachOnce, short_help="Audit and repair a network on census data.")
@click.option(
    "-o",
    "--output",
    metavar="REPORT",
    default="varcal-demo.html",
    show_default=True,
    help="Write a report: .html, .md or .json.",
)
def demo(output: str) -> None:
    """Audit a network on bundled census data, repair it, and prove it on new rows.

    The network predicts whether a person earns more than 50,000 dollars. By its score it is
    calibrated to within a point; along age and marital status it is off by far more.

    \b
    Examples:
      varcal demo
      varcal demo -o report.html
    """
    from varcal._audit.audit import audit  # noqa: PLC0415  scipy loads when first needed
    from varcal._audit.compare import compare  # noqa: PLC0415
    from varcal._report.audit_text import audit_lines  # noqa: PLC0415
    from varcal._text import ABOVE  # noqa: PLC0415
    from varcal.calibrators import VariableCalibrator  # noqa: PLC0415
    from varcal.datasets import load_income  # noqa: PLC0415

    options.check_output(output, options.REPORTS)
    income = load_income()
    seen, new = income.part("audit"), income.part("test")
    print(
        "Who earns more than $50,000? A neural network learned it from the work records\n"
        "of 32,561 people and was calibrated by its score (beta calibration). Audited on\n"
        f"{len(seen):,} others, along all 14 columns of the census; it was given seven of them.\n\n"
        "  audit = vc.audit(y, p, X)\n"
    )
    found = audit(seen.y, seen.p, seen.X)
    print("\n".join(audit_lines(found)) + "\n")
    found.report(output)
    print(f"full report → {output}\n")
    print("One line learns a repair from the same rows:\n")
    print("  repair = vc.VariableCalibrator().fit(p, y, X)\n")
    repair = VariableCalibrator().fit(seen.p, seen.y, seen.X)
    repaired = repair.predict_proba(new.p, new.X)[:, 1]
    print(f"The proof: {len(new):,} people that nothing was learned from.\n")
    off = {row.variable: new[row.variable] for row in found.rows if row.verdict == ABOVE}
    print(f"{compare(new.y, {'before': new.p, 'repaired': repaired}, off)}\n")
    print(f"{people(new, repaired)}\n")
    print(NEXT)


def people(new: Dataset, repaired: Floats) -> str:
    """Return what happens to people of new rows, and what was and is said."""
    from varcal._text import percent, text_table  # noqa: PLC0415

    parts = {name: is_meant(new[variable]) for name, variable, is_meant in PEOPLE}
    columns = {"happens": new.y, "said": new.p, "says repaired": repaired}
    rates = {
        head: [percent(values[part].mean()) for part in parts.values()]
        for head, values in columns.items()
    }
    return text_table({"people": list(parts)} | rates)
