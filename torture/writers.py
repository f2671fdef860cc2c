"""Everything that varcal writes: for each kind a function that writes a file, and one to compare.

A writer makes a file of version 0 or 1, which differ. What `content` gives for a complete file is
the same for each version, so that anything else is a file that is half written or mixed.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import feather, parquet

import varcal as vc

#: The time of a report.
_TIME = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?")


@dataclass(frozen=True)
class Writer:
    """A kind of file.

    Attributes
    ----------
    name : str
        The name of the file.
    write : callable
        Writes a version to a path.
    """

    name: str
    write: Callable[[Path, int], Any]

    def content(self, path: Path) -> object:
        """Return what a complete file holds, in a form that can be compared."""
        if self.name.endswith(".gz"):
            return gzip.decompress(path.read_bytes())
        if self.name.endswith(".parquet"):
            # One read of the file: by its path, PyArrow opens it twice.
            return str(parquet.read_table(BytesIO(path.read_bytes())).to_pydict())
        if self.name.endswith(".arrow"):
            return str(feather.read_table(BytesIO(path.read_bytes())).to_pydict())
        if self.name == "monitor.json":
            return vc.load(path).n_batches > 0
        return _TIME.sub(b"", path.read_bytes())


def writers(folder: Path) -> list[Writer]:
    """Return all writers; the folder is for what they read."""
    versions = [_made(k, folder) for k in range(2)]

    def saved(name: str, what: str) -> Writer:
        return Writer(name, lambda path, k: versions[k][what].save(path))

    def report(name: str) -> Writer:
        return Writer(name, lambda path, k: versions[k]["audit"].report(path))

    def applied(name: str) -> Writer:
        return Writer(
            name,
            lambda path, k: vc.apply(versions[k]["tree"], folder / "rows.csv", path, p="p"),
        )

    def exported(name: str, how: Callable[[Any], Any]) -> Writer:
        return Writer(name, lambda path, k: how(versions[k]["tree"]).save(path))

    return [
        saved("calibrator.json", "tree"),
        saved("grown.json", "grown"),
        saved("slices.json", "slices"),
        saved("audit.json", "audit"),
        saved("collected.json", "collected"),
        Writer("monitor.json", _watch(versions[0])),
        *map(report, ("report.html", "report.md", "figures.json")),
        *map(applied, ("out.csv", "out.csv.gz", "out.jsonl", "out.parquet", "out.arrow")),
        exported("export.py", lambda fitted: fitted.to_python()),
        exported("export.onnx", lambda fitted: fitted.to_onnx()),
        exported("export.sql", lambda fitted: fitted.to_sql("duckdb", table="rows", p=["p"])),
    ]


def _made(seed: int, folder: Path) -> dict[str, Any]:
    sim = vc.datasets.make_gap(400, random_state=seed)
    rows = {"y": sim.y, "p": sim.p, "age": sim.v}
    if seed == 0:
        lines = (f"{k},{p!r},{v!r}\n" for k, (p, v) in enumerate(zip(sim.p, sim.v, strict=True)))
        text = "id,p,age\n" + "".join(lines).replace("np.float64(", "").replace(")", "")
        (folder / "rows.csv").write_text(text, encoding="utf-8")
    bins = vc.make_bins("y", "p", data=rows, n_bins=5)
    kind = np.where(sim.v < np.median(sim.v), "a", "b")
    return {
        "rows": rows,
        "grown": vc.VariableCalibrator().fit(sim.p, sim.y, {"age": sim.v, "kind": kind}),
        "slices": vc.slices(sim.y, sim.p, {"age": sim.v, "kind": kind}, draws=19),
        "tree": vc.calibrators.TreeCalibrator().fit(sim.p, sim.y, {"age": sim.v}),
        "audit": vc.audit(sim.y, sim.p, {"age": sim.v}, ladder="none"),
        "collected": vc.collect(rows, bins),
    }


def _watch(version: dict[str, Any]) -> Callable[[Path, int], None]:
    rows = version["rows"]
    bins = vc.make_bins("y", "p", data=rows, monitor=0.1)
    batch = vc.collect(rows, bins)

    def write(path: Path, k: int) -> None:
        from varcal._monitor.monitor_file import monitor_in_turn  # noqa: PLC0415

        if not path.exists():
            monitor = vc.Monitor(bins)
            monitor.update(batch, id=0)
            monitor.save(path)
            return
        with monitor_in_turn(path) as monitor:
            monitor.update(batch, id=monitor.n_batches)

    return write
