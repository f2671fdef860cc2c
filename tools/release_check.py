"""Walk the checklist of a release, and say what is not right.

python tools/release_check.py [--quick] [--only STEP ...] [--extras NAME ...]

Every step prints one line, and the output of what fails. --quick leaves out the steps that take
more than a few minutes: all extras in environments of their own, and all tests. Nothing is
uploaded.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: The most that the core and its dependencies may take, in megabytes. 218 were measured; the rest
#: is for newer versions of numpy, scipy and scikit-learn.
CORE_LIMIT_MB = 230
#: The most that the wheel may take; 1.52 were measured, half of which are bundled data.
WHEEL_LIMIT_MB = 1.6

ROWS = "import varcal as vc; d = vc.datasets.load_income().part('test'); "
#: What must work with each extra alone.
SMOKE = {
    "": ROWS + "vc.audit(d.y, d.p, d.X, ladder='none').report('r.html')",
    "files": ROWS
    + "import pyarrow.parquet as pq; pq.write_table(d.to_frame('pyarrow'), 'd.parquet'); "
    "vc.audit('y', 'p', data='d.parquet', ladder='none')",
    "plot": ROWS + "import matplotlib; matplotlib.use('Agg'); vc.reliability(d.y, d.p).plot()",
    "duckdb": ROWS + "import duckdb; t = d.to_frame('pyarrow'); c = duckdb.connect(); "
    "vc.vece('y', 'p', 'age', data=c.sql('select * from t'))",
    "polars": ROWS + "vc.vece('y', 'p', 'age', data=d.to_frame('polars').lazy())",
    "spark": "import pyspark, varcal",
    "fast": ROWS + "import numba",
    "onnx": ROWS + "vc.calibrators.BetaCalibrator().fit(d.p, d.y).to_onnx().check()",
    "sql": ROWS + "import sqlglot; "
    "sql = vc.calibrators.BetaCalibrator().fit(d.p, d.y).to_sql('bigquery'); "
    "sqlglot.parse(sql.query, 'bigquery')",
    "all": "import varcal, pyarrow, matplotlib, duckdb, polars, pyspark, numba, "
    "onnx, onnxruntime, sqlglot",
    "docs": "import zensical, mkdocstrings, nbclient, latex2mathml",
}


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command and return what it printed; raise if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def python(*arguments: str | Path, **environment: str) -> str:
    """Run this Python with arguments."""
    return run(sys.executable, *arguments, **environment)


def version() -> str:
    """Check that all files name the same version, and return it."""
    found = re.search(r'__version__ = "(.+)"', (ROOT / "src/varcal/_version.py").read_text("utf-8"))
    assert found
    wanted = found[1]
    places = {
        "CITATION.cff": f"\nversion: {wanted}\n",
        "docs/project/citation.md": f"version = {{{wanted}}}",
        "CHANGELOG.md": f"# Changes\n\n## {wanted} ",
    }
    for name, text in places.items():
        if text not in (ROOT / name).read_text("utf-8"):
            raise RuntimeError(f"{name} does not name version {wanted}")
    return wanted


def clean() -> str:
    """Check that everything is committed."""
    changed = run("git", "status", "--porcelain")
    if changed:
        raise RuntimeError(f"not committed:\n{changed}")
    return run("git", "rev-parse", "--short", "HEAD").strip()


def style() -> str:
    """Lint, format and types of the sources."""
    python("-m", "ruff", "check", ".")
    python("-m", "ruff", "format", "--check", ".")
    python("-m", "mypy")
    return "ruff and mypy"


def typed() -> str:
    """Check a user's script under mypy --strict and pyright."""
    script = ROOT / "tests/cases/typed_script.py"
    with tempfile.TemporaryDirectory() as folder:
        # Away from pyproject.toml, as a user's script is.
        alone = Path(shutil.copy(script, folder))
        run(sys.executable, "-m", "mypy", "--strict", alone, cwd=alone.parent)
        run(
            sys.executable, "-m", "pyright", "--pythonpath", sys.executable, alone, cwd=alone.parent
        )
    return "mypy --strict and pyright"


def build(folder: Path) -> list[Path]:
    """Build wheel and sdist into a folder, with the date of the last commit."""
    date = run("git", "log", "-1", "--format=%ct").strip()
    python("-m", "hatchling", "build", "-d", folder, SOURCE_DATE_EPOCH=date)
    return sorted(folder.iterdir())


