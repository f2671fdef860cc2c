"""Series and frames of pandas are paired by position, and never against their labels."""

import warnings

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from varcal.exceptions import InputError, VarcalWarning

N = 300
RNG = np.random.default_rng(1)
P = pd.Series(RNG.random(N), name="p")
Y = (RNG.random(N) < P).astype(int)
X = pd.DataFrame({"age": RNG.normal(size=N), "sex": RNG.choice(["f", "m"], N)})
W = pd.Series(RNG.random(N) + 0.5)
ORDER = RNG.permutation(N)
CALLS = {
    "ece": lambda y, p, X, w: vc.ece(y, p, sample_weight=w),
    "vece": lambda y, p, X, w: vc.vece(y, p, X["age"], sample_weight=w),
    "curve": lambda y, p, X, w: vc.curve(y, p, X["age"], sample_weight=w),
    "audit": lambda y, p, X, w: vc.audit(y, p, X, sample_weight=w, ladder="none"),
    "compare": lambda y, p, X, w: vc.compare(y, {"a": p, "b": p**2}, X, sample_weight=w),
    "fit": lambda y, p, X, w: vc.TreeCalibrator().fit(p, y, X, sample_weight=w),
}


def shifted(column, by=1000):
    return column.set_axis(column.index + by)


@pytest.mark.parametrize("call", CALLS)
def test_equal_indexes_pass_and_others_do_not(call):
    use = CALLS[call]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "rows are paired")
        use(Y, P, X, W)
        use(*(part.iloc[ORDER] for part in (Y, P, X, W)))
        use(Y.iloc[ORDER], P.to_numpy(), X.iloc[ORDER], None)
        use(Y.iloc[ORDER].to_numpy(), P, X, W.to_numpy())
    for moved in range(4):
        given = [part.iloc[ORDER] if k == moved else part for k, part in enumerate((Y, P, X, W))]
        if call != "ece" or moved != 2:
            with pytest.raises(
                InputError, match=r"index labels of [py] in another order.*\nhint: al"
            ):
                use(*given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use(shifted(Y), P, shifted(X), W)
    said = [str(one.message) for one in caught if "paired by position" in str(one.message)]
    assert len(said) == 1 and issubclass(caught[0].category, VarcalWarning)


def test_repeated_labels_are_compared_as_often_as_they_come():
    twice = pd.Index([0, 0, 1, 2] * (N // 4))
    y, p = Y.set_axis(twice), P.set_axis(twice)
    assert vc.ece(y, p) == vc.ece(Y, P)
    with pytest.raises(InputError, match="p has the index labels of y in another order"):
        vc.ece(y, p.iloc[::-1])
    with pytest.warns(VarcalWarning, match="index labels of p are not those of y"):
        vc.ece(y, p.set_axis(pd.Index([0, 1, 1, 2] * (N // 4))))


def test_several_levels_and_mixed_labels():
    levels = pd.MultiIndex.from_product([range(N // 2), ["a", "b"]])
    mixed = pd.Index([k if k % 2 else str(k) for k in range(N)], dtype=object)
    for index in (levels, mixed):
        y, p = Y.set_axis(index), P.set_axis(index)
        assert vc.ece(y, p) == vc.ece(Y, P)
        with pytest.raises(InputError, match="another order"):
            vc.ece(y, p.iloc[ORDER])


def test_predictions_and_columns_in_a_dict():
    fitted = vc.TreeCalibrator().fit(P, Y, X)
    with pytest.raises(InputError, match="X has the index labels of p in another order"):
        fitted.predict_proba(P[:50], X[:50][::-1])
    with pytest.raises(InputError, match="X 'age' has the index labels of y"):
        vc.audit(Y, P, {"age": X["age"][::-1]})
    with pytest.raises(InputError, match="groups has the index labels of y"):
        vc.estimate(Y, P, X["age"], groups=X["sex"][::-1])
    with pytest.raises(InputError, match="data has the index labels of y"):
        vc.audit(Y[::-1], "p", ["age"], data=X.assign(p=P))
