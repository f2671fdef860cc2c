"""``python -m reproduction``: what it writes, and when it fails."""

import csv

import pytest

pytest.importorskip("skmisc")

from PIL import Image

from reproduction.__main__ import main
from reproduction.rows import paper_file


def test_tables_and_pictures(paper_data, tmp_path, capsys):
    names = ("bank", "yelp")
    assert main([*names, "--data", str(paper_data), "--out", str(tmp_path), "--splits", "2"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("18 of 18 published figures equal, 2 experiments: no failures")
    index = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "run again with our own model" in index
    with (tmp_path / "figures.csv").open(encoding="utf-8") as file:
        verdicts = [row["verdict"] for row in csv.DictReader(file)]
    assert verdicts == 18 * ["equal"] + 18 * ["another model"]
    for name, many in zip(names, (5, 5), strict=True):
        page = (tmp_path / name / "README.md").read_text(encoding="utf-8")
        pictures = list((tmp_path / name).glob("*.png"))
        assert len(pictures) == many
        for path in pictures:
            assert f"]({path.name})" in page
            with Image.open(path) as picture:
                assert picture.width > 500
                assert len(picture.convert("RGB").getcolors(1 << 20)) > 20


def test_another_file_is_refused(tmp_path):
    (tmp_path / "bank_out.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="is not the authors' file"):
        paper_file("bank", tmp_path)