def reproducible() -> str:
    """Build twice, and compare the bytes."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        hashes = [
            {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in build(Path(one))}
            for one in (first, second)
        ]
    if hashes[0] != hashes[1]:
        raise RuntimeError(f"two builds differ: {hashes}")
    return ", ".join(f"{name} {digest[:12]}" for name, digest in hashes[0].items())


def metadata() -> str:
    """Check the metadata and how the README renders on a package index."""
    with tempfile.TemporaryDirectory() as folder:
        files = build(Path(folder))
        python("-m", "twine", "check", "--strict", *files)
        (wheel,) = (path for path in files if path.suffix == ".whl")
        size = wheel.stat().st_size / 1e6
    if size > WHEEL_LIMIT_MB:
        raise RuntimeError(f"the wheel takes {size:.1f} MB, the limit is {WHEEL_LIMIT_MB}")
    return f"README renders; wheel of {size:.1f} MB"


def installed(extra: str, folder: Path, wheel: Path) -> float:
    """Install the wheel with an extra into a new environment, try it, and return its size in MB."""
    venv.create(folder, with_pip=True)
    before = size_of(folder)
    name = f"varcal[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    run(folder / "bin/python", "-m", "pip", "install", "--quiet", name)
    size = size_of(folder) - before
    run(folder / "bin/python", "-c", SMOKE[extra], cwd=folder)
    return size


def size_of(folder: Path) -> float:
    """Return the megabytes of a folder, without compiled caches."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sum(path.stat().st_size for path in files if not path.is_symlink()) / 1e6


def core() -> str:
    """Install without extras into a clean environment, and try it."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as files:
        (wheel,) = (path for path in build(Path(files)) if path.suffix == ".whl")
        size = installed("", Path(folder), wheel)
        binary = Path(folder, "bin")
        shown = run(binary / "python", "-m", "varcal", "--version", cwd=Path(folder))
        if shown != run(binary / "varcal", "--version", cwd=Path(folder)):
            raise RuntimeError("python -m varcal and varcal differ")
        run(binary / "varcal", "demo", cwd=Path(folder))
    if size > CORE_LIMIT_MB:
        raise RuntimeError(f"the core takes {size:.0f} MB, the limit is {CORE_LIMIT_MB}")
    return f"{size:.0f} MB of {CORE_LIMIT_MB}; {shown.strip()}; demo runs"


def extras(names: Sequence[str] = tuple(SMOKE)[1:]) -> str:
    """Install each extra alone into a clean environment, and try it."""
    sizes, failed = {}, []
    with tempfile.TemporaryDirectory() as files:
        (wheel,) = (path for path in build(Path(files)) if path.suffix == ".whl")
        for extra in names:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    sizes[extra] = installed(extra, Path(folder), wheel)
                except RuntimeError as error:
                    failed.append(f"{extra}: {error}")
    shown = ", ".join(f"{extra} {size:.0f} MB" for extra, size in sizes.items())
    if failed:
        raise RuntimeError("\n".join([shown, *failed]))
    return shown


def docs() -> str:
    """Build the site, strictly."""
    python("tools/site/assemble.py")
    python("-m", "zensical", "build", "--strict", "-f", "build/mkdocs.yml")
    return "no broken link"


def tests() -> str:
    """Run all tests."""
    shown = python("-m", "pytest", "-q", "-n", "2", "--dist", "loadfile")
    return shown.strip().splitlines()[-1]


ORDER = (version, clean, style, typed, reproducible, metadata, core, docs, extras, tests)
STEPS: dict[str, Callable[[], str]] = {step.__name__: step for step in ORDER}
SLOW = ("extras", "tests")


def main() -> int:
    """Walk the steps, and return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out extras and tests")
    parser.add_argument("--only", nargs="+", choices=STEPS, metavar="STEP", help=", ".join(STEPS))
    parser.add_argument("--extras", nargs="+", choices=SMOKE, metavar="NAME", help="these alone")
    chosen = parser.parse_args()
    if chosen.extras:
        print(extras(chosen.extras))
        return 0
    failed = 0
    for name, step in STEPS.items():
        if name in chosen.only if chosen.only else not (chosen.quick and name in SLOW):
            try:
                print(f"ok      {name:13} {step()}", flush=True)
            except (RuntimeError, OSError) as error:
                failed += 1
                print(f"FAILED  {name:13} {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
