"""Outcomes, probabilities, weights and groups of any library mean the same, or are refused."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import varcal as vc
from varcal.exceptions import InputError, VarcalWarning

Y, P = np.array([0, 1, 1, 0] * 10), np.array([0.2, 0.9, 0.4, 0.1] * 10)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([0.0, 1.0, 1.0, 0.0] * 10, (0, 1)),
        ([False, True, True, False] * 10, (False, True)),
        (np.array([0, 1, 1, 0] * 10, dtype=np.uint8), (0, 1)),
        (["no", "yes", "yes", "no"] * 10, ("no", "yes")),
        ([-1, 1, 1, -1] * 10, (-1, 1)),
        ([1, 2, 2, 1] * 10, (1, 2)),
        (pd.Series(["b", "c", "c", "b"] * 10, dtype="category"), ("b", "c")),
        (pl.Series(["b", "c", "c", "b"] * 10, dtype=pl.Enum(["c", "b"])), ("b", "c")),
        (pd.Categorical([0.0, 1.0, 1.0, 0.0] * 10, categories=[1, 0]), (0, 1)),
        (pa.array([0, 1, 1, 0] * 10).dictionary_encode(), (0, 1)),
    ],
)
def test_labels_of_every_type_mean_the_same(y, classes, tmp_path):
    assert vc.ece(y, P, event="positive") == vc.ece(Y, P, event="positive")
    fitted = vc.calibrators.PlattCalibrator().fit(P, y)
    fitted.save(tmp_path / "calibrator.json")
    for found in (fitted, vc.load(tmp_path / "calibrator.json")):
        labels = found.classes_.tolist()
        assert [(one, type(one)) for one in labels] == [(one, type(one)) for one in classes]
    for event in ("correct", "classwise"):
        assert vc.ece(y, P, event=event) == vc.ece(Y, P, event=event)


@pytest.mark.parametrize(
    "y", [[1, 1], [True, True], pd.Series([True, True], dtype="category"), pd.Categorical([1, 1]),
          pa.array([1, 1]).dictionary_encode()]
)  # fmt: skip
def test_zero_one_labels_mean_zero_one_even_if_only_one_occurs(y):
    assert vc.ece(y, [0.2, 0.3], event="positive") == pytest.approx(0.75)


def test_classes_give_the_order_of_columns():
    p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
    assert vc.ece(["cat", "dog"], p, classes=["dog", "cat", "eel"]) == pytest.approx(0.75)
    with pytest.raises(InputError, match="2 distinct labels"):
        vc.ece(["cat", "dog"], p)


def test_columns_by_name_in_every_library(make_frame):
    columns = {"y": ["a", "b", "c"] * 9, "a": [0.6, 0.2, 0.1] * 9, "b": [0.3, 0.7, 0.1] * 9,
               "c": [0.1, 0.1, 0.8] * 9, "w": [1, 2, 3] * 9, "unit": list("abcdefghi") * 3,
               "age": [30, None, 50] * 9}  # fmt: skip
    data, names = make_frame(columns), ["a", "b", "c"]
    p = np.column_stack([columns[name] for name in names])
    named = vc.estimate("y", names, "age", data=data, sample_weight="w", groups="unit")
    given = [columns[name] for name in ("y", "age", "w", "unit")]
    age = {"age": given[1]}
    assert named == vc.estimate(given[0], p, age, sample_weight=given[2], groups=given[3])
    # With data, anything but names is an array.
    assert vc.vece("y", p, columns["age"], data=data) == vc.vece("y", names, "age", data=data)
    table = vc.bin_table("y", names, "age", data=data).to_frame()
    library = "pandas" if isinstance(data, dict) else type(data).__module__.split(".")[0]
    assert type(table).__module__.split(".")[0] == library
    X = make_frame({"age": columns["age"], "unit": columns["unit"]})
    assert vc.vece(columns["y"], p, X) == vc.vece("y", names, ["age", "unit"], data=data)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_tables_that_are_not_frames():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.array([[1.0, 2.0], [3.0, 4.0]])

    y, p = [0, 1], [0.1, 0.2]
    expected = vc.bin_table(y, p, {"v0": [1, 3], "v1": [2, 4]}).columns["bin"]
    for v in (Tensor(), [[1.0, 2.0], [3.0, 4.0]], np.matrix([[1.0, 2.0], [3.0, 4.0]])):
        assert vc.bin_table(y, p, v).columns["bin"] == expected
    named = {"age": pd.Series([1, 2], name="age"), "v": pd.Series([1, 2])}
    for name, v in named.items():
        assert [row.variable for row in vc.audit(y, p, v, ladder="none")] == [name]
    for column in (np.matrix([[0.1], [0.2]]), [[0.1], [0.2]], pa.array([0.1, 0.2])):
        assert vc.ece(y, column) == vc.ece(y, p)
    objects = np.array([[0.1, 0.9], [0.4, 0.6]], dtype=object)
    assert vc.ece(y, objects) == vc.ece(y, objects.astype(float))
    assert vc.ece("0", "1", data={0: y, 1: p}) == vc.ece(y, p)
    assert isinstance(vc.bin_table(y, p, pl.Series([1, 2])).to_frame(), pl.DataFrame)


def test_logits():
    logits = np.array([-800.0, -1.0, 0.0, 3.0, 800.0])
    p = [0.0, 1 / (1 + np.e), 0.5, 1 / (1 + np.exp(-3)), 1.0]
    y = [0, 1, 1, 1, 1]
    assert vc.ece(y, logits, from_logits=True) == pytest.approx(vc.ece(y, p))
    table = np.array([[1.0, 2.0, 3.0], [1000.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    shifted = np.exp(table - table.max(axis=1, keepdims=True))
    p = shifted / shifted.sum(axis=1, keepdims=True)
    assert vc.ece([0, 1, 2], table, from_logits=True) == pytest.approx(vc.ece([0, 1, 2], p))
    with pytest.raises(InputError, match=r"not finite.*row 1"):
        vc.ece([0, 1], [0.0, np.inf], from_logits=True)


def test_rows_without_outcome_are_dropped_only_on_request_and_counted():
    y, p = [0, None, 1, np.nan], [0.1, 0.5, 0.8, 0.9]
    with pytest.raises(InputError, match=r"y has no label: None at row 1 \(2 such rows\)"):
        vc.ece(y, p)
    dropped = {"unlabelled": "drop", "sample_weight": [1, 2, 3, 4]}
    found = vc.vece(y, p, [1, 2, 3, 4], **dropped)
    assert found == vc.vece([0, 1], [0.1, 0.8], [1, 3], sample_weight=[1, 3])
    assert vc.audit(y, p, {"v": [1, 2, 3, 4]}, ladder="none", **dropped).n_dropped == 2
    strings = vc.ece(["a", None, "b"], [0.1, 0.5, 0.8], unlabelled="drop")
    assert strings == vc.ece(["a", "b"], [0.1, 0.8])
    with pytest.raises(InputError, match="no label at any row"):
        vc.ece([None, None], [0.1, 0.2], unlabelled="drop")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_sums_may_be_off_by_the_rounding_of_the_dtype(dtype, rng):
    p = rng.dirichlet(np.ones(50), 400).astype(dtype)
    y = np.arange(400) % 50
    assert vc.ece(y, pd.DataFrame(p)) == vc.ece(y, p)
    with pytest.raises(InputError, match="must sum to 1"):
        vc.ece(y, p * dtype(0.9))


class Stubborn:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        (([0, 1], [0.1, None]), "p is missing: nan at row 1", "fill"),
        (([0, 1], [0.1, 1.0000001]), "p is outside [0, 1]: 1.0000001 at row 1", "rounding error"),
        (([0, 1], [-3.0, 2.0]), "p is outside [0, 1]: -3.0 at row 0 (2 such rows)", "from_logits"),
        (([0, 1], [30, 70]), "p is outside [0, 1]: 30.0 at row 0", "percentages by 100"),
        (([0, 1, 2], [[0.2, 0.3, 0.5], [1, 1.5, -1.5], [1, 0, 0]]), "p in column 1 is outside", ""),
        (
            ([0, 1, 2], [[0.2, 0.3, 0.5], [0.2, 0.3, 0.4], [1, 0, 0]]),
            "p must sum to 1 in each row (within 1e-06), but sums to: 0.9",
            "one column for every class",
        ),
        (([0, 1, 1], [0.5, 0.5]), "lengths differ: y 3, p 2", "one value per row"),
        (([0, 1], [0.5, 0.5], [1, 2, 3]), "y 2, p 2, variable 'v' 3", ""),
        (([0, 1, 2], [0.1, 0.2, 0.3]), "3 distinct labels (0, 1, 2)", "classes="),
        ((["a", "a"], [0.1, 0.2]), "1 distinct labels ('a')", "classes="),
        (([0.2, 0.9], [0, 1]), "y is not a label: 0.2 at row 0", "look swapped"),
        (([0.2, 1.9], [0.1, 0.4]), "y is not a label: 0.2 at row 0", "y and p are swapped"),
        (([0, 1], [True, False]), "p holds booleans, not numbers", "labels go in y"),
        (([], []), "y and p are empty", "at least one row"),
        (([0, 1], [object(), 0.2]), "object array that holds", "one type"),
        ((np.array(["2020-01-01"], "M8[D]"), [0.1]), "y holds dates", "labels are"),
        (([0], [[[0.1]]]), "p has shape (1, 1, 1)", "(n, K)"),
        (([0], np.zeros((1, 0))), "p has shape (1, 0)", "(n, K)"),
        (("y", [0.1]), "y is the string 'y'", "data="),
        (([0], [0.1], {}), "v has no columns", "at least one"),
        (([0, 1], np.ma.array([0.5, 0.5], mask=[0, 1])), "p is missing: nan at row 1", "fill"),
        (([0, np.inf], [0.1, 0.2]), "not a label: inf at row 1", "2**53"),
        (([0, 10**400], [0.1, 0.2]), "y holds a number too large", "±"),
        (([[0], [1]], [0.1, 0.2]), "y has shape (2, 1)", "one column"),
        ((np.eye(2), [0.1, 0.2]), "y has shape (2, 2)", "argmax(axis=1)"),
        ((None, [0.1, 0.2]), "y is None", "list or array"),
        ((csr_array([[0, 1]]), [0.1, 0.2]), "single csr_array", ".toarray()"),
        (([0, 1], {"a": [0.1, 0.2]}), "p is a single dict", "list or array"),
        (([0, 1], Stubborn()), "p cannot be read as an array: no", "give a list"),
    ],
)
def test_errors_name_argument_value_row_and_hint(given, message, hint):
    with pytest.raises(InputError) as caught:
        vc.estimate(*given)
    assert message in caught.value.message
    assert caught.value.hint and hint in caught.value.hint


ROWS = {"y": [0, 1], "p": [0.1, 0.2], "age": [3, 4]}


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        (dict(classes=["a", "b"]), "y is not among classes ['a', 'b']: 0 at row 0 (2", "add it to"),
        (dict(classes=2), "classes is 2", "a list of"),
        (dict(classes=[0, 1, 2]), "classes must name 2 distinct labels", "one label per"),
        (dict(classes=[0, [1]]), "classes must name 2 distinct labels", "one label per"),
        (dict(sample_weight=[1, -2]), "sample_weight is negative: -2.0 at row 1", "weights are"),
        (dict(sample_weight=[1, np.inf]), "is not a finite number: inf at row 1", "weights are"),
        (dict(sample_weight=[0, 0]), "sample_weight is 0 at every row", "must be positive"),
        (dict(sample_weight=np.eye(2)), "sample_weight has shape (2, 2)", "one weight per row"),
        (dict(sample_weight=["a", "b"]), "sample_weight holds levels, not numbers", "real numbers"),
        (dict(groups=["a", None]), "groups is missing: None at row 1", "must belong to a group"),
        (dict(groups=["a", "a"]), "groups has only one group", "at least two"),
        (dict(y="yy"), "y: no column 'yy'", "'y'"),
        (dict(v="Agee"), "v: no column 'Agee'", "did you mean 'age'?"),
        (dict(v=["age", "age"]), "v names a column twice", "once"),
        (dict(p=["p", "p"]), "p names a column twice", "one column per class"),
        (dict(p=3), "p is the number 3", "column names are strings"),
        (dict(v=[0, 1, 2]), "lengths differ", "column names are strings"),
        (dict(data=3), "data is a int", "pandas, polars or pyarrow"),
    ],
)
def test_errors_of_columns_and_settings(settings, message, hint):
    with pytest.raises(InputError) as caught:
        vc.estimate(**{"y": "y", "p": "p", "v": "age", "data": ROWS} | settings)
    assert message in caught.value.message
    assert caught.value.hint and hint in caught.value.hint


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("v", lambda v: vc.vece("y", "p", v, data=ROWS)),
        ("X", lambda X: vc.audit("y", "p", X, data=ROWS)),
        ("X", lambda X: vc.audit("y", "p", X, data=pl.DataFrame(ROWS).lazy())),
        ("X", lambda X: vc.compare("y", {"a": "p"}, X, data=ROWS)),
        ("X", lambda X: vc.slices("y", "p", X, data=ROWS)),
        ("X", lambda X: vc.calibrators.TreeCalibrator().fit([0.1, 0.2], [0, 1], X)),
        ("X", lambda X: vc.audit(vc.collect(ROWS, vc.make_bins("y", "p", data=ROWS)), X=X)),
    ],
)
def test_errors_call_the_variables_as_the_function_does(argument, call):
    with pytest.raises(InputError, match=f"^{argument}") as caught:
        call("agee")
    assert caught.value.argument == argument


def test_a_fit_says_that_its_scores_come_first_and_names_blocks():
    with pytest.raises(InputError, match=r"y is not a label.*\nhint: .*fit\(p, y, X\)"):
        vc.calibrators.TreeCalibrator().fit(Y, P, Y)
    with pytest.raises(InputError, match="blocks is missing: None at row 3") as caught:
        vc.VariableCalibrator().fit(P, Y, Y, blocks=[1, 2, 3, None] * 10)
    assert caught.value.argument == "blocks"


def test_columns_named_as_the_labels_in_another_order_are_refused(make_frame):
    y, q = ["no", "yes", "no"], [0.2, 0.9, 0.4]
    columns = {"yes": q, "no": [1 - one for one in q]}
    data = make_frame({"y": y} | columns)
    message = r"named \['yes', 'no'\], but the classes are in the order \['no', 'yes'\]"
    with pytest.raises(InputError, match=message) as caught:
        vc.ece("y", ["yes", "no"], data=data)
    assert caught.value.hint.endswith("classes=['yes', 'no']")
    said = vc.ece("y", ["yes", "no"], data=data, classes=["yes", "no"])
    assert said == vc.ece("y", ["no", "yes"], data=data) == vc.ece(y, q)
    with pytest.raises(InputError, match="p has columns named") as caught:
        vc.ece([0, 1, 0], pd.DataFrame({1: q, 0: columns["no"]}))
    assert caught.value.hint.endswith("classes=[1, 0]")


# ------------------------------------------------------------------ indexes of pandas

N = 300
RNG = np.random.default_rng(1)
SCORES = pd.Series(RNG.random(N), name="p")
OUTCOMES = (RNG.random(N) < SCORES).astype(int)
X = pd.DataFrame({"age": RNG.normal(size=N), "sex": RNG.choice(["f", "m"], N)})
WEIGHTS = pd.Series(RNG.random(N) + 0.5)
ORDER = RNG.permutation(N)
CALLS = {
    "vece": lambda y, p, X, w: vc.vece(y, p, X["age"], sample_weight=w),
    "audit": lambda y, p, X, w: vc.audit(y, p, X, sample_weight=w, ladder="none"),
    "compare": lambda y, p, X, w: vc.compare(y, {"a": p, "b": p**2}, X, sample_weight=w),
    "fit": lambda y, p, X, w: vc.calibrators.TreeCalibrator().fit(p, y, X, sample_weight=w),
}


@pytest.mark.parametrize("call", CALLS)
def test_equal_indexes_pass_and_others_do_not(call):
    use, given = CALLS[call], (OUTCOMES, SCORES, X, WEIGHTS)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "rows are paired")
        use(*given)
        use(*(part.iloc[ORDER] for part in given))
        use(OUTCOMES.iloc[ORDER], SCORES.to_numpy(), X.iloc[ORDER], None)
    for moved in range(4):
        mixed = [part.iloc[ORDER] if k == moved else part for k, part in enumerate(given)]
        with pytest.raises(InputError, match=r"index labels of [py] in another order.*\nhint: al"):
            use(*mixed)
    shifted = [part.set_axis(part.index + 1000) for part in given[:3:2]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use(shifted[0], SCORES, shifted[1], WEIGHTS)
    said = [str(one.message) for one in caught if "paired by position" in str(one.message)]
    assert len(said) == 1 and issubclass(caught[0].category, VarcalWarning)


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([0, 0, 1, 2] * (N // 4)),
        pd.MultiIndex.from_product([range(N // 2), ["a", "b"]]),
        pd.Index([k if k % 2 else str(k) for k in range(N)], dtype=object),
    ],
)
def test_repeated_nested_and_mixed_labels(index):
    y, p = OUTCOMES.set_axis(index), SCORES.set_axis(index)
    assert vc.ece(y, p) == vc.ece(OUTCOMES, SCORES)
    with pytest.raises(InputError, match="p has the index labels of y in another order"):
        vc.ece(y, p.iloc[::-1])
    with pytest.warns(VarcalWarning, match="index labels of p are not those of y"):
        vc.ece(y, p.set_axis(pd.Index([0, 1, 1, 2] * (N // 4))))


def test_columns_of_dicts_and_predictions_are_compared_as_well():
    fitted = vc.calibrators.TreeCalibrator().fit(SCORES, OUTCOMES, X)
    with pytest.raises(InputError, match="X has the index labels of p in another order"):
        fitted.predict_proba(SCORES[:50], X[:50][::-1])
    with pytest.raises(InputError, match="X 'age' has the index labels of y"):
        vc.audit(OUTCOMES, SCORES, {"age": X["age"][::-1]})
    with pytest.raises(InputError, match="groups has the index labels of y"):
        vc.estimate(OUTCOMES, SCORES, X["age"], groups=X["sex"][::-1])
