"""The presets reproduce the tables of the paper to the last digit."""

import numpy as np
import pandas as pd
import pytest

from varcal.calibrators import (
    AugmentedCalibrator,
    BetaCalibrator,
    DirichletCalibrator,
    PlattCalibrator,
    ScalingBinningCalibrator,
    TreeCalibrator,
)

N_CAL = {"adult": 2500, "bank": 1000, "cardio": 6000, "cifar": 2000}
VARIABLE = {"adult": "age", "bank": "age", "cardio": "age", "cifar": "median_rt"}
SPLITS: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {}


@pytest.fixture(scope="module")
def split(paper_data):
    """Return the paper's calibration and test rows of a data set."""
    return lambda name: _split(paper_data, name)


def _split(folder, name):
    if name not in SPLITS:
        frame = pd.read_csv(folder / f"{name}_out.csv.gz")
        if name == "cardio":
            frame = frame[frame["age"] > 32].reset_index(drop=True)
        chosen = np.random.RandomState(0).permutation(len(frame))[: N_CAL[name]]
        SPLITS[name] = frame.iloc[chosen], frame.drop(index=chosen)
    return SPLITS[name]


def probabilities(frame):
    columns = [c for c in frame.columns if c.startswith("prob_")]
    return frame[sorted(columns)].to_numpy()


def paper_error(binned, predicted_error, wrong):
    """Return the mean gap of two columns over equal-support bins of another, as in the paper."""
    codes = pd.qcut(np.asarray(binned), 10, labels=False, duplicates="drop")
    gaps = [
        abs(predicted_error[codes == k].mean() - wrong[codes == k].mean()) * (codes == k).mean()
        for k in np.unique(codes)
    ]
    return float(sum(gaps))


def calibrated(split, name, calibrator):
    cal, test = split(name)
    variable = VARIABLE[name]
    calibrator.fit(probabilities(cal), cal["actual"], cal[variable])
    return calibrator.predict_proba(probabilities(test), test[variable])


def ece_and_vece(split, name, q):
    test = split(name)[1]
    wrong = (test["pred"] != test["actual"]).to_numpy()
    predicted_error = 1 - q.max(axis=1)
    uncalibrated_error = 1 - probabilities(test).max(axis=1)
    return (
        paper_error(uncalibrated_error, predicted_error, wrong),
        paper_error(test[VARIABLE[name]], predicted_error, wrong),
    )


@pytest.mark.parametrize(
    ("name", "calibrator", "ece", "vece"),
    [
        ("adult", ScalingBinningCalibrator.paper(), 0.022690, 0.092475),
        ("adult", PlattCalibrator.paper(), 0.045728, 0.101286),
        ("adult", BetaCalibrator.paper(), 0.016461, 0.095932),
        ("adult", TreeCalibrator.paper("adult"), 0.016431, 0.021070),
        ("adult", AugmentedCalibrator.paper("adult"), 0.014867, 0.018750),
        ("bank", ScalingBinningCalibrator.paper(), 0.043683, 0.033872),
        ("bank", PlattCalibrator.paper(), 0.023803, 0.028295),
        ("bank", BetaCalibrator.paper(), 0.024818, 0.027715),
        ("bank", TreeCalibrator.paper("bank"), 0.020991, 0.005239),
        ("bank", AugmentedCalibrator.paper("bank"), 0.020922, 0.011254),
        ("cardio", ScalingBinningCalibrator.paper(), 0.024360, None),
        ("cardio", PlattCalibrator.paper(), 0.007422, 0.020397),
        ("cardio", BetaCalibrator.paper(), 0.027430, None),
        ("cifar", ScalingBinningCalibrator.paper(), 0.038268, 0.035962),
        ("cifar", DirichletCalibrator.paper(), 0.007885, 0.011205),
        ("cifar", TreeCalibrator.paper("cifar"), 0.011792, 0.008625),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value),
)
def test_tables(split, name, calibrator, ece, vece):
    found = ece_and_vece(split, name, calibrated(split, name, calibrator))
    assert found[0] == pytest.approx(ece, abs=2e-6)
    if vece is not None:
        assert found[1] == pytest.approx(vece, abs=2e-6)


@pytest.mark.parametrize(
    ("name", "calibrator", "accuracy"),
    [
        ("adult", BetaCalibrator.paper(), 0.790871),
        ("adult", TreeCalibrator.paper("adult"), 0.791017),
        ("bank", PlattCalibrator.paper(), 0.887217),
        ("bank", TreeCalibrator.paper("bank"), 0.886660),
        ("cifar", DirichletCalibrator.paper(), 0.968971),
        ("cifar", TreeCalibrator.paper("cifar"), 0.959186),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value),
)
def test_accuracy(split, name, calibrator, accuracy):
    q = calibrated(split, name, calibrator)
    truth = split(name)[1]["actual"].to_numpy()
    assert (q.argmax(axis=1) == truth).mean() == pytest.approx(accuracy, abs=2e-6)


@pytest.mark.parametrize(
    ("name", "cuts"),
    [
        ("adult", [23.5, 27.5, 31.5, 36.5, 53.5]),
        ("bank", [29.5, 59.5]),
        ("cifar", [1290.25, 1357.75, 1398.25, 1460.25, 1563.5, 1665.75]),
    ],
)
def test_cuts_of_the_tree(split, name, cuts):
    cal, _ = split(name)
    fit = TreeCalibrator.paper(name).fit(probabilities(cal), cal["actual"], cal[VARIABLE[name]])
    found, pending = [], [fit.tree_]
    while pending:
        node = pending.pop()
        if hasattr(node, "threshold"):
            found.append(node.threshold)
            pending += [node.left, node.right]
    assert sorted(found) == cuts


def test_scaling_binning_of_the_paper_does_not_normalize(split):
    q = calibrated(split, "cifar", ScalingBinningCalibrator.paper())
    assert q.sum(axis=1).min() < 0.1
    assert q.sum(axis=1).max() > 3
    assert calibrated(split, "cifar", ScalingBinningCalibrator()).sum(axis=1) == pytest.approx(1)
