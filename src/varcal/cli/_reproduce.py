"""`varcal reproduce`: run the paper's experiments and compare each published figure with ours."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from varcal._text.progress import steps
from varcal.cli import _options as options

NAMES = ("adult", "bank", "cardio", "cifar", "yelp", "theory", "census", "all")
DIFFERS = 1


@click.command(cls=options.EachOnce)
@click.argument("name", type=click.Choice(NAMES), metavar="NAME")
@click.option(
    "--data",
    metavar="FOLDER",
    help="Folder with the authors' output files (adult_out.csv.gz, ...); by default they are "
    "downloaded and cached. For census, the folder or archive with adult.data and adult.test; "
    "theory and yelp need none.",
)
@click.option(
    "-o",
    "--out",
    metavar="FOLDER",
    default="varcal-reproduce",
    show_default=True,
    help="Folder for tables (Markdown, CSV) and plots (PNG), with one subfolder per experiment. "
    "Files of an earlier run are replaced, your own never.",
)
@click.option(
    "--protocol",
    type=click.Choice(["paper", "corrected", "both"]),
    default="both",
    show_default=True,
    help="Exactly what the authors ran, or the same with a corrected evaluation.",
)
@click.option(
    "--splits",
    type=click.IntRange(2, 10_000),
    default=50,
    show_default=True,
    help="Number of random splits into calibration and test rows (corrected protocol).",
)
@click.pass_context
def reproduce(
    ctx: click.Context, name: str, data: str | None, out: str, protocol: str, splits: int
) -> None:
    """Run the experiments of the paper and check its figures.

    NAME is adult, bank, cardio, cifar, yelp, theory, census (Adult from the raw census data,
    including the model) or all (everything but census). The paper is Kelly and Smyth,
    Variable-Based Calibration for Machine Learning Classifiers, AAAI 2023.

    The exit code is 1 if a figure that should equal the published one does not.

    \b
    Examples:
      varcal reproduce adult --data paper-outputs
      varcal reproduce all --out tables
      varcal reproduce theory
    """
    from varcal import experiments  # noqa: PLC0415  scipy loads when first needed

    started = time.monotonic()
    home = Path(out)
    names = experiments.EXPERIMENTS if name == "all" else (name,)
    experiments.check_folder(home, experiments.INDEX_FILES if len(names) > 1 else ())
    for one in names:
        experiments.check_folder(home / one, experiments.RESULT_FILES)
    if protocol == "both":
        protocols: tuple[str, ...] = experiments.PROTOCOLS
    else:
        protocols = (protocol,)
    found = []
    for k, one in enumerate(names):
        with steps(f"{one} ({k + 1} of {len(names)})") as tick:
            made = experiments.reproduce(
                one, data=data, protocols=protocols, n_splits=splits, tick=tick
            )
        made.write(home / one)
        print(made.text() + "\n")
        found.append(made)
    if len(found) > 1:
        experiments.write_index(found, home)
        print("\n".join(made.summary for made in found))
    else:
        experiments.drop_index(home)
    failures = [f"{made.title}: {failure}" for made in found for failure in made.failures]
    for failure in failures:
        print(f"differs from the paper: {failure}", file=sys.stderr)
    took = time.monotonic() - started
    print(f"{experiments.verdict(found)} ({took:.0f} s) → {home}")
    ctx.exit(DIFFERS if failures else 0)
