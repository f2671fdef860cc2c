"""The common interface of all calibrators."""

import pickle
import subprocess
import sys
import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import varcal as vc
from cases.calibrators import ALL, binary, check_probabilities, every, fitted, many
from varcal import load
from varcal.calibrators import (
    AugmentedCalibrator,
    BetaCalibrator,
    DirichletCalibrator,
    HistogramCalibrator,
    PlattCalibrator,
    ScalingBinningCalibrator,
    ShiftCalibrator,
    TreeCalibrator,
    VariableCalibrator,
)
from varcal.exceptions import InputError, InSampleWarning, VarcalWarning


@every
@pytest.mark.parametrize("data", [binary, many])
def test_probabilities_classes_and_columns(calibrator, data):
    p, y, v = data()
    k = 2 if p.ndim == 1 else p.shape[1]
    fit = clone(calibrator)
    assert fit.fit(p, y, v) is fit
    check_probabilities(fit.predict_proba(p, v), len(y), k)
    assert fit.classes_.tolist() == list(range(k))
    assert fit.n_features_in_ == (1 if p.ndim == 1 else k)
    assert (fit.predict(p, v) == fit.classes_[fit.predict_proba(p, v).argmax(1)]).all()


@every
def test_both_forms_of_binary_scores_give_the_same_bits(calibrator):
    p, y, v = binary()
    one = fitted(calibrator, binary).predict_proba(p, v)
    fit = clone(calibrator).fit(np.column_stack([1 - p, p]), y, v)
    assert (one == fit.predict_proba(np.column_stack([1 - p, p]), v)).all()
    assert (one == fit.predict_proba(p[:, None], v)).all()
    assert fit.n_features_in_ == 2


@every
@pytest.mark.parametrize("data", [binary, many])
def test_labels_of_any_type_keep_their_columns(calibrator, data):
    p, y, v = data()
    numbers = fitted(calibrator, data)
    names = np.array(["a", "b", "c"])[y]
    words = clone(calibrator).fit(p, names, v)
    assert words.classes_.tolist() == sorted(set(names))
    assert (words.predict_proba(p, v) == numbers.predict_proba(p, v)).all()
    # Classes that are given decide the columns.
    order = ["z", "m", "a"][: len(set(y))]
    given = clone(calibrator).fit(p, np.array(order)[y], v, classes=order)
    assert given.classes_.tolist() == order
    assert (given.predict_proba(p, v) == numbers.predict_proba(p, v)).all()


@every
@pytest.mark.parametrize("data", [binary, many])
def test_an_integer_weight_is_repetition_and_zero_is_absence(calibrator, data):
    p, y, v = data(150)
    weight = np.random.default_rng(3).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = clone(calibrator).fit(p, y, v, sample_weight=weight).predict_proba(p, v)
    repeated = clone(calibrator).fit(p[rows], y[rows], v[rows]).predict_proba(p, v)
    assert weighted == pytest.approx(repeated, abs=1e-7)


@every
def test_clone_parameters_pickle_and_refit(calibrator):
    p, y, v = binary()
    fit = clone(calibrator).fit(p, y, v)
    first = fit.predict_proba(p, v)
    assert (pickle.loads(pickle.dumps(fit)).predict_proba(p, v) == first).all()
    other = binary(300, seed=9)
    fit.fit(*other)
    assert (fit.fit(p, y, v).predict_proba(p, v) == first).all()
    fresh = clone(fit)
    assert not hasattr(fresh, "classes_")
    assert repr(fresh) == repr(calibrator)
    parameters = fresh.get_params()
    assert fresh.set_params(**parameters).get_params() == parameters
    assert (fresh.fit(p, y, v).predict_proba(p, v) == first).all()


@every
def test_description_has_words_and_a_table(calibrator):
    shown = fitted(calibrator, many).describe()
    assert str(shown).startswith(type(calibrator).__name__)
    assert len(shown.to_frame()) == len(shown.to_dict()["rows"]) >= 1
    assert nw.from_native(shown.to_frame("polars")).shape == shown.to_frame().shape


@every
def test_unfitted_calibrators_raise(calibrator):
    message = f"{type(calibrator).__name__} instance is not fitted yet"
    with pytest.raises(NotFittedError, match=message):
        clone(calibrator).predict_proba([0.5])
    with pytest.raises(NotFittedError, match=message):
        clone(calibrator).describe()


