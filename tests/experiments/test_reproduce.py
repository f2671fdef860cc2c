"""The paper's experiments: every published figure to the last digit, and the corrected ones."""

import csv
import gzip
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import varcal as vc
from varcal._smoothing.local_polynomial import smoother_weights
from varcal.cli import main
from varcal.exceptions import InputError, VarcalWarning
from varcal.experiments import (
    RESULT_FILES,
    Reproduction,
    _own_files,
    reproduce,
    verdict,
    write_index,
)
from varcal.experiments._claims import Claim, ClaimResult
from varcal.experiments._corrected_protocol import _recalibrated, run_corrected
from varcal.experiments._figure import Figure
from varcal.experiments._loess import loess_line
from varcal.experiments._paper_files import paper_file
from varcal.experiments._paper_protocol import run_paper, worst_gap
from varcal.experiments._published import PUBLISHED, Published
from varcal.experiments._result_tables import Table
from varcal.experiments._splits import read_rows
from varcal.experiments._study import STUDIES
from varcal.experiments._theory import _simulated, run_theory

OUTPUTS = ("adult", "bank", "cardio", "cifar")
_ROWS: dict = {}


@pytest.fixture(scope="module")
def rows(paper_data):
    """Return the model outputs of a study."""

    def read(name):
        if name not in _ROWS:
            _ROWS[name] = read_rows(STUDIES[name], paper_file(name, paper_data))
        return _ROWS[name]

    return read


@pytest.fixture(scope="module")
def paper_runs(rows):
    return {
        name: run_paper(STUDIES[name], rows(name).split(STUDIES[name].n_cal, 0)) for name in OUTPUTS
    }


def test_every_published_figure_is_reproduced(paper_runs):
    figures = [figure for run in paper_runs.values() for figure in run.figures.values()]
    published = [figure for figure in figures if figure.published]
    assert len(published) == sum(len(PUBLISHED[name]) for name in OUTPUTS)
    for figure in published:
        assert not figure.failed, (figure.target, figure.value, figure.published)
    main_errors = [
        figure
        for name, run in paper_runs.items()
        for figure in run.figures.values()
        if figure.published
        and figure.target[1] in ("ECE", "VECE")
        and figure.target[2] in ("", STUDIES[name].variable)
    ]
    assert len(main_errors) == 38
    assert sum(figure.target[1] == "accuracy" for figure in published) == 9
    assert sum(figure.target[1] == "VCE(v*)" for figure in published) == 4


def test_only_two_figures_are_printed_otherwise_than_recorded(paper_runs):
    odd = {
        (name, *figure.target[:2])
        for name, run in paper_runs.items()
        for figure in run.figures.values()
        if figure.printed and not figure.prints_equal
    }
    assert odd == {
        ("cifar", "Dirichlet calibration", "ECE"),
        ("cifar", "Variable-based calibration", "accuracy"),
    }


def test_the_paper_bins_over_the_uncalibrated_predicted_error(rows):
    """With many ties ten bins become three; 1 − max must be computed as by the authors."""
    from varcal._binning.choose import choose_bins
    from varcal._engines.kernel_numpy import bin_rows
    from varcal._input.variables import Variable

    test = rows("adult").split(2500, 0).test
    over = Variable("predicted error", "numeric", 1 - test.p.max(axis=1))
    stats = bin_rows(choose_bins([over]), [over], test.p.max(axis=1), test.pred == test.y)
    assert stats.n.tolist() == [11025, 1378, 1378]


@pytest.mark.parametrize(
    ("name", "method", "ece", "vece", "floor"),
    [
        ("adult", "Beta calibration", (2.35, 0.26), (9.73, 0.24), (0.89, 1.25)),
        ("adult", "Variable-based calibration", (1.89, 0.35), (1.87, 0.41), (0.80, 1.16)),
        ("bank", "Platt scaling", (2.84, 0.38), (2.71, 0.55), (0.72, 1.02)),
        ("bank", "Variable-based calibration", (2.08, 0.47), (1.37, 0.59), (0.69, 0.99)),
        ("cardio", "Platt scaling", (0.91, 0.20), (2.14, 0.21), (0.90, 1.27)),
        ("cifar", "Dirichlet calibration", (0.74, 0.22), (1.35, 0.14), (0.42, 0.61)),
        ("cifar", "Variable-based calibration", (1.74, 0.31), (1.87, 0.31), (0.36, 0.53)),
    ],
)
def test_corrected_figures_agree_with_an_independent_run(corrected, name, method, ece, vece, floor):
    run = corrected(name)
    for target, (mean, sd) in (
        ((method, "ECE", ""), ece),
        ((method, "VECE", run.study.variable), vece),
    ):
        assert 100 * run.values[target].mean() == pytest.approx(mean, abs=0.6 * sd + 0.02)
    along = (method, "VECE", run.study.variable)
    assert 100 * run.floors[along].mean() == pytest.approx(floor[0], abs=0.06)
    assert 100 * run.floor_highs[along].mean() == pytest.approx(floor[1], abs=0.08)


