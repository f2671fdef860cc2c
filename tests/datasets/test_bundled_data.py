"""The bundled rows: published facts about them, and the script that made the file."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from varcal.datasets import Dataset
from varcal.exceptions import InputError, MissingDependencyError


class TestAdult:
    def test_shape(self, adult):
        assert isinstance(adult, Dataset)
        assert len(adult) == len(adult.y) == len(adult.p) == 16_281
        assert repr(adult) == "Dataset('adult', 16,281 rows, 14 variables)"
        assert adult.p.dtype == np.float64
        assert set(np.unique(adult.y)) == {0, 1}
        assert "CC BY 4.0" in adult.licence and "Kohavi" in adult.source

    def test_facts_that_uci_publishes(self, adult):
        """From adult.names: 16,281 test rows, 23.62 % above 50K; 15,060 rows without unknowns."""
        assert adult.y.sum() == 3846
        categorical = [column for column in adult.X.values() if column.dtype == object]
        assert len(categorical) == 8
        complete = np.logical_and.reduce([column != None for column in categorical])  # noqa: E711
        assert complete.sum() == 15_060
        assert (adult["age"].min(), adult["age"].max()) == (17, 90)
        assert adult["capital-gain"].max() == 99_999
        assert len(set(adult["education"])) == 16
        assert set(adult["sex"]) == {"Female", "Male"}

    @pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
    def test_to_frame(self, adult, backend):
        pytest.importorskip(backend)
        import narwhals as nw

        frame = nw.from_native(adult.to_frame(backend))
        assert frame.columns == ["y", "p", *adult.X]
        assert frame["workclass"].null_count() == 963
        assert frame["workclass"].to_list()[:2] == ["Private", "Private"]
        np.testing.assert_array_equal(frame["p"].to_numpy(), adult.p)

    def test_unknown_or_absent_library(self, adult, monkeypatch):
        with pytest.raises(InputError, match="backend must be one of") as caught:
            adult.to_frame("panda")
        assert caught.value.hint == "did you mean 'pandas'?"
        monkeypatch.setitem(sys.modules, "polars", None)  # as if it were not installed
        with pytest.raises(MissingDependencyError, match="needs polars"):
            adult.to_frame("polars")
