"""Numbers are read from Arrow's memory as pyarrow itself converts them."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from varcal._input.arrow_numbers import arrow_of, codes_of, numpy_of, valid_rows  # noqa: E402

TYPES = ["double", "float", *(f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64))]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("sizes", [(), (0,), (5,), (3, 0, 9, 1), (70, 33)])
def test_numbers_without_nulls_are_those_of_pyarrow(name, sizes):
    kind = getattr(pa, {"double": "float64", "float": "float32"}.get(name, name))()
    rng = np.random.default_rng(0)
    chunks = [pa.array(rng.integers(0, 100, n), pa.int64()).cast(kind) for n in sizes]
    column = pa.chunked_array(chunks, kind)
    for part in (column, column.slice(2), column.slice(1, 3)):
        found, expected = numpy_of(part), part.to_numpy()
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_nulls_become_nan(kind):
    rng = np.random.default_rng(1)
    values = [None if rng.random() < 0.3 else float(rng.integers(9)) for _ in range(100)]
    column = pa.chunked_array([pa.array(values[:37], kind), pa.array(values[37:], kind)])
    for part in (column, column.slice(3), column.slice(30, 20)):
        expected = np.array([np.nan if one is None else one for one in part.to_pylist()])
        assert numpy_of(part).dtype == np.float64
        assert np.array_equal(numpy_of(part), expected, equal_nan=True)


def test_other_types_and_integers_with_nulls_are_left_to_others():
    for column in (
        pa.array(["a"]),
        pa.array([True]),
        pa.array([1, None]),
        pa.array([1], pa.timestamp("s")),
    ):
        assert numpy_of(column) is None


def test_codes_and_validity_of_slices():
    array = pa.array([3, None, 1, None, 0, 2, None, 1, 1, None], pa.int32())
    for part in (array, array.slice(1), array.slice(3, 5), array.slice(10)):
        expected = [-1 if one is None else one for one in part.to_pylist()]
        assert codes_of(part).tolist() == expected
        assert codes_of(part).dtype == np.intp
        assert valid_rows(part).tolist() == [one is not None for one in part.to_pylist()]


def test_floats_go_back_to_arrow():
    cells = np.random.default_rng(2).random((7, 2))
    for values in (cells[:, 1], cells[:0, 1], cells[:, 0].copy()):
        assert arrow_of(values).equals(pa.array(values))
