import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import varcal as vc
from varcal._input.predictions import Predictions
from varcal.exceptions import InputError

Y, P = [0, 1, 1, 0], [0.2, 0.9, 0.4, 0.1]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([0, 1, 1, 0], (0, 1)),
        ([0.0, 1.0, 1.0, 0.0], (0, 1)),
        ([False, True, True, False], (False, True)),
        (np.array([0, 1, 1, 0], dtype=np.uint8), (0, 1)),
        (["no", "yes", "yes", "no"], ("no", "yes")),
        ([-1, 1, 1, -1], (-1, 1)),
        ([1, 2, 2, 1], (1, 2)),
        (pd.Series(["b", "c", "c", "b"], dtype="category"), ("b", "c")),
        (pl.Series(["b", "c", "c", "b"], dtype=pl.Enum(["c", "b"])), ("b", "c")),
    ],
)
def test_labels_of_every_type_mean_the_same(y, classes):
    found = Predictions.of(y, P)
    assert found.classes == classes
    np.testing.assert_array_equal(found.y, [0, 1, 1, 0])


def test_zero_one_labels_mean_zero_one_even_if_only_one_occurs():
    assert Predictions.of([1, 1], [0.2, 0.3]).classes == (0, 1)
    np.testing.assert_array_equal(Predictions.of([1, 1], [0.2, 0.3]).y, [1, 1])
    assert Predictions.of([True, True], [0.2, 0.3]).classes == (False, True)


def test_classes_give_the_order_of_columns():
    p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
    found = Predictions.of(["cat", "dog"], p, classes=["dog", "cat", "eel"])
    np.testing.assert_array_equal(found.y, [1, 0])
    with pytest.raises(InputError, match="2 distinct labels"):
        Predictions.of(["cat", "dog"], p)


def test_columns_by_name_in_every_library(make_frame):
    data = make_frame({"y": ["a", "b", "c"], "a": [0.6, 0.2, 0.1], "b": [0.3, 0.7, 0.1],
                       "c": [0.1, 0.1, 0.8], "w": [1, 2, 3], "unit": ["u", "u", "v"],
                       "age": [30, None, 50]})  # fmt: skip
    found = Predictions.of(
        "y", ["a", "b", "c"], ["age", "unit"], data=data, sample_weight="w", groups="unit"
    )
    np.testing.assert_array_equal(found.y, [0, 1, 2])
    np.testing.assert_array_equal(found.p[0], [0.6, 0.3, 0.1])
    np.testing.assert_array_equal(found.weight, [1, 2, 3])
    np.testing.assert_array_equal(found.groups, [0, 0, 1])
    assert [variable.name for variable in found.variables] == ["age", "unit"]
    np.testing.assert_array_equal(found.variables[0].values, [30, np.nan, 50])
    assert found.backend == (
        None if isinstance(data, dict) else type(data).__module__.split(".")[0]
    )


def test_with_data_anything_but_names_is_an_array(make_frame):
    data = make_frame({"y": [0, 1], "p": [0.3, 0.6]})
    found = Predictions.of("y", np.array([0.1, 0.9]), [5.0, 6.0], data=data)
    np.testing.assert_array_equal(found.p, [0.1, 0.9])
    np.testing.assert_array_equal(found.variables[0].values, [5.0, 6.0])


def test_frames_as_p_and_v(make_frame):
    frame = make_frame({"x": [1, 2], "z": ["a", "b"]})
    p = (
        make_frame({"no": [0.3, 0.6], "yes": [0.7, 0.4]})
        if not isinstance(frame, dict)
        else [0.7, 0.4]
    )
    found = Predictions.of([0, 1], p, frame)
    assert [variable.name for variable in found.variables] == ["x", "z"]
    np.testing.assert_array_equal(found.p if found.p.ndim == 1 else found.p[:, 1], [0.7, 0.4])


def test_arrays_of_several_variables_and_names_of_series():
    found = Predictions.of([0, 1], [0.1, 0.2], np.array([[1, 2], [3, 4]]))
    assert [variable.name for variable in found.variables] == ["v0", "v1"]
    assert (
        Predictions.of([0, 1], [0.1, 0.2], pd.Series([1, 2], name="age")).variables[0].name == "age"
    )
    assert Predictions.of([0, 1], [0.1, 0.2], pd.Series([1, 2])).variables[0].name == "v"
    assert Predictions.of([0, 1], [[0.1], [0.2]]).p.shape == (2,)
    assert Predictions.of([0, 1], [0, 1]).p.dtype == np.float64


