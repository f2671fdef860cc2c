"""The code on the page about other tools runs, where its packages are installed."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "other-tools.md"
BLOCKS = re.findall(r"^```python (\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize(("package", "code"), BLOCKS, ids=[name for name, _ in BLOCKS])
def test_code_runs(package, code, tmp_path, monkeypatch, capsys):
    pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    exec(compile(code, PAGE.name, "exec"), {})
    assert package == "mlflow" or capsys.readouterr().out
