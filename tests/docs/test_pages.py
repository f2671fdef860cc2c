"""The pages of the documentation: their code runs, prints and draws what they show."""

import difflib
import re
from pathlib import Path

import pytest

from cases.tools import load_tool

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
TEXTS = [
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "src").rglob("README.md")),
    *(ROOT / folder / "README.md" for folder in ("benchmarks", "reproduction", "tools", "torture")),
]


def name(page):
    return page.relative_to(ROOT).as_posix()


def check(page):
    pages = load_tool("doc_pages")
    for block, printed, figure in pages.run(page):
        if block.result is not None and not pages.agrees(block.result, printed):
            pytest.fail("\n".join(difflib.ndiff(block.result.split("\n"), printed.split("\n"))))
        if block.picture is not None:
            drawn = figure or ".report(" in block.code  # a photograph of the report
            assert drawn, f"the block before {block.picture} draws nothing"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(page)


@pytest.mark.parametrize("page", TEXTS, ids=name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target


def test_nothing_is_installed_from_an_index_where_varcal_is_not():
    for page in TEXTS:
        assert not re.search(r"pip install +varcal", page.read_text(encoding="utf-8")), page
