"""Run the tests with the oldest or the newest dependencies, and pin those of the CI.

    python tools/versions.py test oldest -m "not slow"   tests in .venv-oldest
    python tools/versions.py test newest -m "not slow"   tests in .venv-newest
    python tools/versions.py bounds                      writes .ci/oldest.txt
    python tools/versions.py lock                        writes .ci/lock.txt, with hashes (needs uv)

The oldest versions are the lower bounds in pyproject.toml, exactly. What they need in turn is as
new as it can be. Options after the environment are passed to pytest. What builds the site is
not among them: it needs a later click than varcal, and its test is skipped without it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Extras of tools that users have already; `make test-integrations` installs their newest.
INTEGRATIONS = ("mlflow", "skore", "evaluate")
OLDEST, LOCK = ROOT / ".ci" / "oldest.txt", ROOT / ".ci" / "lock.txt"
BOUNDS_HEAD = """\
# The lowest versions that pyproject.toml allows, written by: python tools/versions.py bounds
"""
LOCK_HEAD = """\
# All dependencies with the hashes of their files, written by: python tools/versions.py lock
"""
#: What the oldest environment does without.
BUILDS_THE_SITE = "zensical"


def project() -> dict:
    """Return what pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def bounds() -> dict[str, str]:
    """Return the lower bound of every dependency, by its name."""
    told = project()["project"]
    given = [
        *told["dependencies"],
        *(
            one
            for name, extra in told["optional-dependencies"].items()
            if name not in INTEGRATIONS
            for one in extra
        ),
    ]
    found = (re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", one) for one in given)
    return {one[1]: one[2] for one in found if one is not None}


def requirements(which: str) -> list[str]:
    """Return what pip installs into an environment, besides the constraints.

    >>> requirements("newest")
    ['-e', '.[dev]']
    """
    if which == "newest":
        return ["-e", ".[dev]"]
    extras = project()["project"]["optional-dependencies"]
    tools = [one for extra in ("docs", "dev") for one in extras[extra]]
    left = ("varcal[", BUILDS_THE_SITE)
    return ["-e", ".[all]", *(one for one in tools if not one.startswith(left))]


def bounds_text() -> str:
    """Return the lower bounds as constraints for pip."""
    lines = [f"{name}=={version}" for name, version in sorted(bounds().items())]
    return BOUNDS_HEAD + "\n".join(lines) + "\n"


def write_lock() -> None:
    """Resolve all dependencies for every Python that is supported, with hashes."""
    builders = project()["build-system"]["requires"]
    with tempfile.TemporaryDirectory() as folder:
        more = Path(folder, "build.in")
        # What an editable install needs.
        more.write_text("\n".join([*builders, "editables"]) + "\n", encoding="utf-8")
        out = Path(folder, "lock.txt")
        command = [
            *("uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"),
            *("--python-version", "3.11", "--extra", "dev", "--no-header", "--no-annotate"),
            *("--no-emit-index-url", "--no-emit-find-links", "--upgrade"),
            *("--output-file", str(out), "pyproject.toml", str(more)),
        ]
        subprocess.run(command, cwd=ROOT, check=True)
        LOCK.write_text(LOCK_HEAD + out.read_text(encoding="utf-8"), encoding="utf-8")


def test(which: str, options: list[str]) -> int:
    """Install the dependencies into an environment of their own, and run the tests there."""
    home = ROOT / f".venv-{which}"
    python = str(home / "bin" / "python")
    if not home.is_dir():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    constraints = ["-c", str(OLDEST)] if which == "oldest" else []
    install = [python, "-m", "pip", "install", "--quiet", "--upgrade", *constraints]
    subprocess.run([*install, *requirements(which)], cwd=ROOT, check=True)
    print(f"{which} dependencies in {home.name}", flush=True)
    environment = os.environ | {"PIP_CONSTRAINT": ""}
    return subprocess.run([python, "-m", "pytest", *options], cwd=ROOT, env=environment).returncode


def main() -> int:
    """Run the command that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["test", "bounds", "lock"])
    parser.add_argument("which", nargs="?", choices=["oldest", "newest"], default="oldest")
    given, options = parser.parse_known_args()
    if given.what == "test":
        return test(given.which, options)
    if given.what == "bounds":
        OLDEST.write_text(bounds_text(), encoding="utf-8")
    else:
        write_lock()
    return 0


if __name__ == "__main__":
    sys.exit(main())
