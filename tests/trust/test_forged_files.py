"""Files that someone changed on purpose, with a checksum that matches again.

What loads must work: predict probabilities, report, add up. Anything else is refused by an error of
varcal, in a time and a memory that the size of the file bounds.
"""

import json
import os
import tracemalloc
from random import Random

import numpy as np
import pytest

import varcal as vc
from torture.forged_files import at, forged, sealed
from torture.mutate import mutated
from torture.saved_results import rows, saved_results
from varcal.exceptions import InputError, VarcalError

# Of each kind of file; `make torture` forges thousands of each.
TIMES = 12
WITH_TREES = "VariableCalibrator with trees"
MODEL = ("calibrator", "fitted", "model")
TREES = (*MODEL, "trees")
LEAF = ("calibrator", "fitted", "leaves", 0, "fitted", "separated")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    return {one.name: one for one in saved_results(folder)}


def changed_file(one, *changes):
    """Write a file in which some places have other values, and a checksum that matches."""
    document = json.loads(one.text)
    for place, value in changes:
        at(document, place[:-1])[place[-1]] = value
    one.path.write_bytes(sealed(document))
    return one.path


@pytest.mark.filterwarnings("ignore")
def test_forged_files_are_refused_or_work(saved):
    found = []
    for one in saved.values():
        rng = Random(f"{one.name} 20")
        files = [forged(one.text, rng) for _ in range(TIMES)]
        files += [("bytes", mutated(rng, one.text.encode())) for _ in range(TIMES // 4)]
        for done, data in files:
            one.path.write_bytes(data)
            try:
                one.use(one.load(one.path))
                found.append("used")
            except VarcalError:
                found.append("refused")
            except Exception as error:
                pytest.fail(f"{one.name}: {type(error).__name__}: {error} after {done[:200]}")
    assert found.count("refused") > 4 * found.count("used") > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 151 + "]" * 151, "nested deeper than 150 levels"),
        ('{"a": "' + "[" * 1000 + '"}', "it was not written by varcal"),
        ('{"a": "' + '\\"' * 100_000, "not complete JSON"),
        ("[" + "1," * 100 + "1]", "more than 100 values"),
        (" " * 1_000_000, "more than 900,000 bytes"),
    ],
)
def test_the_budget_is_checked_before_a_file_is_parsed(text, said, tmp_path, monkeypatch):
    monkeypatch.setattr("varcal._files.saved.MOST_VALUES", 1_100 if "[[" in text else 100)
    monkeypatch.setattr("varcal._files.saved.MOST_BYTES", 900_000)
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(InputError, match=said):
        vc.load(tmp_path / "file.json")


@pytest.mark.parametrize(
    "text",
    ["", "NaN", "\x80\x04K\x01.", "{" * 100_000, "null", "[]",
     "{}", "1e999", '{"format": 1e999}', '{"format": 3}', '{"format": 2}',
     '{"format": [3]}', '{"format": 10000000000000000000000000, "varcal": []}',
     '{"kind": "calibrator", "format": 2}', "\ufeff{}", '{"kind": ["audit"], "format": 3}',
     '{"format": 4, "kind": "audit", "sha256": null}', '{"kind": "\\ud800"}'],
)  # fmt: skip
def test_texts_that_are_nothing_are_refused(text, tmp_path):
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"file\.json"):
        vc.load(path)


def test_special_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for path in ("/dev/zero", "/dev/null", str(tmp_path / "pipe.json"), tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            vc.load(path)


def test_probabilities_from_a_file_are_checked_when_they_are_given(saved, tmp_path):
    p, y, _ = rows()
    path = tmp_path / "steps.json"
    vc.calibrators.HistogramCalibrator(n_bins=50, binning="uniform").fit(p, y).save(path)
    text = json.loads(path.read_text())
    text["calibrator"]["fitted"]["maps"][0]["heights"]["values"][20] = 7.0
    path.write_bytes(sealed(text))
    again = vc.load(path)
    assert again.read_from_file
    again.predict_proba([0.1])
    with pytest.raises(InputError, match=r"loaded from is inconsistent \(no probabilities\)"):
        again.predict_proba(np.linspace(0, 1, 101))
    again.fit(p, y)
    assert not again.read_from_file


def test_maps_that_are_too_few_are_refused_when_they_are_used(saved):
    """Found by forging: the probabilities of the other classes were whatever memory held."""
    one, (p, _, v) = saved["HistogramCalibrator 3"], rows(k=3)
    maps = json.loads(one.text)["calibrator"]["fitted"]["maps"]
    again = vc.load(changed_file(one, (("calibrator", "fitted", "maps"), maps[:-1])))
    for use in (lambda: again.predict_proba(p, v), again.describe):
        with pytest.raises(InputError, match=r"loaded from is inconsistent \(ValueError\)"):
            use()


def test_sums_whose_rows_moved_to_the_other_side_are_refused(saved, tmp_path):
    """Found by forging: every table had all rows, but not the same ones on a side of the claim."""
    one = saved["collected"]
    one.path.write_text(one.text)
    found = vc.load(one.path)
    found.save(tmp_path / "same.json")
    assert (tmp_path / "same.json").read_text() == one.text
    tables = zip(found.plan.wanted, found.tables, strict=True)
    table = next(sums for wanted, sums in tables if wanted.names == ("job",))
    for side, moved in ((0, -1), (1, 1)):  # the number of rows and their weight
        table[:2, side, table[0, side].argmax()] += moved
    found.save(tmp_path / "moved.json")
    with pytest.raises(InputError, match="is not a file of collected statistics"):
        vc.load(tmp_path / "moved.json")


@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("slices", ("slices", 0, "conditions"), [], "a slice has no conditions"),
        ("audit", ("rows", 0, "high"), 1e308, "a figure of a variable is too large"),
        ("audit", ("format",), 4, "was written by a later varcal"),
        ("audit", ("format",), 0, "was written by an earlier varcal"),
        ("collected", ("bins", "part", "classes", 0), {}, r"classes\[0\] holds unknown"),
        (WITH_TREES, (*MODEL, "tree_share"), 1.5, r"it\.model"),
        (WITH_TREES, (*MODEL, "shift"), {"float": "inf"}, r"it\.model"),
        (WITH_TREES, (*MODEL, "of_trees"), [], r"it\.model"),
        (WITH_TREES, (*TREES, "cells"), [], r"it\.model"),
        (WITH_TREES, (*MODEL, "first", "variables"), [], r"it\.model"),
        ("TreeCalibrator 2", LEAF, "yes", r"it\.leaves\[0\]\.separated is not a bool"),
    ],
)
def test_a_refusal_says_what_is_wrong(saved, name, place, value, said):
    with pytest.raises(InputError, match=said):
        vc.load(changed_file(saved[name], (place, value)))


@pytest.mark.parametrize(
    "shape", [[0, 16_000, 10**12], [16_000, 16_000], [10**12], [1] * 40, [-1], [2.0], ["x"]]
)
@pytest.mark.parametrize("held", [{"base64": ""}, {"values": []}])
def test_an_array_takes_no_more_memory_than_its_bytes(saved, shape, held):
    entry = {"dtype": "float64", "shape": shape, **held}
    path = changed_file(saved["VariableCalibrator 2"], ((*MODEL, "full", "covariance"), entry))
    tracemalloc.start()
    with pytest.raises(InputError, match="is not a saved calibrator"):
        vc.load(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 30_000_000
