"""The site: every page is in its navigation, every public name in its API, no link is broken."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import varcal
from cases.tools import load_tool

ROOT = Path(__file__).parents[2]
# The pages that a new reader sees first.
MAIN = ["index", "start", "guides/audit", "calibrators", "api/index"]


@pytest.fixture(scope="module")
def assemble():
    return load_tool("site/assemble")


def test_every_page_is_in_the_navigation_once(assemble):
    nav = list(assemble.paths_of(assemble.configuration()["nav"]))
    assert len(nav) == len(set(nav))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    notebooks = {f"notebooks/{path.stem}.md" for path in (ROOT / "docs").rglob("*.ipynb")}
    generated = {"api/index.md", *assemble.api_pages(), *assemble.TEXTS.values(), *notebooks}
    assert pages <= set(nav) <= pages | generated


def test_the_api_has_every_public_name(assemble):
    text = "".join(text for _, text in assemble.api_pages().values())
    found = set(re.findall(r"^::: varcal\.(\S+)$", text, re.M))
    wanted = {name for name in varcal.__all__ if name not in varcal._MODULES} - {"__version__"}
    for module in assemble.MODULES:
        wanted |= {f"{module}.{name}" for name in getattr(varcal, module).__all__}
    more = {f"calibrators.{name}" for name in varcal.calibrators.__all__}
    assert found == wanted | {name for name in more if name.partition(".")[2] not in wanted}
    assert set(assemble.MODULES) | {"calibrators"} == set(varcal._MODULES)
    index = assemble.api_index()
    for name in found:
        assert re.search(rf"#varcal\.{name}\) \| \w", index), f"{name} says nothing"


@pytest.fixture(scope="module")
def site(assemble, tmp_path_factory):
    if not importlib.util.find_spec("zensical"):
        pytest.skip("the docs extra is not installed")
    folder = tmp_path_factory.mktemp("site")
    assemble.main(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", folder / "mkdocs.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link(site):
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    places = {item["location"] for item in index["items"]}
    assert {f"{page}.html" for page in MAIN} <= places
    assert any(place.endswith("#varcal.audit") for place in places)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', text), page
        assert ":math:" not in text, page
