"""Saved calibrators are read back bit for bit, and no other files are accepted."""

import json
import os

import numpy as np
import pytest

from cases.calibrators import binary, every, fitted, many
from varcal import load
from varcal._saved.document import checksum
from varcal.calibrators import (
    BetaCalibrator,
    PlattCalibrator,
    TreeCalibrator,
)
from varcal.exceptions import InputError


@every
@pytest.mark.parametrize("data", [binary, many])
def test_the_same_bits_come_back(calibrator, data, tmp_path):
    p, _, v = data()
    fit = fitted(calibrator, data)
    fit.save(tmp_path / "cal.json")
    again = load(tmp_path / "cal.json")
    assert type(again) is type(fit)
    assert (again.predict_proba(p, v) == fit.predict_proba(p, v)).all()
    assert repr(again) == repr(fit)
    assert again.classes_.tolist() == fit.classes_.tolist()
    assert again.classes_.dtype == fit.classes_.dtype
    assert again.n_features_in_ == fit.n_features_in_
    assert str(again.describe()) == str(fit.describe())
    again.save(tmp_path / "twice.json")
    assert (tmp_path / "twice.json").read_bytes() == (tmp_path / "cal.json").read_bytes()


@pytest.mark.parametrize("labels", [[False, True], ["n", "y"], [3, 8], [0, 1]])
def test_labels_of_every_kind_survive(labels, tmp_path):
    p, y, _ = binary()
    fit = BetaCalibrator().fit(p, np.array(labels)[y])
    fit.save(tmp_path / "cal.json")
    assert load(tmp_path / "cal.json").predict(p).tolist() == fit.predict(p).tolist()


def test_mixed_labels_survive(tmp_path):
    p, y, _ = binary()
    fit = BetaCalibrator().fit(p, y)
    fit.classes_ = np.array([0, "one"], dtype=object)
    fit.save(tmp_path / "cal.json")
    assert load(tmp_path / "cal.json").classes_.tolist() == [0, "one"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    p, y, _ = binary()
    PlattCalibrator().fit(p, y).save(tmp_path / "cal.json")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match=r"cannot write .*No space left"):
        BetaCalibrator().fit(p, y).save(tmp_path / "cal.json")
    monkeypatch.undo()
    assert isinstance(load(tmp_path / "cal.json"), PlattCalibrator)
    assert os.listdir(tmp_path) == ["cal.json"]


def test_a_missing_folder_is_reported(tmp_path):
    p, y, _ = binary()
    with pytest.raises(InputError, match="cannot write"):
        BetaCalibrator().fit(p, y).save(tmp_path / "no" / "cal.json")
    with pytest.raises(InputError, match="cannot read"):
        load(tmp_path / "no.json")
    with pytest.raises(InputError, match="cannot read"):
        load(tmp_path)


@pytest.fixture(scope="module")
def tree():
    return TreeCalibrator(BetaCalibrator()).fit(*binary())


@pytest.fixture
def saved(tree, tmp_path):
    tree.save(tmp_path / "cal.json")
    return tmp_path / "cal.json"


def test_a_changed_digit_is_noticed(saved):
    document = json.loads(saved.read_text())
    leaf = document["calibrator"]["state"]["leaves_"][0]
    leaf["state"]["maps_"][0]["fields"]["a"] += 1e-9
    saved.write_text(json.dumps(document))
    with pytest.raises(InputError, match="do not match its checksum"):
        load(saved)


def forged(path, change):
    """Alter a file and give it the right checksum, as an attacker would."""
    document = json.loads(path.read_text())
    change(document["calibrator"])
    document |= {"sha256": checksum(document)}
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update({"$calibrator": "os.system"}),
        lambda body: body["parameters"].update({"evil": 1}),
        lambda body: body["state"].update({"predict_proba": 1}),
        lambda body: body["state"].update({"tree_": 3}),
        lambda body: body["state"].update({"classes_": [1]}),
        lambda body: body["state"]["tree_"].update({"$part": "subprocess.Popen"}),
        lambda body: body["state"]["schema_"]["fields"].update({"names": {"$eval": "1+1"}}),
        lambda body: body["state"]["classes_"].update({"shape": [7]}),
        lambda body: body["state"]["classes_"].update({"$array": "datetime64"}),
        lambda body: body.clear(),
    ],
)
def test_forged_files_run_nothing_and_get_one_clear_error(saved, change):
    forged(saved, change)
    with pytest.raises(InputError, match="is not a saved"):
        load(saved)


def test_a_class_that_is_not_ours_is_not_saved(tmp_path):
    class Mine(BetaCalibrator):
        pass

    p, y, _ = binary()
    with pytest.raises(InputError, match="Mine cannot be saved"):
        Mine().fit(p, y).save(tmp_path / "cal.json")
    assert os.listdir(tmp_path) == []


def test_labels_without_a_json_form_are_refused(tmp_path):
    p, y, _ = binary()
    fit = BetaCalibrator().fit(p, y)
    fit.classes_ = np.array([(0, 1), None], dtype=object)
    fit.classes_[1] = {1}
    with pytest.raises(InputError, match="cannot be saved"):
        fit.save(tmp_path / "cal.json")
