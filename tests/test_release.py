"""What users copy and check: the examples, the command, types; see tools/release_check.py."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "audit_a_model": "wrong for groups",
    "calibrate_in_a_database": "in the database",
    "gate": "age is off",
    "monitor_batches": "marital-status: Married-civ-spouse, since day",
    "repair_and_prove": "VECE age",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name, tmp_path):
    command = [sys.executable, ROOT / "examples" / f"{name}.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if name == "gate" else 0), done.stderr
    assert EXAMPLES[name] in done.stdout
    for file in re.findall(r"\w+\.(?:html|json|sql)", done.stdout):
        assert (tmp_path / file).stat().st_size > 0


def checked_script(folder):
    # Away from pyproject.toml and its settings, as a user's script is.
    return shutil.copy(ROOT / "tests" / "cases" / "typed_script.py", folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["mypy", "--strict"], ["pyright", "--pythonpath", sys.executable]],
    ids=["mypy", "pyright"],
)
def test_a_script_of_a_user_is_typed(command, tmp_path):
    if not importlib.util.find_spec(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    script = checked_script(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", *command, script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
