"""Plain arrays and single rows take short cuts; answers and errors are those of the long way."""

import warnings

import numpy as np
import pytest

from cases.calibrators import ALL, binary, every, fitted, many

WITH_VARIABLES = [calibrator for calibrator in ALL if calibrator._uses_variables]


@pytest.fixture
def long_way(monkeypatch):
    """Return a function that calls another one without any short cut."""

    def call(function, *args):
        with monkeypatch.context() as patch:
            patch.setattr("varcal._input.variables.PLAIN_TYPES", frozenset())
            return outcome(function, *args)

    return call


def outcome(function, *args):
    """Return the answer to the bit, or the type and the text of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            answer = function(*args)
        except Exception as error:
            return type(error), str(error)
    return answer.shape, answer.dtype, answer.tobytes()


def forms_of_scores(p):
    """Yield the same scores in every plain form."""
    yield p
    yield p.tolist()
    yield p.astype(np.float32)
    yield p[::-1][::-1]
    if p.ndim == 1:
        yield tuple(p.tolist())
        yield p[:, None]
        yield np.column_stack([1 - p, p])
        yield p.astype(object)


def forms_of_variables(v):
    """Yield the same two variables in every plain form."""
    yield v
    yield v.tolist()
    yield np.asfortranarray(v)
    yield {"v0": v[:, 0], "v1": v[:, 1]}
    yield {"v1": v[:, 1].tolist(), "v0": tuple(v[:, 0].tolist())}
    yield {"v0": v[:, 0].astype(np.float32), "v1": v[:, 1].astype(object)}


@every
@pytest.mark.parametrize("data", [binary, many])
def test_every_plain_form_gives_the_same_bits(calibrator, data, long_way):
    model = fitted(calibrator, data)
    p, _, v = data(12, seed=7)
    v[3, 0], v[5, 1], v[6, 0], v[7, 0] = np.nan, np.nan, np.inf, -1e30
    for rows in [slice(k, k + 1) for k in (0, 3, 5, 6, 7)] + [slice(0, 12)]:
        for scores in forms_of_scores(p[rows]):
            assert outcome(model.predict_proba, scores, v[rows]) == long_way(
                model.predict_proba, scores, v[rows]
            )
        for variables in forms_of_variables(v[rows]):
            assert outcome(model.predict_proba, p[rows], variables) == long_way(
                model.predict_proba, p[rows], variables
            )


def levels_data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    v = {
        "grade": rng.choice(["a", "b", "c"], n),
        "age": rng.normal(size=n),
        "member": rng.random(n) < 0.5,
        "visits": rng.integers(0, 9, n),
    }
    p = rng.uniform(0.02, 0.98, n)
    lift = 0.15 * (v["grade"] == "a") + 0.1 * v["member"] * (v["age"] > 0)
    return p, rng.random(n) < np.clip(p - 0.1 + lift, 0, 1), v


@pytest.mark.parametrize("calibrator", WITH_VARIABLES, ids=lambda c: repr(c).replace("\n", ""))
def test_levels_give_the_same_bits(calibrator, long_way):
    model = fitted(calibrator, levels_data)
    p, _, v = levels_data(12, seed=3)
    v["grade"][7] = "z"  # not in the fit
    for k in range(len(p)):
        row = {name: values[k : k + 1] for name, values in v.items()}
        as_lists = {name: values.tolist() for name, values in row.items()}
        missing = as_lists | {"grade": [None], "age": [None]}
        for form in (row, as_lists, missing):
            assert outcome(model.predict_proba, p[k : k + 1], form) == long_way(
                model.predict_proba, p[k : k + 1], form
            )


HOSTILE_SCORES = [
    None,
    0.3,
    True,
    "0.3",
    [],
    {"p": [0.3]},
    ["0.3"],
    [np.nan],
    [1.2],
    [[0.3, 0.7]],
    [[0.2, 0.3, 0.5]],
    [[0.2, 0.3], [0.5]],
    [[[0.3]]],
    [0.3 + 1j],
    [object()],
    np.array(0.3),
    np.array([0.3], dtype=object),
    np.array(["0.3"]),
    np.array([np.datetime64("2020-01-01")]),
    np.array([0.3], dtype=np.longdouble),
    np.empty((1, 0)),
    np.ones((1, 1, 1)),
    np.ma.array([0.3], mask=[True]),
    np.matrix([0.3]),
    range(1),
]
HOSTILE_VARIABLES = [
    None,
    True,
    [],
    [0.1, 2.0],
    [[0.1, 2.0, 3.0]],
    [[0.1, None]],
    [["a", 2.0]],
    [[0.1], [2.0]],
    {"v0": 0.1, "v1": 2.0},
    {"v0": [0.1]},
    {"v0": [0.1], "v1": [2.0, 3.0]},
    {"v0": [0.1], "v1": [None]},
    {"v0": [[0.1]], "v1": [2.0]},
    {"v0": [10**400], "v1": [2.0]},
    {"v0": None, "v1": [2.0]},
    {"a": [0.1], "b": [2.0]},
    {0: [0.1], "0": [2.0]},
    {"v0": np.array(["2020-01-01"], dtype="M8[D]"), "v1": [2.0]},
    np.array([[0.1, 2.0]], dtype=object),
    np.array([[0.1, 2.0]], dtype=complex),
    np.ma.array([[0.1, 2.0]], mask=[[True, False]]),
    np.rec.array([(0.1, 2.0)], dtype=[("v0", float), ("v1", float)]),
]


def shown(value):
    return f"{type(value).__name__} {value!r}"[:40].replace("\n", "")


@every
def test_hostile_inputs_get_the_same_answer_or_error(calibrator, long_way):
    model = fitted(calibrator, binary)
    good = np.array([[0.1, 2.0]])
    pairs = [(p, good) for p in HOSTILE_SCORES] + [([0.3], v) for v in HOSTILE_VARIABLES]
    refused = 0
    for p, v in pairs:
        found = outcome(model.predict_proba, p, v)
        assert found == long_way(model.predict_proba, p, v), (shown(p), shown(v))
        refused += isinstance(found[0], type)
    assert refused > len(pairs) / 3