_CORRECTED: dict = {}


@pytest.fixture(scope="module")
def corrected(rows):
    def run(name):
        if name not in _CORRECTED:
            _CORRECTED[name] = run_corrected(STUDIES[name], rows(name), n_splits=20)
        return _CORRECTED[name]

    return run


def test_what_holds_up(corrected):
    def verdicts(name):
        return {one.claim.target: one.verdict for one in corrected(name).claims}

    tree = "Variable-based calibration"
    assert verdicts("adult")[tree, "VECE", "age"] == "holds"
    assert verdicts("bank")[tree, "VECE", "age"] == "holds"
    assert verdicts("cifar")[tree, "VECE", "median_rt"] == "reversed"
    assert verdicts("cifar")[tree, "accuracy", ""] == "reversed"
    assert verdicts("adult")[tree, "VECE", "capital-gain"] == "not testable: only one bin"
    assert verdicts("cardio")["Platt scaling", "VECE", "age"] == "holds"


@pytest.mark.parametrize(
    ("n_true", "n_splits", "said"),
    [
        (45, 50, "holds"),
        (44, 50, "depends on the split"),
        (6, 50, "depends on the split"),
        (5, 50, "reversed"),
        (3, 3, "too few splits"),
    ],
)
def test_boundaries_of_verdicts(n_true, n_splits, said):
    claim = Claim("smaller", "lowers", "a", "b", "ECE")
    assert ClaimResult(claim, -0.1, 0.1, n_true, n_splits, -0.2, -0.1).verdict == said


@pytest.mark.parametrize(
    ("kind", "measure", "change", "true"),
    [
        ("lowers", "ECE", -0.01, True),
        ("lowers", "ECE", 0.0, False),
        ("keeps", "VECE", 0.0, True),
        ("keeps", "VECE", 0.01, False),
        ("keeps", "accuracy", -0.0005, True),
        ("keeps", "accuracy", -0.002, False),
        ("exceeds", "VECE", 0.01, True),
        ("exceeds", "VECE", -0.01, False),
    ],
)
def test_when_a_claim_is_true(kind, measure, change, true):
    margin = 0.001 if measure == "accuracy" else 0.0  # as VECE may have, too
    claim = Claim("", kind, "a", "b", measure, margin=margin)
    assert claim.true(change) is true
    assert claim.confirmed(change, change) is true


def test_warnings_of_calibrators_are_reported(rows):
    """In split 22 of Adult a leaf has a single class."""
    study = STUDIES["adult"]
    _, said = _recalibrated(study, rows("adult").split(study.n_cal, 22))
    assert [text for text in said if "leaf" in text]
    assert not _recalibrated(study, rows("adult").split(study.n_cal, 0))[1]


def test_the_first_corrected_split_is_the_papers(corrected, paper_runs):
    run, paper = corrected("bank"), paper_runs["bank"]
    np.testing.assert_array_equal(run.test.y, paper.test.y)
    lucky = run.first["Variable-based calibration", "VECE", "age"]
    assert lucky.low == 0.0
    assert lucky.value < lucky.noise_high


def test_corrected_rows_sum_to_one(corrected):
    for q in corrected("cifar").probabilities.values():
        np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-6)


def test_worst_gap_is_found_between_two_known_curves():
    x = np.linspace(0, 1, 400)
    assert worst_gap(x, np.zeros(400, bool), 0.3 * x) == pytest.approx(0.3 * 0.95, abs=1e-9)


def test_loess_line_equals_scikit_misc():
    loess = pytest.importorskip("skmisc.loess").loess
    rng = np.random.default_rng(3)
    x = np.sort(rng.integers(18, 70, 900).astype(float))
    y = np.sin(x / 9) + rng.normal(size=900)
    at = np.linspace(20, 68, 40)
    peer = loess(x, y, span=0.9, degree=2, surface="direct", statistics="exact")
    peer.fit()
    found = peer.predict(at, stderror=True)
    band = found.confidence(alpha=0.05)
    ours = loess_line(x, y, at, span=0.9)
    np.testing.assert_allclose(ours.fit, found.values, atol=1e-9)
    np.testing.assert_allclose(ours.low, band.lower, atol=1e-6)
    np.testing.assert_allclose(ours.high, band.upper, atol=1e-6)


