"""Assemble the sources of the site: the pages of docs, the API, and texts that stand elsewhere.

python tools/site/assemble.py [folder]
"""

from __future__ import annotations

import ast
import base64
import json
import posixpath
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "varcal"
DOCS = ROOT / "docs"
SETTINGS = Path(__file__).with_name("site.toml")

#: Texts that stand elsewhere in the project, and their pages on the site.
TEXTS = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
    "SECURITY.md": "project/security.md",
    "src/varcal/_inference/README.md": "inside/inference.md",
    "src/varcal/_search/README.md": "inside/slices.md",
    "src/varcal/calibrators/README.md": "inside/calibrators.md",
    "src/varcal/calibrators/variable/README.md": "inside/variable-calibrator.md",
    "src/varcal/_report/README.md": "inside/report.md",
}
#: The pages of the API, and the packages that define the names on each.
API = {
    "Metrics and estimates": ("_measures", "_inference"),
    "Audits and comparisons": ("_audit",),
    "Slices and surfaces": ("_search",),
    "Calibrators": ("calibrators",),
    "Monitors": ("_monitor",),
    "Files and large data": ("_sums", "_input", "_files"),
}
#: Public modules, which have a page each.
MODULES = ("datasets", "results", "exceptions", "testing")
#: What to read before a page of the API, by its title.
BEFORE = {
    "Metrics and estimates": "[Metrics](../metrics.md) and [uncertainty](../inference.md)",
    "Audits and comparisons": "[Audit a model](../guides/audit.md)",
    "Slices and surfaces": "[Slices](../slices.md) and [surfaces](../surface.md)",
    "Calibrators": "[Calibrators](../calibrators.md)",
    "Monitors": "[Watch a model in production](../monitor.md)",
    "Files and large data": "[From laptop to cluster](../scale.md)",
    "varcal.datasets": "[Data sets and simulators](../datasets.md)",
}

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^ *(```|~~~)")
_MATH = re.compile(r"^```math\n(.*?)^```\n", re.M | re.S)
_ITEM = re.compile(r"^(?:[-*] |\d+\. |\|)")


def main(folder: Path) -> None:
    """Write the sources and the configuration of the site into a folder."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages)
    for path in pages.rglob("*.md"):
        name = path.relative_to(pages).as_posix()
        path.write_text(as_page(path.read_text("utf-8"), f"docs/{name}", name), "utf-8")
    for path in pages.rglob("*.ipynb"):
        _write(path.with_suffix(".md"), notebook_page(path))
    for source, name in TEXTS.items():
        _write(pages / name, as_page((ROOT / source).read_text("utf-8"), source, name))
    for name, (_, text) in api_pages().items():
        _write(pages / name, text)
    _write(pages / "api" / "index.md", api_index())
    # JSON is YAML.
    _write(folder / "mkdocs.yml", json.dumps(configuration(), indent=1))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def configuration() -> dict[str, Any]:
    """Return the settings of the site, with the complete navigation."""
    config = settings()
    config["nav"] = navigation(config["nav"])
    config |= {"docs_dir": "pages", "site_dir": "site"}
    (found,) = (one["mkdocstrings"] for one in config["plugins"] if "mkdocstrings" in one)
    python = found["handlers"]["python"]
    python["paths"] = [str(ROOT / path) for path in python["paths"]]
    options = python["options"]
    options["extensions"] = [str(ROOT / path) for path in options["extensions"]]
    return config


def settings() -> dict[str, Any]:
    """Return the settings of the site as they stand in site.toml."""
    return tomllib.loads(SETTINGS.read_text("utf-8"))


def navigation(nav: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the navigation with the API, and with the pages that site.toml does not name.

    The latter come last among those that explain a part of the library.
    """
    named = set(paths_of(nav))
    rest = [path for path in _pages() if path not in named]
    api = [{title: path} for path, (title, _) in api_pages().items()]
    complete = []
    for section in nav:
        ((title, entries),) = section.items()
        if title == "API":
            entries = ["api/index.md", *api]
        elif title == "Library":
            entries = [*entries, *rest]
        complete.append({title: entries})
    return complete


def _pages() -> list[str]:
    found = [*DOCS.rglob("*.md"), *(path.with_suffix(".md") for path in DOCS.rglob("*.ipynb"))]
    return sorted(path.relative_to(DOCS).as_posix() for path in found)


def notebook_page(path: Path) -> str:
    """Return a notebook as a page, and write its pictures beside it."""
    parts = []
    for k, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        for j, result in enumerate(cell["outputs"]):
            if "text" in result:
                parts.append(f"```\n{''.join(result['text']).rstrip()}\n```")
            elif "image/png" in result.get("data", ()):
                picture = path.with_name(f"{path.stem}-{k}-{j}.png")
                picture.write_bytes(base64.b64decode(result["data"]["image/png"]))
                parts.append(f"![What the code above draws]({picture.name})")
    title, *rest = parts
    note = f"This page shows [a notebook]({path.name}) with its results."
    return "\n\n".join([title, note, *rest]) + "\n"


def paths_of(nav: object) -> Iterator[str]:
    """Yield the paths of the pages in a navigation.

    >>> list(paths_of([{"Start": ["index.md", {"Five minutes": "start.md"}]}]))
    ['index.md', 'start.md']
    """
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from paths_of(part)


def as_page(text: str, source: str, name: str) -> str:
    """Rewrite a text of the project as a page of the site.

    Links lead to pages of the site, formulas become MathML, and lists and tables that follow a
    paragraph get the blank line that Python-Markdown wants.
    """
    text = _MATH.sub(lambda found: _mathml(found[1]), text)
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            line = re.sub(r"^```python \w+$", "```python", line)
        elif not fenced:
            previous = lines[-1] if lines else ""
            if _ITEM.match(line) and previous.strip() and not re.match(r" |[-*|]|\d+\. ", previous):
                lines.append("")
            line = _LINK.sub(lambda found: _relinked(found, source, name), line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _mathml(latex: str) -> str:
    from latex2mathml.converter import convert  # noqa: PLC0415

    formula = convert(" ".join(latex.split()), display="block")
    return f'<div class="formula" tabindex="0">{formula}</div>\n'


def _relinked(found: re.Match[str], source: str, name: str) -> str:
    label, (target, _, anchor) = found[1], found[2].partition("#")
    if not target or ":" in target:
        return found[0]
    place = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if place in TEXTS:
        place = TEXTS[place]
    elif place.startswith("docs/"):
        place = re.sub(r"\.ipynb$", ".md", place.removeprefix("docs/"))
    else:
        return f"{label} (`{place}`)"
    link = posixpath.relpath(place, posixpath.dirname(name) or ".")
    return f"[{label}]({link}{'#' + anchor if anchor else ''})"


def public_names() -> dict[str, str]:
    """Return every public name of varcal and the module that defines it, without importing it."""
    names: dict[str, str] = _assigned(SRC / "__init__.py", "_HOME")
    return names


def module_names(module: str) -> list[str]:
    """Return the public names of a module."""
    folder = SRC / module / "__init__.py"
    return _assigned(folder if folder.exists() else SRC / f"{module}.py", "__all__")


def _assigned(path: Path, name: str) -> Any:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    raise LookupError(f"{path} does not assign {name}")


def api_pages() -> dict[str, tuple[str, str]]:
    """Return title and text of every page of the API, by its path.

    A package that `API` does not name has a page of its own, so that no public name is missing.
    """
    names = public_names()
    titles = dict(API)
    known = {package for packages in API.values() for package in packages}
    for package in dict.fromkeys(module.partition(".")[0] for module in names.values()):
        if package not in known:
            titles[package.strip("_").capitalize()] = (package,)
    pages = {}
    for title, packages in titles.items():
        found = [name for name, module in names.items() if module.partition(".")[0] in packages]
        if "calibrators" in packages:
            every = _assigned(SRC / "calibrators" / "__init__.py", "_HOME")
            found += [f"calibrators.{name}" for name in every if name not in names]
        pages[_api_path(title)] = (title, _api_text(title, [f"varcal.{name}" for name in found]))
    for module in MODULES:
        title = f"varcal.{module}"
        text = _api_text(title, [f"{title}.{name}" for name in module_names(module)])
        pages[_api_path(module)] = (title, text)
    return pages


def _api_path(title: str) -> str:
    return f"api/{title.lower().replace(' ', '-')}.md"


def _api_text(title: str, names: list[str]) -> str:
    before = f"With examples and pictures: {BEFORE[title]}.\n\n" if title in BEFORE else ""
    return f"# {title}\n\n{before}" + "\n\n".join(f"::: {name}" for name in names) + "\n"


def api_index() -> str:
    """Return the page that links to every public name and says what it is."""
    lines = ["# Every public name", "", "All names are those of `import varcal as vc`.", ""]
    said, homes = first_lines(), public_names()
    types = _imported(SRC / "results.py")
    for path, (title, text) in api_pages().items():
        page = path.removeprefix("api/")
        lines += [f"## [{title}]({page})", "", "| name | what it is |", "|---|---|"]
        for name in re.findall(r"^::: (\S+)$", text, re.M):
            short = name.removeprefix("varcal.")
            module, _, last = short.rpartition(".")
            home = module or homes[last].partition(".")[0]
            home = types[last] if module == "results" else home
            lines.append(f"| [`{short}`]({page}#{name}) | {said.get((home, last), '')} |")
        lines.append("")
    return "\n".join(lines)


def _imported(path: Path) -> dict[str, str]:
    """Return the package that each name of a module is imported from."""
    nodes = [
        one for one in ast.parse(path.read_text("utf-8")).body if isinstance(one, ast.ImportFrom)
    ]
    return {name.name: str(one.module).split(".")[1] for one in nodes for name in one.names}


def first_lines() -> dict[tuple[str, str], str]:
    """Return the first line that describes a function, class or constant, by package and name."""
    found: dict[tuple[str, str], str] = {}
    for path in sorted(SRC.rglob("*.py")):
        text = path.read_text("utf-8")
        home = path.relative_to(SRC).parts[0].removesuffix(".py")
        for node in ast.parse(text).body:
            documented = isinstance(node, ast.FunctionDef | ast.ClassDef)
            if documented and (told := ast.get_docstring(node)):  # overloads have none
                found.setdefault((home, node.name), told.partition("\n")[0])
        for told, name in re.findall(r"^#: (.+)\n(\w+)\b.* = ", text, re.M):
            found.setdefault((home, name), told)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build")
