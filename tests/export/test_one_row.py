"""What a scorer and an exported Python file take for the score and the variables of one row."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from cases.calibrators import binary, fitted, many
from cases.exports import AGE, SEX, small
from varcal.exceptions import InputError


@cache
def both(model):
    """Return the scorer and the function of the Python file; reading the file takes a second."""
    names = {"__name__": "calibrator"}
    exec(model.to_python().text, names)
    return model.scorer(), names["calibrate"]


@pytest.mark.parametrize(
    "calibrator", [vc.calibrators.IsotonicCalibrator(), vc.calibrators.PlattCalibrator()]
)
def test_scores_of_single_precision_are_computed_with_in_double(calibrator):
    model = fitted(calibrator, binary)
    p = np.random.default_rng(1).random(300).astype(np.float32)
    wanted = model.predict_proba(p)[:, 1]
    for function in both(model):
        found = [function(each) for each in p]
        assert {type(each) for each in found} == {float}
        assert np.abs(np.array(found) - wanted).max() <= 1e-12


@pytest.mark.parametrize("bad", [None, "0.5", [0.5], np.array([0.5]), np.array([0.5, 0.5])])
def test_what_is_not_one_score_is_refused(bad):
    for function in both(fitted(vc.calibrators.PlattCalibrator(), binary)):
        with pytest.raises(ValueError, match="p must be a number"):
            function(bad)


@pytest.mark.parametrize("bad", [None, 0.5, [1.0], [0.5, 0.3, 0.1, 0.1, 0.0, 0.0]])
def test_what_is_not_one_score_per_class_is_refused(bad):
    model = fitted(vc.calibrators.TemperatureCalibrator(), many)
    for function in both(model):
        with pytest.raises(ValueError, match=r"p must be a sequence of \d numbers"):
            function(bad)
        with pytest.raises(ValueError, match="p must be a number; got 'a'"):
            function(["a"] * len(model.classes_))


def one_date(day):
    return {AGE: Decimal(40), SEX: None, "member": True, "day": day}


@pytest.mark.parametrize(
    ("given", "same"),
    [
        (np.datetime64("2024-05-01", "ns"), datetime(2024, 5, 1)),
        (np.datetime64("2024-05-01", "D"), datetime(2024, 5, 1)),
        (pd.Timestamp("2024-05-01"), datetime(2024, 5, 1)),
        (date(2024, 5, 1), datetime(2024, 5, 1)),
        ("2024-05-01", datetime(2024, 5, 1)),
        ("2024/5/1 02:00 +02", datetime(2024, 5, 1)),
        ("2024-05-01t00:00:00,0 gmt", datetime(2024, 5, 1)),
        (pd.NaT, None),
        (pd.NA, None),
        (np.datetime64("NaT"), None),
    ],
)
def test_dates_of_all_types(given, same):
    model = small()
    for function in both(model):
        assert function(0.4, one_date(given)) == function(0.4, one_date(same))


@pytest.mark.parametrize(
    ("form", "other"),
    [
        ("{0.year}/{0.month}/{0.day}", "2024-2-13T04:30:00.25"),
        ("{0:%d.%m.%Y}", "13.02.2024 4:30"),
        ("{0:%m/%d/%Y}", "02-13-2024 04:30"),
        ("{0:%d %B %Y}", "13-feb.-2024"),
        ("{0:%B %d, %Y}", "2024-02-13"),
    ],
)
def test_texts_are_read_as_in_the_fit(form, other, rng):
    p, days = rng.random(400), rng.integers(0, 90, 400)
    written = [form.format(datetime(2024, 1, 1) + timedelta(int(day))) for day in days]
    model = vc.calibrators.TreeCalibrator().fit(p, rng.random(400) < days / 90, {"day": written})
    assert model.to_python().check().n_rows == 200
    for text in (*written[:20], other):
        (_, wanted), day = model.predict_proba([0.4], {"day": [text]})[0], {"day": text}
        assert [function(0.4, day) for function in both(model)] == pytest.approx([wanted] * 2)
    with pytest.raises(InputError, match="day must be a date, or a text such as"):
        model.scorer()(0.4, {"day": "2024-02-30"})


def test_variables_of_another_kind_are_refused():
    score = small().scorer()
    with pytest.raises(InputError, match="v must be a mapping of the variables"):
        score(0.4)
    with pytest.raises(InputError, match="no column"):
        score(0.4, {AGE: 3})
    for function in both(small()):
        for number in (1714521600, 1714521600.0, np.float64(1714521600)):
            with pytest.raises(ValueError, match=r"day must be a date, or a text such as"):
                function(0.4, one_date(number))
        with pytest.raises(ValueError, match=r"must be a category; got 3"):
            function(0.4, one_date(None) | {SEX: 3})
        with pytest.raises(ValueError, match="must be a number; got "):
            function(0.4, one_date(None) | {AGE: np.True_})
        assert function(0.4, one_date(None) | {SEX: np.str_("new")}) == function(
            0.4, one_date(None) | {SEX: "new"}
        )


def test_durations_of_all_types_are_read_by_a_scorer_but_not_exported(rng):
    p = rng.random(200)
    waited = rng.integers(0, 1000, 200).astype("timedelta64[s]")
    late = waited.astype(int) > 500
    model = vc.calibrators.TreeCalibrator().fit(p, late, {"waited": waited})
    wanted = model.predict_proba([0.4], {"waited": [timedelta(minutes=15)]})[0, 1]
    for given in (timedelta(minutes=15), pd.Timedelta("15min"), np.timedelta64(15, "m")):
        assert model.scorer()(0.4, {"waited": given}) == pytest.approx(wanted)
    with pytest.raises(InputError, match=r"waited must be a duration.*; got 900"):
        model.scorer()(0.4, {"waited": 900.0})
    with pytest.raises(InputError, match="'waited' holds durations") as caught:
        model.to_python()
    assert "seconds" in caught.value.hint
