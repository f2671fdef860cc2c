import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc
from varcal.exceptions import InputError

seeds = st.integers(0, 2**32 - 1)


def draw(seed, n=60, k=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    return y, p, np.round(rng.normal(size=n), 1), rng


def by_hand(score, hit, v, n_bins=10):
    """Compute the error as in the paper, with pandas qcut and groupby."""
    codes = pd.qcut(v, n_bins, labels=False, duplicates="drop")
    frame = pd.DataFrame({"b": codes, "s": score, "h": hit}).groupby("b").agg(["mean", "size"])
    gap = (frame["s"]["mean"] - frame["h"]["mean"]).abs()
    return float((gap * frame["s"]["size"]).sum() / frame["s"]["size"].sum())


@settings(max_examples=30)
@given(seeds, st.integers(2, 5))
def test_ece_and_vece_as_the_paper_computes_them(seed, k):
    y, p, v, _ = draw(seed, k=k)
    score, hit = p.max(axis=1), p.argmax(axis=1) == y
    assert vc.ece(y, p) == pytest.approx(by_hand(score, hit, score), abs=1e-12)
    assert vc.vece(y, p, v) == pytest.approx(by_hand(score, hit, v), abs=1e-12)
    per_class = [by_hand(p[:, c], y == c, v) for c in range(k)]
    assert vc.vece(y, p, v, event="classwise") == pytest.approx(np.mean(per_class), abs=1e-12)


@settings(max_examples=30)
@given(seeds)
def test_binary_forms_agree(seed):
    y, p, v, _ = draw(seed, k=2)
    one, two = p[:, 1], np.column_stack([1 - p[:, 1], p[:, 1]])
    for event in ("correct", "positive", "classwise"):
        assert vc.vece(y, one, v, event=event) == pytest.approx(
            vc.vece(y, two, v, event=event), abs=1e-12
        )
    positive = vc.vece(y, one, v, event="positive")
    assert positive == pytest.approx(by_hand(one, y == 1, v), abs=1e-12)
    assert vc.vece(y, one, v, event="classwise") == pytest.approx(positive, abs=1e-12)
    signed = vc.vece(y, one, v, event="positive", side="over")
    under = vc.vece(y, 1 - one, v, event="positive", pos_label=0, side="under")
    assert under == pytest.approx(signed, abs=1e-12)


@settings(max_examples=30)
@given(seeds)
def test_norms_and_sides(seed):
    y, p, v, _ = draw(seed)
    one, two, most = (vc.vece(y, p, v, norm=norm) for norm in (1, 2, "max"))
    assert one <= two + 1e-12 <= most + 2e-12
    over, under = vc.vece(y, p, v, side="over"), vc.vece(y, p, v, side="under")
    assert over + under == pytest.approx(one, abs=1e-12)
    assert max(vc.vece(y, p, v, side=side, norm="max") for side in ("over", "under")) == most
    score, hit = p.max(axis=1), p.argmax(axis=1) == y
    assert one >= abs(score.mean() - hit.mean()) - 1e-12


@settings(max_examples=30)
@given(seeds)
def test_order_and_scale_of_weights_do_not_matter(seed):
    y, p, v, rng = draw(seed)
    w = rng.integers(0, 4, len(y)) + (np.arange(len(y)) == 0)
    order = rng.permutation(len(y))
    base = vc.vece(y, p, v, sample_weight=w)
    assert vc.vece(y[order], p[order], v[order], sample_weight=w[order]) == pytest.approx(
        base, abs=1e-12
    )
    assert vc.vece(y, p, v, sample_weight=w * 7.3) == pytest.approx(base, abs=1e-12)
    cuts = [-9, -0.5, 0, 0.5, 9]
    repeated = [np.repeat(x, w, axis=0) for x in (y, p, v)]
    assert vc.vece(*repeated, bins=cuts, classes=[0, 1, 2]) == pytest.approx(
        vc.vece(y, p, v, bins=cuts, sample_weight=w), abs=1e-12
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"event": "corect"}, "did you mean 'correct'"),
        ({"event": "positive"}, "event is 'positive', which needs two classes; there are 3"),
        ({"pos_label": 1}, "pos_label is 1, which has no meaning"),
        ({"norm": 3}, "norm must be one of 1, 2, 'max'; got 3"),
        ({"norm": True}, "norm must be one of"),
        ({"side": "up"}, "side must be one of"),
    ],
)
def test_wrong_options(options, message):
    y, p, v, _ = draw(0)
    with pytest.raises(InputError) as caught:
        vc.vece(y, p, v, **options)
    assert message in str(caught.value)


def test_a_variable_is_needed():
    with pytest.raises(InputError, match="v is None"):
        vc.vece([0, 1], [0.1, 0.2], None)


ADULT = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
PAPER = {  # uncalibrated figures of the paper's model outputs, to six decimals
    "adult": (2500, 0.206657, dict.fromkeys(ADULT, 0.206657)),
    "bank": (1000, 0.046935, {"age": 0.046935, "balance": 0.053510}),
    "cardio": (6000, 0.021135, {"age": 0.023212}),
    "cifar": (2000, 0.019002, {"median_rt": 0.019190}),
}  # fmt: skip


@pytest.mark.parametrize("name", PAPER)
def test_published_figures_to_six_decimals(name, paper_data):
    n_cal, ece, veces = PAPER[name]
    data = pd.read_csv(paper_data / f"{name}_out.csv.gz")
    if name == "cardio":
        data = data[data["age"] > 32]
    test = data.iloc[np.sort(np.random.RandomState(0).permutation(len(data))[n_cal:])]
    probs = [column for column in data if column.startswith("prob_")]
    assert vc.ece("actual", probs, data=test) == pytest.approx(ece, abs=5e-7)
    for variable, vece in veces.items():
        assert vc.vece("actual", probs, variable, data=test) == pytest.approx(vece, abs=5e-7)
