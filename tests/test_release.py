"""What users copy and check: the examples, the command, types; see tools/release_check.py."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cases.unmeasured import unmeasured

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "audit_a_model": "wrong for groups",
    "calibrate_in_a_database": "in the database",
    "gate": "most along age",
    "monitor_batches": "marital-status: Married-civ-spouse, since day",
    "repair_and_prove": "uneven along age",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name, tmp_path):
    command = [sys.executable, ROOT / "examples" / f"{name}.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=unmeasured(), capture_output=True, text=True, check=False
    )
    assert done.returncode == (1 if name == "gate" else 0), done.stderr
    assert EXAMPLES[name] in done.stdout
    for file in re.findall(r"\w+\.(?:html|json|sql)", done.stdout):
        assert (tmp_path / file).stat().st_size > 0


@pytest.mark.slow
def test_a_script_of_a_user_is_typed(tmp_path):
    """As seen by pyright; make release-check runs mypy too, which takes longer."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    # Away from pyproject.toml and its settings, as a user's script is.
    script = shutil.copy(ROOT / "tests" / "cases" / "typed_script.py", tmp_path)
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
