"""Names and characters on the command line that no file, label or separator can have."""

import pytest
from click.testing import CliRunner

from varcal.cli import main

COLUMNS = ("--label", "y", "--prob", "p")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "x" * 300, *COLUMNS], "no file 'xxx"),
        (["slices", "x" * 300 + ".csv", *COLUMNS], "no file 'xxx"),
        (["compare", "x" * 300, "--label", "y", "--prob", "p", "--prob", "q"], "no file 'xxx"),
        (["monitor", "update", "x" * 300, "rows.csv"], "cannot read 'xxx"),
        (["audit", "rows.csv", *COLUMNS, "--pos-label", "\ud800"], "are not of the type"),
        (["slices", "rows.csv", *COLUMNS, "--classes", "\ud800,1"], "are not of the type"),
        (["audit", "rows.csv", *COLUMNS, "--sep", "\0"], "--sep must be one character"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("y,p,a\n1,0.5,3\n0,0.4,2\n", encoding="utf-8")
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert message in result.output