@every
def test_bad_input_is_refused(calibrator):
    p, y, v = binary(50)
    fit = clone(calibrator)
    with pytest.raises(InputError, match="is outside"):
        fit.fit(p + 1, y, v)
    with pytest.raises(InputError, match="lengths differ"):
        fit.fit(p[1:], y, v)
    if not isinstance(fit, ShiftCalibrator):
        with pytest.raises(InputError, match="only the class 1"):
            fit.fit(p, np.ones(50, int), v)
    with pytest.raises(InputError, match=r"fit\(p, y, X\)"):
        fit.fit(y, p, v)
    fit.fit(p, y, v)
    with pytest.raises(InputError, match="3 classes, but the calibrator was fitted on 2"):
        fit.predict_proba(np.full((4, 3), 1 / 3), v[:4])
    with pytest.raises(InputError, match="p is empty"):
        fit.predict_proba([], v[:0])


@every
def test_a_class_without_rows_is_warned_of_and_stays_finite(calibrator):
    p, y, v = many(300, 4)
    kept = y != 2
    with pytest.warns(VarcalWarning, match="no row of class 2"):
        fit = clone(calibrator).fit(p[kept], y[kept], v[kept], classes=range(4))
    check_probabilities(fit.predict_proba(p, v), 300, 4)
    assert fit.classes_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("calibrator", "message"),
    [
        (PlattCalibrator(on="odds"), "on must be one of 'logit', 'probability'"),
        (PlattCalibrator(l2=-1), "l2 must be a number of at least 0; got -1"),
        (BetaCalibrator(parameters="abc"), "parameters must be one of"),
        (BetaCalibrator(clip="none"), "clip must be one of"),
        (BetaCalibrator(eps=0.7), "eps must lie between 0 and 0.5; got 0.7"),
        (HistogramCalibrator(n_bins=0), "n_bins must be an integer of at least 1; got 0"),
        (HistogramCalibrator(binning="equal"), "binning must be one of"),
        (ScalingBinningCalibrator(n_bins=2.5), "n_bins must be an integer"),
        (DirichletCalibrator(toward="one"), "toward must be one of"),
        (TreeCalibrator(max_depth=-1), "max_depth must be an integer of at least 0"),
        (TreeCalibrator(min_leaf=0.6), "min_leaf must lie between 0 and 0.5"),
        (TreeCalibrator(borrow=-1), "borrow must be a number"),
        (TreeCalibrator("beta"), "calibrator must be a calibrator of varcal"),
        (TreeCalibrator(AugmentedCalibrator()), "must use the score alone"),
        (AugmentedCalibrator(TreeCalibrator()), "must be BetaCalibrator or PlattCalibrator"),
        (AugmentedCalibrator(degree=0), "degree must be an integer of at least 1"),
        (VariableCalibrator(trees="no"), "trees must be one of True, False; got 'no'"),
        (VariableCalibrator(monotone="yes"), "monotone must be one of"),
        (VariableCalibrator(max_shift=-0.1), "max_shift must lie between 0 and 1"),
        (VariableCalibrator(max_shift="a"), "max_shift must lie between 0 and 1"),
    ],
    ids=lambda value: repr(value) if hasattr(value, "fit") else "",
)
def test_parameters_are_checked_when_fitted(calibrator, message):
    with pytest.raises(InputError, match=message):
        calibrator.fit(*binary(50))


scores = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 1e-300, 5e-324, 1e-16, 1 - 2**-53])
)


@settings(max_examples=15)
@given(rows=st.lists(st.tuples(scores, st.booleans(), st.floats(-5, 5)), min_size=2, max_size=30))
@pytest.mark.filterwarnings("ignore::varcal.exceptions.VarcalWarning")
def test_any_scores_give_probabilities(rows):
    p, y, v = (np.array(column) for column in zip(*rows, strict=True))
    if y.all() or not y.any():
        return
    for calibrator in ALL:
        fit = clone(calibrator).fit(p, y, v)
        check_probabilities(fit.predict_proba(p, v), len(y), 2)


