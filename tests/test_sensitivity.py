"""The tables of tuned constants: every entry exists, takes effect and is restored."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def sensitivity():
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("sensitivity", FOLDER / "sensitivity.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["sensitivity"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


def test_every_entry_names_a_constant_and_a_study(sensitivity):
    for entry in sensitivity.ENTRIES:
        assert entry.study in sensitivity.STUDIES
        assert isinstance(entry.value, int | float | tuple)
        assert sensitivity.READMES[entry.package].exists()
    names = [(entry.module, entry.constant, entry.study) for entry in sensitivity.ENTRIES]
    assert len(names) == len(set(names))


def test_every_tuned_constant_is_in_the_readme(sensitivity):
    for entry in sensitivity.ENTRIES:
        module = entry.module.rsplit(".", 1)[-1]
        text = sensitivity.READMES[entry.package].read_text(encoding="utf-8")
        assert f"`{module}.{entry.constant}`" in text


def test_a_constant_is_scaled_for_a_while(sensitivity):
    entry = sensitivity.Entry("calibrators", "calibrators._variable.trust", "SCORE_RAMP", "groups")
    with entry.scaled(2.0):
        assert entry.value == (0.8, 2.8)
    assert entry.value == (0.4, 1.4)


def test_a_constant_is_scaled_wherever_it_is_imported(sensitivity):
    from varcal._binning import stats
    from varcal._inference import gap_law

    (entry,) = (
        one
        for one in sensitivity.ENTRIES
        if (one.module, one.constant, one.study) == ("_binning.stats", "PRIOR_ROWS", "interval")
    )
    with entry.scaled(2.0):
        assert stats.PRIOR_ROWS == gap_law.PRIOR_ROWS == 10
    assert stats.PRIOR_ROWS == gap_law.PRIOR_ROWS == 5


def test_kept_results_do_not_outlive_a_constant(sensitivity):
    from varcal._smoothing import bands

    entry = sensitivity.Entry("smoothing", "_smoothing.bands", "HALF_SPANS", "band")
    before = bands._even_stack(30)[1]
    with entry.scaled(0.5):
        assert (bands._even_stack(30)[1] >= before).all()
        assert (bands._even_stack(30)[1] > before).any()
    np.testing.assert_array_equal(bands._even_stack(30)[1], before)


def test_a_study_of_the_inference_is_paired(sensitivity):
    entries = [one for one in sensitivity.ENTRIES if one.constant == "PART_OF_LEVEL"]
    text = sensitivity.tables(entries, quick=True)
    assert "**Detectable error** (seeds 400–401" in text
    row = text.splitlines()[-1].split(" | ")
    assert row[0] == "| `power.PART_OF_LEVEL`" and row[1] == "0.5"
    # The smaller the level in the formula, the larger the error that it calls detectable.
    half, twice = (float(cell.strip("*| ").split(" ")[0]) for cell in row[2:])
    assert half > 0 > twice


def test_tables_show_paired_differences(sensitivity, monkeypatch, tmp_path):
    entry = sensitivity.Entry("calibrators", "calibrators._variable.trust", "LEAST_UNITS", "toy")

    def figures(seed):
        return {"rows": float(entry.value + seed), "none": 0.0}

    study = sensitivity.Study(figures, range(5, 9), "a toy")
    monkeypatch.setattr(sensitivity, "STUDIES", {"toy": study})
    text = sensitivity.tables([entry], quick=False)
    assert "(seeds 5–8; a toy)" in text and "rows 11.500" in text
    assert "| `trust.LEAST_UNITS` | 5 | **-3.000 ± 0.000** | **+5.000 ± 0.000** | 0 | 0 |" in text
    page = tmp_path / "README.md"
    page.write_text(f"before\n{sensitivity.BEGIN}\nold\n{sensitivity.END}\nafter\n")
    sensitivity.write(page, text)
    found = page.read_text()
    assert found.startswith("before") and found.endswith("after\n") and "old" not in found


def test_figures_of_a_study_come_by_seed(sensitivity):
    study = sensitivity.Study(lambda seed: {"a": float(seed)}, range(3), "a toy")
    np.testing.assert_array_equal(sensitivity.measured(study, study.seeds)["a"], [0.0, 1.0, 2.0])
