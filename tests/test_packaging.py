"""An installation without extras, and its errors."""

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from cases.tools import load_tool as tool
from cases.unmeasured import unmeasured
from varcal.exceptions import EXTRAS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]

# Run first in a new process, so that importing an optional library fails as if it were missing.
BLOCK = """
import sys
OPTIONAL = {
    "duckdb", "matplotlib", "numba", "onnx", "onnxruntime", "pandas", "polars",
    "psycopg", "pyarrow", "pyspark", "requests", "sqlglot",
}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refuse())
import numpy as np
import varcal as vc
sim = vc.datasets.make_gap(1000, "tilt", vece=0.1, random_state=0)
y, p, v = sim.y, sim.p, {"age": 20 + 60 * sim.v}
"""


def run(code, cwd, given=None):
    command = [sys.executable, "-c", BLOCK + code]
    return subprocess.run(
        command, cwd=cwd, env=unmeasured(), input=given, capture_output=True, text=True, check=False
    )


def test_the_core_needs_no_optional_library_and_no_network(tmp_path):
    code = """
import socket
def refuse(*_, **__):
    raise AssertionError("a socket was opened")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from sklearn.linear_model import LogisticRegression
found = vc.audit(y, p, v)
repr(found), found._repr_html_(), found.to_dict()
for ending in ("html", "md", "json"):
    found.report(f"report.{ending}")
found.save("audit.json"), vc.load("audit.json")
repr(vc.curve(y, p, v, event="positive")), repr(vc.estimate(y, p, v)), repr(vc.reliability(y, p))
repr(vc.slices(y, p, v, draws=19))
vc.vece(y, p, v), vc.ece(y, p), repr(vc.bin_table(y, p, v))
bins = vc.make_bins("y", "p", data={"y": y, "p": p, **v}, monitor=0.02)
total = vc.collect({"y": y, "p": p, **v}, bins)
monitor = vc.Monitor(bins); monitor.update(total, id=1); monitor.save("monitor.json")
(total + total).save("sums.json"), vc.load("sums.json")
names = [name for name in vc.calibrators.__all__ if name.endswith("Calibrator")]
others = {"DirichletCalibrator", "VectorScalingCalibrator", "MeanCalibrator"}
kinds = [getattr(vc.calibrators, n) for n in names if n != "Calibrator" and n not in others]
fitted = [kind().fit(p, y, v) for kind in kinds]
models = {type(one).__name__: one.predict_proba(p, v)[:, 1] for one in fitted}
fitted[-1].save("calibrator.json"), vc.load("calibrator.json")
vc.MeanCalibrator().fit(p, y, v).predict(p, v)
for one in fitted:
    one.scorer()(0.5, {"age": 40}), one.to_python().check()
vc.VariableCalibratedClassifier(LogisticRegression(), variables=[0]).fit(
    np.column_stack([v["age"], p]), y
)
compared = vc.compare(y, {"raw": p, **models}, v)
compared.report("comparison.html"), compared._repr_html_()
for name in ("adult", "census", "income", "yelp"):
    getattr(vc.datasets, f"load_{name}")()
print(not OPTIONAL & {m.partition(".")[0] for m in sys.modules})
"""
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<html" in page
    # A page loads nothing from elsewhere either; links for readers are allowed.
    assert not re.search(r"<(script|img|iframe)[^>]+src=.?https?:|<link[^>]+href=.?https?:", page)


