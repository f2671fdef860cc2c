"""Files that someone changed on purpose, with a checksum that matches again.

What loads must work: predict probabilities, report, add up. Anything else is refused by an error of
varcal, in a time and a memory that the size of the file bounds.
"""

import json
import os
import tracemalloc
import warnings
from random import Random

import numpy as np
import pytest

import varcal as vc
from torture.forged_files import at, forged, sealed
from torture.mutate import mutated
from torture.saved_results import rows, saved_results
from varcal._files import document
from varcal._files.document import BrokenError, parsed
from varcal._files.load import load_kind
from varcal.exceptions import InputError, VarcalError

# Of each kind of file; `make torture` forges thousands of each.
TIMES = 12


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    return {one.name: one for one in saved_results(folder)}


def outcome(one, data):
    """Load a file and use what it holds; return what happened."""
    one.path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = one.load(one.path)
        except VarcalError:
            return "refused"
        try:
            one.use(found)
        except VarcalError:
            return "refused when used"
    return "used"


def attack(saved, seed):
    counts, problems = {}, []
    for one in saved.values():
        rng = Random(f"{one.name} {seed}")
        files = [forged(one.text, rng) for _ in range(TIMES)]
        files += [("bytes", mutated(rng, one.text.encode())) for _ in range(TIMES // 4)]
        for done, data in files:
            try:
                found = outcome(one, data)
            except Exception as error:
                found = "raw"
                problems.append(f"{one.name}: {type(error).__name__}: {error} after {done[:200]}")
            counts[found] = counts.get(found, 0) + 1
    return counts, problems


def test_forged_files_are_refused_or_work(saved):
    counts, problems = attack(saved, seed=20)
    assert not problems, "\n".join(problems)
    assert sum(counts.values()) == (TIMES + 3) * len(saved)
    assert counts["refused"] > 4 * counts["used"] > 0


def test_valid_files_load_and_are_the_same_every_time(saved, tmp_path):
    for one in saved.values():
        one.path.write_text(one.text)
        found = one.load(one.path)
        one.use(one.load(one.path))
        if hasattr(found, "save"):
            found.save(tmp_path / "again.json")
            assert (tmp_path / "again.json").read_text() == one.text, one.name
            (tmp_path / "again.json").unlink()


def test_an_array_takes_no_more_memory_than_its_bytes(saved):
    one = saved["VariableCalibrator 2"]
    entry = {"dtype": "float64", "shape": [0, 16_000, 16_000], "triangle": True, "base64": ""}
    for shape in ([0, 16_000, 16_000], [16_000, 16_000], [10**12], [1] * 40, [-1], [2.0], ["x"]):
        changed = json.loads(one.text)
        changed["calibrator"]["fitted"]["model"]["full"]["covariance"] = entry | {"shape": shape}
        one.path.write_bytes(sealed(changed))
        tracemalloc.start()
        with pytest.raises(InputError, match="is not a saved calibrator"):
            vc.load(one.path)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 30_000_000


def test_the_budget_is_checked_before_a_file_is_parsed(tmp_path, monkeypatch):
    with pytest.raises(BrokenError, match="nested deeper than 150 levels"):
        parsed(b"[" * 151 + b"]" * 151)
    assert parsed(b'{"a": "' + b"[" * 1000 + b'"}') == {"a": "[" * 1000}
    with pytest.raises(BrokenError, match="not complete JSON"):
        parsed(b'{"a": "' + b'\\"' * 100_000)
    monkeypatch.setattr(document, "MOST_VALUES", 100)
    with pytest.raises(BrokenError, match="more than 100 values"):
        parsed(b"[" + b"1," * 100 + b"1]")
    monkeypatch.setattr(document, "MOST_BYTES", 100)
    (tmp_path / "long.json").write_text(" " * 101)
    with pytest.raises(InputError, match="more than 100 bytes"):
        vc.load(tmp_path / "long.json")


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


def test_a_probability_from_a_file_is_checked_when_it_is_given(tmp_path):
    p, y, _ = rows()
    path = tmp_path / "steps.json"
    vc.calibrators.HistogramCalibrator(n_bins=50, binning="uniform").fit(p, y).save(path)
    changed = json.loads(path.read_text())
    values = changed["calibrator"]["fitted"]["maps"][0]["values"]["values"]
    values[20] = 7.0
    path.write_bytes(sealed(changed))
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
    changed = json.loads(one.text)
    changed["calibrator"]["fitted"]["maps"].pop()
    one.path.write_bytes(sealed(changed))
    again = vc.load(one.path)
    for use in (lambda: again.predict_proba(p, v), again.describe):
        with pytest.raises(InputError, match=r"loaded from is inconsistent \(ValueError\)"):
            use()


def test_an_error_in_a_loaded_calibrator_names_the_file(saved, monkeypatch):
    one = saved["VariableCalibrator 2"]
    one.path.write_text(one.text)
    again, (p, y, v) = one.load(one.path), rows()
    fitted = vc.VariableCalibrator().fit(p, y, v)

    def broken(*_, **__):
        raise IndexError(7)

    monkeypatch.setattr(type(again.model_), "error", broken)
    with pytest.raises(InputError, match=r"loaded from is inconsistent \(IndexError\)"):
        again.predict_interval(p, v)
    with pytest.raises(IndexError):
        fitted.predict_interval(p, v)


WITH_TREES = "VariableCalibrator with trees"
MODEL = ("calibrator", "fitted", "model")
TREES = (*MODEL, "trees")


@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("slices", ("slices", 0, "conditions"), [], "a slice has no conditions"),
        ("audit", ("rows", 0, "high"), 1e308, "a figure of a variable is too large"),
        ("collected", ("bins", "part", "classes", 0), {}, "it holds unknown entries"),
        (WITH_TREES, (*MODEL, "tree_share"), 1.5, r"it\.model"),
        (WITH_TREES, (*MODEL, "shift"), {"float": "inf"}, r"it\.model"),
        (WITH_TREES, (*MODEL, "of_trees"), [], r"it\.model"),
        (WITH_TREES, (*TREES, "cells"), [], r"it\.model"),
        (WITH_TREES, (*MODEL, "first", "variables"), [], r"it\.model"),
        (
            "TreeCalibrator 2",
            ("calibrator", "fitted", "leaves", 0, "fitted", "separated"),
            "yes",
            r"it\.leaves\.separated is not a bool",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong(saved, name, place, value, said):
    one = saved[name]
    changed = json.loads(one.text)
    at(changed, place[:-1])[place[-1]] = value
    one.path.write_bytes(sealed(changed))
    with pytest.raises(InputError, match=said):
        one.load(one.path)


def test_kinds_are_told_apart(saved):
    for one in saved.values():
        one.path.write_text(one.text)
    with pytest.raises(InputError, match="is not a saved audit: it is a saved monitor"):
        load_kind(saved["monitor"].path, "audit")
    with pytest.raises(InputError, match="calibrator: it is a saved calibrated classifier"):
        load_kind(saved["classifier"].path, "calibrator")


@pytest.mark.parametrize(
    ("format", "said"), [(4, r"a later varcal \(9\)"), (0, "an earlier varcal")]
)
def test_other_formats_are_refused(saved, format, said):
    one = saved["audit"]
    one.path.write_text(json.dumps(json.loads(one.text) | {"format": format, "varcal": "9"}))
    with pytest.raises(InputError, match=f"was written by {said}"):
        vc.load(one.path)