def test_merged_cells_hardly_change_a_line():
    rng = np.random.default_rng(4)
    x = rng.gamma(3, size=4000)
    y = (rng.random(4000) < 0.2 + 0.05 * np.sin(x)).astype(float)
    at = np.linspace(*np.quantile(x, [0.02, 0.98]), 50)
    ours = loess_line(x, y, at, span=0.8)
    order = np.argsort(x)
    direct = smoother_weights(x[order], at, span=0.8) @ y[order]
    np.testing.assert_allclose(ours.fit, direct, atol=5e-4)


@pytest.mark.parametrize(
    ("published", "value", "failed", "said"),
    [
        (Published("1.65", 0.016461), 1.64612, False, "equal"),
        (Published("1.65", 0.016461), 1.6464, True, "differs by +0.0003"),
        (Published("1.65", 0.016461), 1.75, True, "differs"),
        (Published("0.80", 0.007885, "why"), 0.7885, False, "equal to the authors' output; why"),
        (Published("0.80", 0.007885), 0.7885, True, "differs"),
        (Published("", 0.007885), 0.7885, False, "equal to the authors' output"),
    ],
)
def test_verdicts(published, value, failed, said):
    figure = Figure(("beta", "ECE", ""), value, published)
    assert figure.failed is failed
    assert figure.verdict.startswith(said)


def test_another_model_is_never_a_failure():
    figure = Figure(("beta", "ECE", ""), 5.0, Published("1.65"), same_model=False)
    assert not figure.failed
    assert figure.verdict == "another model"
    assert figure.difference == pytest.approx(3.35)


def test_theorems_are_simulated_across_classes_and_alpha():
    run = run_theory(20_000)
    assert len(run.cases) == 72
    assert all(case.agrees for case in run.cases)
    third = [case for case in run.cases if case.theorem == 3]
    assert max(abs(case.ece - case.vece) for case in third) < 2e-3


@pytest.mark.parametrize(
    ("theorem", "make", "alpha"),
    [
        (1, vc.datasets.make_vece_bound, 0.02),
        (1, vc.datasets.make_vece_bound, 0.25),
        (2, vc.datasets.make_ece_bound, 0.02),
        (3, vc.datasets.make_consistent, 0.02),
    ],
)
@pytest.mark.parametrize("figure", ["ece", "vece"])
def test_a_wrong_closed_form_is_noticed(theorem, make, alpha, figure):
    sim = make(20_000, 2, alpha=alpha)
    assert _simulated(theorem, 2, alpha, sim).agrees
    wrong = replace(sim, **{figure: 0.7 * getattr(sim, figure) + 0.001})
    assert not _simulated(theorem, 2, alpha, wrong).agrees


@pytest.mark.parametrize(
    ("theorem", "make", "alpha", "gap"),
    [
        (1, vc.datasets.make_vece_bound, 0.02, "gap"),
        (2, vc.datasets.make_ece_bound, 0.02, "score_gap"),
        (3, vc.datasets.make_consistent, 0.02, "gap"),
        (3, vc.datasets.make_consistent, 0.02, "score_gap"),
    ],
)
def test_rows_that_do_not_follow_the_theorem_are_noticed(theorem, make, alpha, gap):
    sim = make(100_000, 2, alpha=alpha)
    figure = "vece" if gap == "gap" else "ece"
    true = getattr(sim, gap)
    changed = {gap: lambda x: 0.7 * true(x), figure: 0.7 * getattr(sim, figure)}
    assert not _simulated(theorem, 2, alpha, replace(sim, **changed)).agrees


def run(*arguments):
    return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


