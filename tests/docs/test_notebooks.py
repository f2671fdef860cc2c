"""The notebooks: they are what their sources say, and run to the results that they show."""

import json
from pathlib import Path

import pytest

from cases.tools import load_tool

SOURCES = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.py"))


def stored(source):
    return json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_has_the_cells_of_its_source_and_their_results(source):
    tool = load_tool("notebooks")
    made = stored(source)
    found = [(cell["cell_type"], "".join(cell["source"])) for cell in made["cells"]]
    assert found == tool.cells(source.read_text(encoding="utf-8"))
    assert len(tool.pictures(made)) >= 1
    assert any(tool.printed(made))
    assert source.with_suffix(".ipynb").stat().st_size < 200_000


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_runs_to_what_it_shows(source, monkeypatch):
    pytest.importorskip("nbclient", reason="the docs extra is not installed")
    import varcal

    # The kernel is another process, which has to find the same sources.
    monkeypatch.setenv("PYTHONPATH", str(Path(varcal.__file__).parents[1]))
    tool = load_tool("notebooks")
    made = tool.executed(source.read_text(encoding="utf-8"))
    agrees = load_tool("doc_pages").agrees
    for shown, found in zip(tool.printed(stored(source)), tool.printed(made), strict=True):
        assert agrees(shown, found), found
    assert len(tool.pictures(made)) == len(tool.pictures(stored(source)))
