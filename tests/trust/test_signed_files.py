"""Signed files: whoever has the key sees every change; files of earlier formats still load."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import varcal as vc
from varcal._saved.document import LEAST_KEY_BYTES
from varcal.exceptions import InputError

KEY = "correct horse battery staple"
EARLIER = Path(__file__).parent / "earlier_formats"


@pytest.fixture(scope="module")
def results():
    sim = vc.datasets.make_gap(300, random_state=1)
    frame = {"y": sim.y, "p": sim.p, "age": sim.v}
    bins = vc.make_bins("y", "p", data=frame, monitor=0.02)
    X = np.column_stack([sim.p, sim.v])
    model = vc.VariableCalibratedClassifier(
        LogisticRegression(), variables=[1], calibrator=vc.TreeCalibrator(max_depth=1), cv=2
    ).fit(X, sim.y)

    def load_classifier(path, key=None):
        return vc.VariableCalibratedClassifier.load(path, estimator=model.estimator_, key=key)

    return {
        "calibrator.json": (vc.PlattCalibrator().fit(sim.p, sim.y), vc.load_calibrator),
        "classifier.json": (model, load_classifier),
        "audit.json": (vc.audit(sim.y, sim.p, {"v": sim.v}), vc.load_audit),
        "collected.json": (vc.collect(frame, bins), vc.load_collected),
        "collected.parquet": (vc.collect(frame, bins), vc.load_collected),
        "monitor.json": (vc.Monitor(bins), vc.load_monitor),
    }


NAMES = ["calibrator.json", "classifier.json", "audit.json", "collected.json",
         "collected.parquet", "monitor.json"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_key_is_asked_of_signed_files_only_if_one_is_given(results, name, tmp_path):
    result, load = results[name]
    path = tmp_path / name
    result.save(path, key=KEY)
    load(path, key=KEY)
    load(path, key=KEY.encode())
    load(path)
    with pytest.raises(InputError, match="does not match the key: it was changed, or signed with"):
        load(path, key=KEY[::-1])
    assert KEY not in path.read_bytes().decode("latin-1")
    path.unlink()
    result.save(path)
    with pytest.raises(InputError, match="it is not signed, and a key is given"):
        load(path, key=KEY)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("json")])
def test_a_changed_file_with_a_new_checksum_is_found_by_the_key(results, name, tmp_path):
    from varcal._saved.document import Kind

    result, load = results[name]
    path = tmp_path / name
    result.save(path, key=KEY)
    changed = json.loads(path.read_text())
    changed["varcal"] = "0.0.1"
    kind = Kind("", "", "", 1, 1)
    path.write_text(json.dumps(changed | kind.seals(changed, None)))
    load(path)  # nobody sees it without the key
    with pytest.raises(InputError, match="does not match the key"):
        load(path, key=KEY)


def test_sums_of_a_parquet_file_have_a_checksum(results, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    result, load = results["collected.parquet"]
    path = tmp_path / "sums.parquet"
    result.save(path, key=KEY)
    table = parquet.read_table(path)
    column = table.column("hit").to_numpy().copy()
    column[0] += 1
    changed = table.set_column(table.column_names.index("hit"), "hit", pa.array(column))
    parquet.write_table(changed, path)
    for key in (None, KEY):
        with pytest.raises(InputError, match="its sums do not match their checksum"):
            load(path, key=key)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("json")])
def test_damage_is_found_by_the_checksum(results, name, tmp_path):
    result, load = results[name]
    path = tmp_path / name
    result.save(path)
    text = path.read_text()
    assert '"varcal":"' in text
    path.write_text(text.replace('"varcal":"', '"varcal":"x'))
    with pytest.raises(InputError, match="its contents do not match its checksum"):
        load(path)


@pytest.mark.parametrize(
    "key", ["", "short", b"x" * (LEAST_KEY_BYTES - 1), 5, ["x" * 20], "\ud800" * 20]
)
def test_poor_keys_are_refused_without_showing_them(results, key, tmp_path):
    with pytest.raises(InputError, match="key must be a string or bytes of at least 16") as caught:
        results["calibrator.json"][0].save(tmp_path / "x.json", key=key)
    assert not key or str(key) not in str(caught.value)
    assert not (tmp_path / "x.json").exists()


def test_a_signature_is_not_lost_by_an_update(results, tmp_path):
    monitor, path = results["monitor.json"][0], tmp_path / "monitor.json"
    monitor.save(path, key=KEY)
    with pytest.raises(InputError, match="is signed, and would no longer be"):
        monitor.save(path)
    monitor.save(path, key=KEY)


def test_files_of_earlier_formats_load():
    calibrator = vc.load_calibrator(EARLIER / "calibrator.json")
    assert calibrator.predict_proba([0.3], {"age": [25]}).shape == (1, 2)
    audit = vc.load_audit(EARLIER / "audit.json")
    assert [row.variable for row in audit] == ["age"]
    collected = vc.load_collected(EARLIER / "collected.json")
    assert len(collected) == 80
    monitor = vc.load_monitor(EARLIER / "monitor.json")
    assert monitor.n_batches == 1
    for load, name in [
        (vc.load_calibrator, "calibrator"),
        (vc.load_audit, "audit"),
        (vc.load_collected, "collected"),
        (vc.load_monitor, "monitor"),
    ]:
        with pytest.raises(InputError, match="it is not signed, and a key is given"):
            load(EARLIER / f"{name}.json", key=KEY)


def test_a_classifier_of_an_earlier_format_loads():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.random(80), rng.integers(20, 30, 80)])
    model = LogisticRegression().fit(X, rng.random(80) < X[:, 0])
    model.classes_ = np.array([0, 1])
    again = vc.VariableCalibratedClassifier.load(EARLIER / "classifier.json", estimator=model)
    assert again.predict_proba(X).shape == (80, 2)