def test_command_writes_tables_and_pictures(paper_data, tmp_path):
    result = run("bank", "--data", paper_data, "--out", tmp_path / "out", "--splits", 3)
    assert result.exit_code == 0, result.output
    assert "18 of 18 published figures equal" in result.output.splitlines()[-1]
    assert "too few splits" in result.output
    home = tmp_path / "out" / "bank"
    names = {path.name for path in home.iterdir()}
    assert {"README.md", "figures.csv", "errors.csv", "claims.csv", "corrected.csv"} <= names
    assert names == {*names & set(RESULT_FILES), _own_files.LIST}
    page = (home / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((.*?\.png)\)", page)
    assert set(linked) == {name for name in names if name.endswith(".png")}
    assert len(linked) == 5
    for name in linked:
        with Image.open(home / name) as picture:
            assert picture.width > 800
            assert len(picture.convert("RGB").getcolors(1 << 20)) > 20
    with (home / "figures.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert len(found) == len(PUBLISHED["bank"])
    assert {row["verdict"] for row in found} == {"equal"}


def test_changed_data_end_with_exit_code_1(paper_data, tmp_path):
    with gzip.open(paper_data / "bank_out.csv.gz", "rt", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    at = lines[0].index("actual")
    for line in lines[1:200]:
        line[at] = str(1 - int(float(line[at])))
    with (tmp_path / "bank_out.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    result = run("bank", "--data", tmp_path, "--out", tmp_path / "out", "--protocol", "paper")
    assert result.exit_code == 1
    assert "differs from the paper: Bank Marketing: " in result.output
    assert "18 of 18" not in result.output.splitlines()[-1]


def test_protocol_alone(paper_data, tmp_path):
    result = run("cardio", "--data", paper_data, "-o", tmp_path, "--protocol", "paper")
    assert result.exit_code == 0, result.output
    assert "corrected" not in result.output
    assert {path.stem for path in (tmp_path / "cardio").glob("*.png")} == {"figure-1a", "figure-1b"}


def test_files_of_an_earlier_run_do_not_stay(paper_data, tmp_path):
    write_index([Reproduction("theory", "Theory", ()), Reproduction("bank", "Bank", ())], tmp_path)
    assert (tmp_path / "README.md").read_text(encoding="utf-8").startswith("# The paper, repr")
    (tmp_path / "cardio").mkdir()
    (tmp_path / "cardio" / "notes.txt").write_text("mine", encoding="utf-8")
    both = ("cardio", "--data", paper_data, "-o", tmp_path)
    assert run(*both, "--splits", 2).exit_code == 0
    assert run(*both, "--splits", 2, "--protocol", "corrected").exit_code == 0
    names = {path.name for path in (tmp_path / "cardio").iterdir()}
    assert not {"figures.csv", "errors.csv", "figure-1a.png"} & names
    assert {"corrected.csv", "notes.txt"} <= names
    assert {path.name for path in tmp_path.iterdir()} == {"cardio"}


@pytest.mark.parametrize("name", ["README.md", "theory/README.md", "theory/theorem-1.csv"])
def test_files_of_the_user_are_never_replaced(tmp_path, name):
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine", encoding="utf-8")
    result = run("all", "-o", tmp_path)
    assert result.exit_code == 2
    said = f"cannot write to {str(mine.parent)!r}: {mine.name!r} was not written by varcal"
    assert said in result.output
    assert "choose another folder, or move that file away" in result.output
    assert [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()] == ["mine"]


def test_a_file_that_was_changed_since_counts_as_the_users(tmp_path):
    table = Table("claims", "Claims", {"claim": ["a"]})
    old = Table("by-split", "Splits", {"split": ["1"]})
    Reproduction("bank", "Bank", (table, old)).write(tmp_path)
    (tmp_path / "by-split.csv").write_text("changed", encoding="utf-8")
    Reproduction("bank", "Bank, again", (table,)).write(tmp_path)
    assert "Bank, again" in (tmp_path / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "by-split.csv").read_text(encoding="utf-8") == "changed"
    (tmp_path / "claims.csv").write_text("changed", encoding="utf-8")
    with pytest.raises(InputError, match=r"'claims.csv' was not written by varcal or was changed"):
        Reproduction("bank", "Bank", (table,)).write(tmp_path)
    assert "Bank, again" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_files_of_an_interrupted_run_count_as_its_own(tmp_path, monkeypatch):
    table = Table("claims", "Claims", {"claim": ["a"]})
    Reproduction("bank", "First", (table,)).write(tmp_path)
    other = Reproduction("bank", "Second", (Table("claims", "Claims", {"claim": ["b"]}),))
    whole_file = _own_files.whole_file

    def interrupted(path):
        if path.name == "README.md":
            raise KeyboardInterrupt
        return whole_file(path)

    monkeypatch.setattr(_own_files, "whole_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        other.write(tmp_path)
    monkeypatch.undo()
    assert "b" in (tmp_path / "claims.csv").read_text(encoding="utf-8")
    Reproduction("bank", "Third", (table,)).write(tmp_path)


def test_corrected_alone_reports_what_fails(paper_data):
    found = reproduce("cifar", data=paper_data, protocols=["corrected"], n_splits=20)
    assert found.ok
    assert "claims hold (reversed: 2)" in found.summary
    assert verdict([found]) == found.summary


def test_yelp_runs_anew_from_what_is_bundled():
    found = reproduce("yelp", n_splits=2)
    assert found.ok
    assert "run again with our own model" in found.summary
    assert {figure.verdict for figure in found.figures} == {"another model"}
    assert len(found.figures) == 12 + 3 + 3


def test_everything_with_one_summary(paper_data, tmp_path):
    result = run("all", "--data", paper_data, "-o", tmp_path, "--splits", 2)
    assert result.exit_code == 0, result.output
    last = result.output.splitlines()[-1]
    assert last.startswith("69 of 69 published figures equal, 6 experiments: no failures")
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    for name in ("theory", "cardio", "adult", "yelp", "bank", "cifar"):
        assert (tmp_path / name / "README.md").is_file()
        assert f"({name}/README.md)" in page
    assert "72 of 72 cases agree" in (tmp_path / "theory" / "README.md").read_text("utf-8")
    with (tmp_path / "figures.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 69 + 18


def test_a_statement_that_fails_ends_with_exit_code_1(tmp_path, monkeypatch):
    def wrong(*arguments, **options):
        sim = vc.datasets.make_vece_bound(*arguments, **options)
        return replace(sim, vece=0.5 * sim.vece)

    monkeypatch.setattr("varcal.experiments._theory.make_vece_bound", wrong)
    result = run("theory", "-o", tmp_path)
    assert result.exit_code == 1
    assert "48 of 72 cases agree" in result.stdout.splitlines()[-1]
    assert "theorem 1, K = 2" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["adlut"], "adlut"),
        ([], "NAME"),
        (["bank", "--data", "nowhere"], "nowhere"),
        (["bank", "--splits", "1"], "splits"),
        (["bank", "--protocol", "mine"], "mine"),
    ],
)
def test_wrong_arguments_end_with_one_line(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_a_file_of_other_columns_is_refused(tmp_path):
    (tmp_path / "bank_out.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with (
        pytest.warns(VarcalWarning, match="not the authors' file"),
        pytest.raises(InputError, match="has no column 'actual'"),
    ):
        reproduce("bank", data=tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("age", "old", "column 'age' has values that are not numbers"),
        ("age", "", "column 'age' is not a finite number"),
        ("actual", "7", "is not a class from 0 to 1"),
        ("pred", "", "is not a finite number"),
    ],
)
def test_invalid_rows_are_named(column, value, said, paper_data, tmp_path):
    with gzip.open(paper_data / "bank_out.csv.gz", "rt", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    lines[5][lines[0].index(column)] = value
    with (tmp_path / "bank_out.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    with pytest.warns(VarcalWarning), pytest.raises(InputError, match=said) as caught:
        reproduce("bank", data=tmp_path)
    assert "bank_out.csv" in str(caught.value)


def test_too_few_rows_are_refused(tmp_path, paper_data):
    with gzip.open(paper_data / "bank_out.csv.gz", "rt", encoding="utf-8") as file:
        lines = file.readlines()[:500]
    (tmp_path / "bank_out.csv").write_text("".join(lines), encoding="utf-8")
    with pytest.warns(VarcalWarning), pytest.raises(InputError, match="has 499 rows"):
        reproduce("bank", data=tmp_path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "mnist"}, "mnist"),
        ({"name": "theory", "protocols": ()}, "protocols is empty"),
        ({"name": "theory", "protocols": ("wrong",)}, "wrong"),
        ({"name": "theory", "n_splits": 1}, "n_splits"),
    ],
)
def test_wrong_options_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        reproduce(**given)


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    result = run("theory", "-o", tmp_path / "file" / "out")
    assert result.exit_code == 2
    assert "is not a folder" in result.output


def test_summary_of_several(paper_data):
    found = [reproduce(name, data=paper_data, protocols=["paper"]) for name in ("bank", "cardio")]
    assert verdict(found).startswith("24 of 24 published figures equal, 2 experiments")
    frame = found[0].to_frame()
    assert len(frame) == 18
    assert set(frame["verdict"]) == {"equal"}