def test_the_demo_needs_no_optional_library_and_prints_to_an_ascii_pipe(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    # With three variables instead of fourteen it takes two seconds instead of nine.
    code = """
import dataclasses, varcal.cli
whole = vc.datasets.load_income()
few = dataclasses.replace(whole, X={one: whole[one] for one in ("age", "sex", "marital-status")})
vc.datasets.load_income = lambda: few
varcal.cli.main(["demo", "-o", "story.md"])
"""
    done = run(code, tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert done.stdout.isascii() and "?" not in done.stdout.partition("\n")[2]
    assert "\x1b" not in done.stdout  # no colour off a terminal
    for text in ("along sex", "VariableCalibrator().fit(p, y, X)", "varcal audit preds"):
        assert text in done.stdout
    assert (tmp_path / "story.md").read_text(encoding="utf-8").startswith("#")


MISSING = {
    "vc.audit('y', 'p', data='rows.csv')": ("reading 'rows.csv' needs pyarrow", "files"),
    "vc.audit('y', 'p', data='rows.pq')": ("reading 'rows.pq' needs pyarrow", "files"),
    "vc.apply(vc.calibrators.PlattCalibrator().fit(p, y), 'rows.csv', 'out.csv', p='p')": (
        "reading 'rows.csv' needs pyarrow",
        "files",
    ),
    "vc.curve(y, p, v).plot()": ("plot() needs matplotlib", "plot"),
    "vc.audit(y, p, v).plot()": ("plot() needs matplotlib", "plot"),
    "vc.audit(y, p, v).to_frame()": ("to_frame() needs pandas", ""),
    "vc.datasets.load_adult().to_frame('polars')": ("to_frame() needs polars", "polars"),
    "vc.calibrators.PlattCalibrator().fit(p, y).to_onnx()": (
        "exporting to ONNX needs onnx",
        "onnx",
    ),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """The errors of all calls of `MISSING`, from one process."""
    folder = tmp_path_factory.mktemp("core")
    for name in ("rows.csv", "rows.pq"):
        (folder / name).write_text("y,p,age\n1,0.5,3\n", encoding="utf-8")
    code = f"""
import json
rows, said = {{"y": y, "p": p, **v}}, {{}}
for call in {list(MISSING)}:
    try:
        eval(call)
    except vc.exceptions.MissingDependencyError as error:
        said[call] = str(error)
print(json.dumps(said))
"""
    done = run(code, folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("call", MISSING)
def test_a_missing_library_is_named_with_its_extra(call, errors):
    message, extra = MISSING[call]
    hint = f"pip install {message.rpartition(' ')[2]}"
    if extra:
        hint += f""", or the extra '{extra}': pip install ".[{extra}]" in a checkout"""
    assert errors[call] == f"{message}\nhint: {hint}"


def test_the_command_line_says_what_to_install(tmp_path):
    (tmp_path / "rows.csv").write_text("y,p,age\n1,0.5,3\n", encoding="utf-8")
    arguments = ["audit", "rows.csv", "--label", "y", "--prob", "p"]
    done = run(f"import varcal.cli; varcal.cli.main({arguments})", tmp_path)
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert first == "error: reading 'rows.csv' needs pyarrow"
    assert second.startswith("hint: pip install ")


def names(requirements):
    return {re.split(r"[\[<>=;]", one)[0] for one in requirements}


#: Tools that users have already; their extras are not among "all".
INTEGRATIONS = {"mlflow", "skore", "evaluate"}


def test_every_optional_library_has_the_extra_that_errors_name():
    for library, extra in EXTRAS.items():
        assert library in names(OPTIONAL[extra]), library
    users = set(OPTIONAL) - {"all", "dev", "docs", *INTEGRATIONS}
    assert OPTIONAL["all"] == [f"varcal[{','.join(one for one in OPTIONAL if one in users)}]"]
    assert {"varcal[all]", "varcal[docs]"} <= set(OPTIONAL["dev"])


def test_the_oldest_versions_are_those_of_pyproject():
    versions = tool("versions")
    assert versions.OLDEST.read_text(encoding="utf-8") == versions.bounds_text()
    # Every dependency of users has a lower bound.
    users = {
        one
        for extra in OPTIONAL.keys() - {"dev", *INTEGRATIONS}
        for one in OPTIONAL[extra]
        if not one.startswith("varcal")
    }
    assert len(users | set(PROJECT["dependencies"])) <= len(versions.bounds())


#: What the licences of dependencies may consist of.
ACCEPTED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "LLVM-exception"),
    *("MIT", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib"),
}


def test_the_page_of_licences_has_every_dependency():
    licences, versions = tool("licences"), tool("versions")
    text = licences.PAGE.read_text(encoding="utf-8")
    assert text.startswith(licences.HEAD)
    rows = dict(re.findall(r"^\| ([\w-]+) \| ([^|]+) \| [\w, ]+ \|$", text, re.MULTILINE))
    rows.pop("package")
    for terms in rows.values():
        assert set(re.split(r" (?:AND|OR|WITH) ", terms)) <= ACCEPTED
    told = licences.extras().values()
    direct = {re.match(r"[\w-]+", one)[0] for given in told for one in given} - {"varcal"}
    assert direct <= set(rows)
    pins = versions.LOCK.read_text(encoding="utf-8")
    for name in licences.needed():
        if f"\n{name}=={metadata.version(name)} " in pins:  # other versions may need other packages
            assert rows[name] == licences.licence(name)
