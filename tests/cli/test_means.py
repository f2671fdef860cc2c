"""`varcal audit --mean`: the figures of the library, gates, and what is not available."""

import json

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from cases.command_line import run


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    rng = np.random.default_rng(0)
    age, years = rng.integers(18, 80, 3000), rng.uniform(0.2, 1, 3000)
    mu = np.exp(rng.normal(0, 0.5, 3000))
    y = rng.poisson(mu * years * np.where(age > 60, 1.6, 1.0)) / years
    data = pd.DataFrame({"y": y, "mu": mu, "age": age, "years": years})
    path = tmp_path_factory.mktemp("claims") / "claims.csv"
    data.to_csv(path, index=False)
    return path


def means(path, *more):
    return run("audit", str(path), "--mean", "--label", "y", "--prob", "mu", *more)


def test_it_says_what_the_library_says(claims):
    done = means(claims, "--exposure", "years")
    data = pd.read_csv(claims)
    found = vc.audit("y", "mu", data=data, outcome="mean", exposure="years")
    assert done.returncode == 0 and str(found).partition("Next")[0] in done.stdout
    assert "A/E 1." in done.stdout and "3,000 rows, 1 variable in" in done.stdout


def test_json_and_gate(claims, tmp_path):
    out = tmp_path / "audit.json"
    done = means(claims, "--exposure", "years", "--json", "--gate", "-o", str(out))
    assert done.returncode == 1
    shown = json.loads(done.stdout)
    assert shown["verdict"] == "repair" and not shown["passed"]
    assert json.loads(out.read_text())["targets"]["y"]["gap"] == shown["targets"]["y"]["gap"]


def test_a_difference_is_in_the_unit_of_the_label(claims):
    done = means(claims, "--limit", "1.5", "--gap", "difference", "--exposure", "years")
    assert done.returncode == 0 and "off by +0" not in done.stdout and "off by" in done.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--slices"], "--slices belongs to probabilities"),
        (["--prob", "years"], "--prob names several columns"),
        (["--gap", "difference"], "which difference between predicted and observed matters?"),
        (["--gap", "difference", "--limit", "2%"], "--limit 2% is not a difference"),
        (["--exposure", "nothing"], "nothing"),
        (["--from-logits"], "--from-logits belongs to probabilities"),
    ],
)
def test_wrong_use(claims, more, message):
    done = means(claims, *more)
    assert done.returncode == 2 and message in done.stderr


def test_options_of_means_need_mean(claims):
    done = run("audit", str(claims), "--label", "y", "--prob", "mu", "--gap", "relative")
    assert done.returncode == 2 and "pass --mean" in done.stderr