def in_sample_warnings(fit, *given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit.predict_proba(*given)
    return [one for one in caught if one.category is InSampleWarning]


def test_the_rows_of_the_fit_are_recognized_in_any_order_and_no_others(tmp_path):
    p, y, v = binary()
    fit = TreeCalibrator().fit(p, y, v)
    (warning,) = in_sample_warnings(fit, p, v)
    assert str(warning.message).startswith("these are the rows that this TreeCalibrator was fitted")
    assert warning.filename == __file__
    shuffled = np.random.default_rng(0).permutation(len(p))
    assert in_sample_warnings(fit, p[shuffled], v[shuffled])
    fresh = binary(seed=2)
    for other in ((fresh[0], fresh[2]), (p, v + 1), (p, v[::-1])):
        assert not in_sample_warnings(fit, *other)
    fit.save(tmp_path / "cal.json")
    assert not in_sample_warnings(load(tmp_path / "cal.json"), p, v)
    p, y, _ = many()
    fit = DirichletCalibrator().fit(p, y)
    assert in_sample_warnings(fit, p) and not in_sample_warnings(fit, p[:, ::-1])


def test_columns_of_scores_keep_their_names():
    p, y, _ = binary()
    frame = pd.DataFrame({"no": 1 - p, "yes": p})
    fit = BetaCalibrator().fit(frame, y)
    with pytest.raises(InputError, match="the calibrator was fitted on"):
        fit.predict_proba(frame[["yes", "no"]])


@every
@pytest.mark.parametrize("data", [binary, many])
def test_the_same_bits_come_back_from_a_file(calibrator, data, tmp_path):
    p, _, v = data()
    fit = fitted(calibrator, data)
    fit.save(tmp_path / "cal.json")
    again = load(tmp_path / "cal.json")
    assert type(again) is type(fit) and repr(again) == repr(fit)
    assert (again.predict_proba(p, v) == fit.predict_proba(p, v)).all()
    assert str(again.describe()) == str(fit.describe())
    again.save(tmp_path / "twice.json")
    assert (tmp_path / "twice.json").read_bytes() == (tmp_path / "cal.json").read_bytes()


def test_predictions_of_a_loaded_calibrator_load_no_scikit_learn(tmp_path):
    TreeCalibrator().fit(*binary()).save(tmp_path / "cal.json")
    code = (
        f"import sys, varcal; fit = varcal.load({str(tmp_path / 'cal.json')!r});"
        "fit.predict_proba([0.3], [[1, 2]]); assert not {'sklearn', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logits_are_taken_as_their_probabilities(n_classes):
    rng = np.random.default_rng(3)
    z = rng.normal(size=(600, n_classes))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random(600)[:, None]).sum(axis=1)
    X = {"v": z[:, 0]}
    if n_classes == 2:
        z, p = z[:, 1] - z[:, 0], p[:, 1]
    old, new = {"v": X["v"][:300]}, {"v": X["v"][300:]}
    for method in (
        vc.calibrators.BetaCalibrator,
        vc.calibrators.TemperatureCalibrator,
        vc.VariableCalibrator,
    ):
        of_logits = method().fit(z[:300], y[:300], old, from_logits=True)
        found = of_logits.predict_proba(z[300:], new, from_logits=True)
        wanted = method().fit(p[:300], y[:300], old).predict_proba(p[300:], new)
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    with pytest.raises(InputError, match="if these are logits, pass from_logits=True"):
        vc.calibrators.BetaCalibrator().fit(3 * z, y)


def test_a_text_that_no_file_can_hold_is_refused(tmp_path):
    p, y, _ = binary()
    model = vc.calibrators.TreeCalibrator().fit(p, y, {"kind": ["a", "half \ud800"] * 200})
    with pytest.raises(InputError, match=r"not valid Unicode: .*half \\ud800"):
        model.save(tmp_path / "model.json")
    assert not any(tmp_path.iterdir())


def test_a_class_that_is_not_ours_is_not_saved(tmp_path):
    class Mine(BetaCalibrator):
        pass

    p, y, _ = binary()
    with pytest.raises(InputError, match="Mine cannot be saved"):
        Mine().fit(p, y).save(tmp_path / "cal.json")
    assert not list(tmp_path.iterdir())
