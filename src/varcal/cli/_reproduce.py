"""`varcal reproduce`: the paper's experiments, each published figure beside ours."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

NAMES = ("adult", "bank", "cardio", "cifar", "yelp", "theory", "census", "all")
DIFFERS = 1


@click.command()
@click.argument("name", type=click.Choice(NAMES), metavar="NAME")
@click.option(
    "--data",
    metavar="FOLDER",
    help="Folder with the authors' output files (adult_out.csv.gz, ...); downloaded and cached "
    "without it.",
)
@click.option(
    "-o",
    "--out",
    metavar="FOLDER",
    default="varcal-reproduce",
    show_default=True,
    help="Where tables (Markdown, CSV) and pictures (PNG) go, one folder an experiment.",
)
@click.option(
    "--protocol",
    type=click.Choice(["paper", "corrected", "both"]),
    default="both",
    show_default=True,
    help="What the authors ran, to the digit, or what holds up when it is evaluated rightly.",
)
@click.option(
    "--splits",
    type=click.IntRange(2, 10_000),
    default=50,
    show_default=True,
    help="Divisions into calibration and test rows under the corrected protocol.",
)
def reproduce(name: str, data: str | None, out: str, protocol: str, splits: int) -> None:
    """Run an experiment of the paper and lay each published figure beside ours.

    NAME is adult, bank, cardio, cifar, yelp, theory, census (Adult from the raw census data,
    model and all) or all (everything but census). The paper is Kelly and Smyth, Variable-Based
    Calibration for Machine Learning Classifiers, AAAI 2023.

    Exit code 1: a figure that should equal the published one does not.

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
    if protocol == "both":
        protocols: tuple[str, ...] = experiments.PROTOCOLS
    else:
        protocols = (protocol,)
    found = []
    for k, one in enumerate(names):
        with _bar(f"{one} ({k + 1} of {len(names)})") as tick:
            made = experiments.reproduce(
                one, data=data, protocols=protocols, n_splits=splits, tick=tick
            )
        made.write(home / one)
        print(made.text() + "\n")
        found.append(made)
    if len(found) > 1:
        experiments.write_index(found, home)
        for made in found:
            print(made.summary)
    failures = [f"{made.title}: {failure}" for made in found for failure in made.failures]
    for failure in failures:
        print(f"differs from the paper: {failure}", file=sys.stderr)
    took = time.monotonic() - started
    print(f"{experiments.verdict(found)} ({took:.0f} s) → {home}")
    if failures:
        raise click.exceptions.Exit(DIFFERS)


class _bar:
    """A status on stderr that counts steps, silent where nobody watches."""

    def __init__(self, what: str) -> None:
        self._what, self._steps, self._status = what, 0, None

    def __enter__(self) -> Callable[[], Any]:
        if sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415  rich loads when first needed

            self._status = Console(stderr=True).status(self._what)
            self._status.start()
        return self._tick

    def _tick(self) -> None:
        self._steps += 1
        if self._status is not None:
            self._status.update(f"{self._what}: step {self._steps}")

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
