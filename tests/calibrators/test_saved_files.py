"""Saved calibrators are read back bit for bit, and no other files are accepted."""

import json
import os

import numpy as np
import pytest

from cases.calibrators import binary, every, fitted, many
from varcal import load
from varcal._files.document import checksum
from varcal.calibrators import (
    BetaCalibrator,
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


@pytest.fixture(scope="module")
def tree():
    return TreeCalibrator(BetaCalibrator()).fit(*binary())


@pytest.fixture
def saved(tree, tmp_path):
    tree.save(tmp_path / "cal.json")
    return tmp_path / "cal.json"


def forged(path, change):
    """Alter a file and give it the right checksum, as an attacker would."""
    document = json.loads(path.read_text())
    change(document["calibrator"])
    document |= {"sha256": checksum(document)}
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update({"method": "os.system"}),
        lambda body: body["parameters"].update({"evil": 1}),
        lambda body: body["fitted"].update({"predict_proba": 1}),
        lambda body: body["fitted"].update({"tree": 3}),
        lambda body: body["fitted"].update({"classes": [1]}),
        lambda body: body["fitted"]["tree"].update({"class": "subprocess.Popen"}),
        lambda body: body["fitted"]["schema"].update({"names": {"eval": "1+1"}}),
        lambda body: body["fitted"]["classes"].update({"shape": [7]}),
        lambda body: body["fitted"]["classes"].update({"dtype": "datetime64"}),
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
