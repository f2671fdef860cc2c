import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from varcal._binning.bins import CutGrid

floats = st.floats(allow_nan=False, allow_infinity=False)


def neighbours(values):
    values = np.asarray(values, float)
    with np.errstate(over="ignore"):
        near = [np.nextafter(values, -np.inf), values, np.nextafter(values, np.inf)]
    return np.concatenate([*near, [np.inf, -np.inf, 0.0, -0.0]])


@given(
    st.lists(st.one_of(floats, st.integers(-40, 40).map(float)), min_size=1, max_size=120),
    st.lists(floats, max_size=50),
)
def test_bins_are_those_of_a_search_to_the_last_float(cuts, values):
    cuts = np.unique(cuts)
    values = np.concatenate([neighbours(cuts), values])
    found = CutGrid.of(cuts.tolist()).find(values)
    np.testing.assert_array_equal(found, np.searchsorted(cuts, values))
