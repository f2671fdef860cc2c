"""The code on the page about other tools runs, where its packages are installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "other-tools.md"
BLOCKS = re.findall(r"^```python (\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize(("package", "code"), BLOCKS, ids=[name for name, _ in BLOCKS])
def test_code_runs(package, code, tmp_path):
    pytest.importorskip(package, reason=f"{package} is not installed")
    # In a process of its own, without what MLflow keeps in the environment of this one.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")}
    clean["MLFLOW_TRACKING_URI"] = f"sqlite:///{tmp_path}/runs.db"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    )
    assert package == "mlflow" or done.stdout
