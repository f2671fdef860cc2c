"""What is loaded when: heavy libraries only where their work is wanted."""

import json
import subprocess
import sys

import numpy as np

import varcal as vc
from cases.unmeasured import unmeasured

# Runs the program, then writes the names of all loaded modules to a file.
PROGRAM = """
import atexit, json, sys
names = sys.argv.pop(1)
atexit.register(lambda: json.dump(sorted(sys.modules), open(names, "w")))
from varcal.cli import main
main()
"""


def loaded(tmp_path, code, *arguments):
    """Return the modules that a new process has loaded at its end, and what it wrote."""
    names = tmp_path / "modules.json"
    done = subprocess.run(
        [sys.executable, "-c", code, str(names), *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        env=unmeasured(),
        check=True,
    )
    return set(json.loads(names.read_text())), done.stdout


def test_help_loads_neither_numpy_nor_anything_that_needs_it(tmp_path):
    for command in (["--help"], ["audit", "--help"], ["apply", "--help"]):
        modules, text = loaded(tmp_path, PROGRAM, *command)
        assert "Usage: varcal" in text
        heavy = {"numpy", "narwhals", "pyarrow", "pandas", "scipy", "sklearn", "rich"}
        assert not modules & heavy


def test_audit_loads_neither_scikit_learn_nor_pandas(tmp_path):
    sim = vc.datasets.make_gap(300)
    rows = np.column_stack([sim.y, sim.p, sim.v])
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="y,p,v", comments="")
    given = ["audit", "rows.csv", "--label", "y", "--prob", "p", "--ladder", "none"]
    modules, text = loaded(tmp_path, PROGRAM, *given)
    assert "300 rows, 1 variable in" in text
    heavy = {"sklearn", "pandas", "polars", "rich", "matplotlib", "scipy.stats", "scipy.optimize"}
    assert not modules & (heavy | {"pyarrow.dataset", "pyarrow.parquet", "varcal.calibrators"})
