"""Write docs/licences.md: every package that varcal and its extras install, with its licence.

    python tools/licences.py

The names come from the metadata of what is installed, so all extras must be (`make licences`).
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
HEAD = """\
# Licences

varcal is under the BSD 3-clause licence. The package contains no code of other projects;
[datasets](datasets.md) have their sources, and the documentation contains iframe-worker (MIT). An
installation adds these packages, all under licences that are permissive, or weak copyleft by file
(MPL 2.0), and allow commercial use (from their metadata, by `make licences`):

| package | licence | needed by |
| --- | --- | --- |
"""
FOOT = """

## Next

[Security](../SECURITY.md)
"""
#: Licences as people write them, by their names in the SPDX list.
_SPDX = {
    r"apache.*(2|licen)|^apache": "Apache-2.0",
    r"mozilla|mpl": "MPL-2.0",
    r"bsd.*3|3-clause|new bsd|modified bsd": "BSD-3-Clause",
    r"bsd.*2|2-clause|simplified bsd": "BSD-2-Clause",
    r"^bsd": "BSD-3-Clause",
    r"^mit\b|mit licen|expat": "MIT",
    r"python software|psf": "PSF-2.0",
    r"isc": "ISC",
    r"mit-cmu|hpnd": "MIT-CMU",
}


def normal(name: str) -> str:
    """Return a name in the form that package indexes use."""
    return re.sub(r"[-_.]+", "-", name).lower()


#: What users do not install, and the tools of others that they have already.
NOT_OURS = ("all", "dev", "docs", "mlflow", "skore", "evaluate")


def extras() -> dict[str, list[str]]:
    """Return the requirements of the core and of each extra that users need."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = told["optional-dependencies"]
    return {"core": told["dependencies"]} | {
        name: given for name, given in optional.items() if name not in NOT_OURS
    }


def needed() -> dict[str, list[str]]:
    """Return every package that is installed for users, with the extras that need it."""
    found: dict[str, list[str]] = {}
    for extra, given in extras().items():
        todo = [Requirement(one) for one in given if not one.startswith("varcal")]
        seen: set[tuple[str, frozenset[str]]] = set()
        while todo:
            one = todo.pop()
            name, asked = normal(one.name), frozenset(one.extras)
            if (name, asked) in seen:
                continue
            seen.add((name, asked))
            try:
                inner = metadata.requires(one.name) or []
            except metadata.PackageNotFoundError:
                continue  # for another system or another Python
            users = found.setdefault(name, [])
            users += [extra] if extra not in users else []
            for text in inner:
                child = Requirement(text)
                marks = [{"extra": each} for each in asked] or [{"extra": ""}]
                if child.marker is None or any(child.marker.evaluate(each) for each in marks):
                    todo.append(child)
    return dict(sorted(found.items()))


def licence(name: str) -> str:
    """Return the licence of an installed package, by its SPDX name where it has one."""
    told = metadata.metadata(name)
    if told.get("License-Expression"):
        return str(told["License-Expression"])
    classifiers = told.get_all("Classifier") or []
    given = [one.split(" :: ")[-1] for one in classifiers if one.startswith("License ::")]
    texts = [one for one in given if one != "OSI Approved"] or [told.get("License") or ""]
    names = [_spdx(text.strip().splitlines()[0] if text.strip() else "") for text in texts]
    return " OR ".join(dict.fromkeys(names))


def _spdx(text: str) -> str:
    for pattern, name in _SPDX.items():
        if re.search(pattern, text, re.IGNORECASE):
            return name
    return text or "not stated"


def page() -> str:
    """Return the page."""
    lines = [f"| {name} | {licence(name)} | {', '.join(by)} |" for name, by in needed().items()]
    return HEAD + "\n".join(lines) + FOOT


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
