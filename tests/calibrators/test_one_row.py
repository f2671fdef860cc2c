"""Plain arrays and single rows take short cuts; answers are those of columns of pandas."""

import numpy as np
import pandas as pd
import pytest

from cases.calibrators import binary, every, fitted, many


def forms(p, v):
    """Yield the same scores and variables in every plain form."""
    for scores in (p, p.tolist(), p[::-1][::-1]):
        yield scores, v
    if p.ndim == 1:
        for scores in (tuple(p.tolist()), p[:, None], np.column_stack([1 - p, p])):
            yield scores, v
    yield p, v.tolist()
    yield p, np.asfortranarray(v)
    yield p, {"v0": v[:, 0], "v1": v[:, 1].astype(object)}
    yield p, {"v1": v[:, 1].tolist(), "v0": tuple(v[:, 0].tolist())}


@every
@pytest.mark.parametrize("data", [binary, many])
def test_every_plain_form_gives_the_same_bits(calibrator, data):
    model = fitted(calibrator, data)
    p, _, v = data(12, seed=7)
    v[3, 0], v[5, 1], v[6, 0], v[7, 0] = np.nan, np.nan, np.inf, -1e30
    for rows in [slice(k, k + 1) for k in (0, 3, 5, 6, 7)] + [slice(0, 12)]:
        scores = pd.DataFrame(p[rows]) if p.ndim == 2 else pd.Series(p[rows])
        wanted = model.predict_proba(scores, pd.DataFrame(v[rows], columns=["v0", "v1"]))
        for form in forms(p[rows], v[rows]):
            assert (model.predict_proba(*form) == wanted).all()