def test_valid_arrays_are_not_copied():
    y, p = np.array([0, 1]), np.array([0.1, 0.9])
    found = Predictions.of(y, p)
    assert np.shares_memory(found.p, p) and np.shares_memory(found.y, y)


def test_logits():
    logits = np.array([-800.0, -1.0, 0.0, 3.0, 800.0])
    expected = [0.0, 1 / (1 + np.e), 0.5, 1 / (1 + np.exp(-3)), 1.0]
    np.testing.assert_allclose(
        Predictions.of([0, 1, 1, 1, 1], logits, from_logits=True).p, expected
    )
    table = np.array([[1.0, 2.0, 3.0], [1000.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found = Predictions.of([0, 1, 2], table, from_logits=True).p
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found[0], np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum())
    with pytest.raises(InputError, match=r"not finite.*row 1"):
        Predictions.of([0, 1], [0.0, np.inf], from_logits=True)


def test_rows_without_outcome_are_dropped_only_on_request_and_counted():
    y, p = [0, None, 1, np.nan], [0.1, 0.5, 0.8, 0.9]
    with pytest.raises(InputError, match=r"y has no label: None at row 1 \(2 such rows\)"):
        Predictions.of(y, p)
    found = Predictions.of(
        y,
        p,
        [1, 2, 3, 4],
        unlabelled="drop",
        sample_weight=[1, 2, 3, 4],
        groups=["a", "b", "a", "c"],
    )
    assert found.n_dropped == 2 and len(found) == 2
    np.testing.assert_array_equal(found.p, [0.1, 0.8])
    np.testing.assert_array_equal(found.weight, [1, 3])
    np.testing.assert_array_equal(found.variables[0].values, [1, 3])
    strings = Predictions.of(["a", None, "b"], [0.1, 0.5, 0.8], unlabelled="drop")
    assert strings.classes == ("a", "b")
    with pytest.raises(InputError, match="no label at any row"):
        Predictions.of([None, None], [0.1, 0.2], unlabelled="drop")


class Stubborn:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no")


REJECTED = {
    "above one": (dict(y=[0, 1], p=[0.5, 1.2]), "p is outside [0, 1]: 1.2 at row 1", "clip"),
    "percent": (
        dict(y=[0, 1], p=[5, 90]),
        "outside [0, 1]: 5.0 at row 0 (2 such rows)",
        "percentages",
    ),
    "logits": (dict(y=[0, 1], p=[-3.0, 0.4]), "outside [0, 1]: -3.0", "from_logits=True"),
    "NaN in p": (dict(y=[0, 1], p=[0.5, np.nan]), "p is missing: nan at row 1", "fill"),
    "sums": (
        dict(y=[0, 1, 2], p=[[0.2, 0.3, 0.5], [0.2, 0.3, 0.4], [1, 0, 0]]),
        "p must sum to 1 in each row (within 1e-06), but sums to: 0.9",
        "one column for every class",
    ),
    "lengths": (dict(y=[0, 1, 1], p=[0.5, 0.5]), "lengths differ: y 3, p 2", "one value per row"),
    "length of v": (dict(y=[0, 1], p=[0.5, 0.5], v=[1, 2, 3]), "y 2, p 2, variable 'v' 3", ""),
    "unknown label": (
        dict(y=["a", "x", "b"], p=[0.1, 0.2, 0.3], classes=["a", "b"]),
        "y is not among classes ['a', 'b']: 'x' at row 1",
        "add it to classes",
    ),
    "three labels": (
        dict(y=[0, 1, 2], p=[0.1, 0.2, 0.3]),
        "3 distinct labels (0, 1, 2)",
        "classes=",
    ),
    "one label": (dict(y=["a", "a"], p=[0.1, 0.2]), "1 distinct labels ('a')", "classes="),
    "swapped": (dict(y=[0.2, 0.9], p=[0, 1]), "y is not a label: 0.2 at row 0", "look swapped"),
    "boolean p": (dict(y=[0, 1], p=[True, False]), "p holds booleans, not numbers", ""),
    "empty": (dict(y=[], p=[]), "y and p are empty", "at least one row"),
    "object p": (dict(y=[0, 1], p=[object(), 0.2]), "object array that holds", "one type"),
    "dates as y": (
        dict(y=np.array(["2020-01-01"], "M8[D]"), p=[0.1]),
        "y holds dates",
        "labels are",
    ),
    "three dimensions": (dict(y=[0], p=[[[0.1]]]), "p has shape (1, 1, 1)", "(n, K)"),
    "string without data": (dict(y="y", p=[0.1]), "y is the string 'y'", "data="),
    "negative weight": (
        dict(y=[0, 1], p=[0.1, 0.2], sample_weight=[1, -2]),
        "sample_weight is negative: -2.0 at row 1",
        "weights are finite and not negative",
    ),
    "missing group": (
        dict(y=[0, 1], p=[0.1, 0.2], groups=["a", None]),
        "groups is missing",
        "must belong to a group",
    ),
    "no column": (dict(y="yy", p="p", data={"y": [0], "p": [0.1]}), "y: no column 'yy'", "'y'"),
    "no variable": (
        dict(y="y", p="p", v="Agee", data={"y": [0], "p": [0.1], "age": [3]}),
        "v: no column 'Agee'",
        "did you mean 'age'?",
    ),
    "variable twice": (
        dict(y="y", p="p", v=["a", "a"], data={"y": [0], "p": [0.1], "a": [1]}),
        "v names a column twice",
        "",
    ),
    "no frame": (dict(y="y", p="p", data=3), "data is a int", "pandas, polars or pyarrow"),
    "lazy": (
        dict(y="y", p="p", data=pl.LazyFrame({"y": [0]})),
        "a lazy polars frame",
        ".collect()",
    ),
    "empty v": (dict(y=[0], p=[0.1], v={}), "v has no columns", "at least one"),
    "masked p": (
        dict(y=[0, 1], p=np.ma.array([0.5, 0.5], mask=[0, 1])),
        "p is missing: nan at row 1",
        "fill",
    ),
    "infinite label": (dict(y=[0, np.inf], p=[0.1, 0.2]), "not a label: inf at row 1", "2**53"),
    "label beyond floats": (dict(y=[0, 10**400], p=[0.1, 0.2]), "y holds a number too large", "±"),
    "column of labels": (dict(y=[[0], [1]], p=[0.1, 0.2]), "y has shape (2, 1)", "one column"),
    "one-hot labels": (dict(y=np.eye(2), p=[0.1, 0.2]), "y has shape (2, 2)", "argmax(axis=1)"),
    "no y": (dict(y=None, p=[0.1, 0.2]), "y is None", "list or array"),
    "sparse y": (dict(y=csr_array([[0, 1]]), p=[0.1, 0.2]), "single csr_array", ".toarray()"),
    "dict as p": (dict(y=[0, 1], p={"a": [0.1, 0.2]}), "p is a single dict", "list or array"),
    "own conversion fails": (dict(y=[0, 1], p=Stubborn()), "p cannot be read as an array: no", ""),
    "number of classes": (dict(y=[0, 1], p=[0.1, 0.2], classes=2), "classes is 2", "a list of"),
    "numbers as names": (
        dict(y="y", p="p", v=[0, 1], data={"y": [0], "p": [0.1]}),
        "lengths differ",
        "column names are strings",
    ),
}


@pytest.mark.parametrize(("arguments", "message", "hint"), REJECTED.values(), ids=REJECTED.keys())
def test_errors_name_argument_value_row_and_hint(arguments, message, hint):
    with pytest.raises(InputError) as caught:
        Predictions.of(**arguments)
    assert message in caught.value.message
    assert caught.value.hint and hint in caught.value.hint


def test_columns_named_as_the_labels_in_another_order_are_refused(make_frame):
    y, q = ["no", "yes", "no"], [0.2, 0.9, 0.4]
    columns = {"yes": q, "no": [1 - one for one in q]}
    data = make_frame({"y": y} | columns)
    message = r"named \['yes', 'no'\], but the classes are in the order \['no', 'yes'\]"
    with pytest.raises(InputError, match=message) as caught:
        Predictions.of("y", ["yes", "no"], data=data)
    assert caught.value.hint.endswith("classes=['yes', 'no']")
    if not isinstance(data, dict):
        with pytest.raises(InputError, match=message):
            Predictions.of(y, make_frame(columns))
    said = vc.ece("y", ["yes", "no"], data=data, classes=["yes", "no"])
    assert said == vc.ece("y", ["no", "yes"], data=data) == vc.ece(y, q)
    numbers = pd.DataFrame({1: q, 0: columns["no"]})
    with pytest.raises(InputError, match="p has columns named") as caught:
        Predictions.of([0, 1, 0], numbers)
    assert caught.value.hint.endswith("classes=[1, 0]")


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        (pd.Series([True, True], dtype="category"), (False, True), [1, 1]),
        (pd.Series([1, 1], dtype="category"), (0, 1), [1, 1]),
        (pd.Series([0, 1], dtype="category"), (0, 1), [0, 1]),
        (pd.Categorical([0, 1], categories=[1, 0]), (0, 1), [0, 1]),
        (pd.Categorical([1.0, 0.0]), (0, 1), [1, 0]),
        (pa.array([1, 1]).dictionary_encode(), (0, 1), [1, 1]),
        (pd.Categorical(["b", "a"], categories=["b", "a"]), ("a", "b"), [1, 0]),
    ],
)
def test_categories_of_labels(y, classes, codes):
    found = Predictions.of(y, [0.2, 0.3])
    assert [(label, type(label)) for label in found.classes] == [(c, type(c)) for c in classes]
    np.testing.assert_array_equal(found.y, codes)


