"""Plain arrays and single rows take short cuts; answers and errors are those of the long way."""

import warnings

import numpy as np
import pytest

from cases.calibrators import binary, every, fitted, many


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


SCORES = [None, 0.3, "0.3", [], ["0.3"], [np.nan], [1.2], [[0.2, 0.3, 0.5]], [[0.2, 0.3], [0.5]]]
SCORES += [[object()], np.array(["0.3"]), np.ma.array([0.3], mask=[True]), np.matrix([0.3])]
VARIABLES = [None, True, [], [[0.1, 2.0, 3.0]], [["a", 2.0]], {"v0": 0.1, "v1": 2.0}]
VARIABLES += [{"v0": [0.1]}, {"v0": [0.1], "v1": [2.0, 3.0]}, {"v0": [0.1], "v1": [None]}]
VARIABLES += [{"v0": [10**400], "v1": [2.0]}, {"a": [0.1], "b": [2.0]}, {0: [0.1], "0": [2.0]}]
VARIABLES += [np.array([[0.1, 2.0]], dtype=complex), {"v0": ["2020-01-01"], "v1": [2.0]}]


@every
def test_hostile_inputs_get_the_same_answer_or_error(calibrator, long_way):
    model = fitted(calibrator, binary)
    pairs = [(p, np.array([[0.1, 2.0]])) for p in SCORES] + [([0.3], v) for v in VARIABLES]
    answers = [outcome(model.predict_proba, *pair) for pair in pairs]
    assert answers == [long_way(model.predict_proba, *pair) for pair in pairs]
    assert sum(isinstance(answer[0], type) for answer in answers) > len(pairs) / 3
