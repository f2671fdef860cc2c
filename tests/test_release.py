"""What a release promises: examples, types for users, a small core, the same bytes twice."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

import varcal
from cases.tools import load_tool

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "audit_a_model": "wrong for groups",
    "calibrate_in_a_database": "in the database",
    "gate": "age is off",
    "monitor_batches": "marital-status: Married-civ-spouse, since day",
    "repair_and_prove": "VECE age",
}


def test_every_example_is_tested_and_short():
    found = {path.stem: path for path in (ROOT / "examples").glob("*.py")}
    assert set(found) == set(EXAMPLES)
    for path in found.values():
        assert len(path.read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name, tmp_path):
    command = [sys.executable, ROOT / "examples" / f"{name}.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if name == "gate" else 0), done.stderr
    assert EXAMPLES[name] in done.stdout
    for file in re.findall(r"\w+\.(?:html|json|sql)", done.stdout):
        assert (tmp_path / file).stat().st_size > 0


def test_the_gate_of_the_examples_knows_the_last_release(tmp_path):
    command = [sys.executable, ROOT / "examples" / "gate.py"]
    for earlier in ([], ["audit.json"]):
        done = subprocess.run(
            [*command, *earlier], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, done.stderr
        assert "became worse" not in done.stdout


def test_python_m_varcal(tmp_path):
    command = [sys.executable, "-m", "varcal", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"varcal {varcal.__version__}"


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


@pytest.mark.slow
def test_an_error_of_types_is_noticed(tmp_path):
    script = Path(checked_script(tmp_path))
    with script.open("a", encoding="utf-8") as file:
        file.write("wrong: int = vc.ece(seen.y, seen.p)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Incompatible types in assignment" in done.stdout


def needed(name, found):
    """Add a package and all that it needs, without extras."""
    found.add(name)
    for requirement in distribution(name).requires or ():
        other = re.split(r"[ ;<>=!~\[(]", requirement)[0].lower().replace("_", "-")
        marker = requirement.partition(";")[2]
        plain = "extra" not in marker and "platform" not in marker and "python_" not in marker
        if plain and other not in found:
            needed(other, found)
    return found


def test_the_core_stays_small():
    release_check = load_tool("release_check")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = set()
    for requirement in project["dependencies"]:
        needed(re.split(r"[<>=]", requirement)[0], packages)
    assert {"numpy", "scipy", "scikit-learn", "joblib", "rich", "pygments"} <= packages
    size = 0
    for name in packages:
        for file in distribution(name).files or ():
            path = Path(file.locate())
            if path.suffix != ".pyc" and path.is_file():
                size += path.stat().st_size
    own = sum(
        path.stat().st_size
        for path in (ROOT / "src").rglob("*")
        if path.parent.name != "__pycache__"
    )
    assert 100e6 < size + own < 1e6 * release_check.CORE_LIMIT_MB
    assert own < 4e6


def test_every_extra_is_tried_before_a_release():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    assert extras - {"dev"} == set(load_tool("release_check").SMOKE) - {""}
    page = (ROOT / "docs" / "project" / "installation.md").read_text(encoding="utf-8")
    assert extras == set(re.findall(r"^\| `(\w+)` \|", page, re.M))


def test_all_files_name_the_same_version():
    assert load_tool("release_check").version() == varcal.__version__


@pytest.mark.slow
def test_two_builds_have_the_same_bytes(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    found = []
    for name in ("first", "second"):
        command = [sys.executable, "-m", "hatchling", "build", "-d", tmp_path / name]
        environment = os.environ | {"SOURCE_DATE_EPOCH": "1790000000"}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        files = sorted((tmp_path / name).iterdir())
        assert [path.suffix for path in files] == [".whl", ".gz"]
        found.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in files])
    assert found[0] == found[1]
    with zipfile.ZipFile(files[0]) as wheel:
        (name,) = (one for one in wheel.namelist() if one.endswith("METADATA"))
        metadata = wheel.read(name).decode()
    assert "# varcal" in metadata and "](docs/" not in metadata


def test_the_readme_renders_on_a_package_index():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        assert len(line) <= 120 or line.startswith(("|", "![")), line
    markdown = pytest.importorskip("readme_renderer.markdown", reason="needs readme-renderer")
    # An index shows no images and follows no links that are relative to the repository.
    rendered = markdown.render(load_tool("index_readme").index_text(text))
    assert rendered is not None
    assert "<table>" in rendered and "<img" not in rendered
    assert set(re.findall(r'href="([^"#]+)"', rendered)) == {"https://arxiv.org/abs/2209.15154"}