def test_small_integers_as_labels_do_not_wrap(rng):
    y, p = rng.integers(0, 2, 300), rng.random(300)
    for event in ("correct", "positive", "classwise"):
        assert vc.ece(y.astype(np.uint8), p, event=event) == vc.ece(y, p, event=event)
    many = rng.integers(0, 3, 300)
    table = rng.dirichlet([1, 1, 1], 300)
    assert vc.ece(many.astype(np.int8), table) == vc.ece(many, table)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_sums_may_be_off_by_the_rounding_of_the_dtype(dtype, rng):
    p = rng.dirichlet(np.ones(50), 400).astype(dtype)
    y = np.arange(400) % 50
    assert Predictions.of(y, p).p.dtype == np.float64
    assert Predictions.of(y, pd.DataFrame(p)).p.shape == (400, 50)
    with pytest.raises(InputError, match="must sum to 1"):
        Predictions.of(y, p * dtype(0.9))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_tables_that_are_not_arrays():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.array([[1.0, 2.0], [3.0, 4.0]])

    for v in (Tensor(), [[1.0, 2.0], [3.0, 4.0]], np.matrix([[1.0, 2.0], [3.0, 4.0]])):
        found = Predictions.of([0, 1], [0.1, 0.2], v)
        assert [variable.name for variable in found.variables] == ["v0", "v1"]
        np.testing.assert_array_equal(found.variables[1].values, [2, 4])
    assert Predictions.of([0, 1], np.matrix([[0.1], [0.2]])).p.shape == (2,)
    objects = np.array([[0.1, 0.9], [0.4, 0.6]], dtype=object)
    np.testing.assert_array_equal(Predictions.of([0, 1], objects).p, objects.astype(float))


def test_keys_of_a_dict_that_are_not_strings():
    data = {0: [0, 1], 1: [0.2, 0.3]}
    assert len(Predictions.of("0", "1", data=data)) == 2
    found = Predictions.of([0, 1], [0.2, 0.3], {7: [1, 2]})
    assert found.variables[0].name == "7"


def test_the_library_of_a_series_is_remembered():
    assert Predictions.of([0, 1], [0.2, 0.3], pl.Series([1, 2])).backend == "polars"
    assert Predictions.of([0, 1], pa.array([0.2, 0.3])).backend == "pyarrow"
    assert isinstance(vc.bin_table([0, 1], [0.2, 0.3], pl.Series([1, 2])).to_frame(), pl.DataFrame)


def test_two_columns_with_the_same_name():
    data = pd.DataFrame([[0, 0.2, 1], [1, 0.3, 2]], columns=["y", "p", "p"])
    with pytest.raises(InputError, match="two columns of the same name: 'p'"):
        Predictions.of("y", "p", data=data)
