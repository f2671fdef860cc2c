"""Every parameter of every public function with values that nobody should pass.

Either the call works, or it ends with an error of varcal that names the argument. Public names are
found from `varcal.__all__`, so that new ones are walked without an entry here.
"""

import traceback
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import varcal as vc
from cases.hostile_values import MAKERS
from cases.public_calls import N, calls
from varcal.exceptions import InputError, VarcalError, VarcalWarning

#: What a classifier of scikit-learn passes on to its estimator and to scikit-learn's own checks.
PASSED_ON = ("X", "y", "sample_weight", "groups")


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("public")
        patch.chdir(folder)
        yield calls(folder)


def problem_of(call, parameter, value):
    """Call with one hostile value; return what is wrong with the outcome, or an empty string."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", VarcalWarning)
        try:
            found = call.with_value(parameter, value)
        except VarcalError as error:
            return "" if str(error).strip() else "an error without a message"
        except Exception as error:
            if call.name.startswith("VariableCalibratedClassifier.") and parameter in PASSED_ON:
                return "" if raised_by_sklearn(error) else f"{type(error).__name__}: {error}"
            return f"{type(error).__name__}: {error}"
    if isinstance(found, np.ndarray) and found.dtype.kind == "f":
        fine = np.isfinite(found).all() and (found >= 0).all() and (found <= 1).all()
        return "" if fine else "invalid probabilities"
    return ""


def raised_by_sklearn(error):
    """Tell whether scikit-learn, or the user's model, refused rows with an error of its own."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return not Path(last).is_relative_to(Path(vc.__file__).parent)


def walk(some, makers):
    problems, tried = [], 0
    for call in some:
        for parameter in call.parameters:
            for name, make in makers(call, parameter):
                tried += 1
                value = make()
                problem = problem_of(call, parameter, value)
                if hasattr(value, "close"):
                    value.close()
                if problem:
                    problems.append(f"{call.name}({parameter}={name}): {problem[:200]}")
            plt.close("all")
    return problems, tried


def test_only_clear_errors_come_out(public):
    # Every value meets every kind of parameter, but not every parameter of every class.
    def some(call, parameter):
        start = sum(map(ord, call.name + parameter))
        return [one for k, one in enumerate(MAKERS.items()) if (k + start) % 8 == 0]

    problems, tried = walk(public, some)
    assert not problems, f"{len(problems)} of {tried}:\n" + "\n".join(problems)


RNG = np.random.default_rng(0)
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
MOST_BINS = 100_000
LARGE = [
    ("n_bins", lambda n: vc.vece(Y, P, P, n_bins=n), MOST_BINS),
    ("n_bins", lambda n: vc.ece(Y, P, n_bins=n, binning="uniform"), MOST_BINS),
    ("n_bins", lambda n: vc.audit(Y, P, {"v": P}, n_bins=n), MOST_BINS),
    ("n_bins", lambda n: vc.calibrators.HistogramCalibrator(n_bins=n).fit(P, Y), MOST_BINS),
    ("n_bins", lambda n: vc.calibrators.ScalingBinningCalibrator(n_bins=n).fit(P, Y), MOST_BINS),
    ("n_bins", lambda n: vc.rows_needed(0.1, n_bins=n), MOST_BINS),
    ("n_bins", lambda n: vc.datasets.make_gap(9).vece_in_bins(n), 10_000),
    ("max_depth", lambda n: vc.calibrators.TreeCalibrator(max_depth=n).fit(P, Y, P), 64),
    ("degree", lambda n: vc.calibrators.AugmentedCalibrator(degree=n).fit(P, Y, P), 20),
    ("n", lambda n: vc.datasets.make_gap(n), 100_000_000),
]


@pytest.mark.parametrize(("argument", "call", "most"), LARGE)
@pytest.mark.parametrize("times", [10, 10**21])
def test_every_size_has_a_bound(argument, call, most, times):
    with pytest.raises(InputError, match=argument) as caught:
        call(most * times)
    assert caught.value.argument == argument and caught.value.hint


def test_numbers_of_numpy_are_those_of_python():
    # int8 would overflow at 2 · n_bins + 1.
    small = vc.audit(Y, P, {"v": P}, n_bins=np.int8(100), level=np.float32(0.5), ladder="none")
    plain = vc.audit(Y, P, {"v": P}, n_bins=100, level=0.5, ladder="none")
    assert small.to_dict() == plain.to_dict()
