# %% [markdown]
# # Intersections
#
# A model can be right along every single column and wrong where two of them meet. This notebook plants
# such an error, shows that an audit of single columns misses it, finds it by a search that accounts
# for itself, and draws it.

# %%
import matplotlib.pyplot as plt
import numpy as np

import varcal as vc

plt.rcParams["figure.dpi"] = 80

income = vc.datasets.load_income()
rng = np.random.default_rng(1)
X = {name: income[name] for name in ("age", "sex", "education-num", "hours-per-week")}
p = income.p.clip(0.15, 0.85)

# Outcomes follow the probabilities, except for opposite errors in opposite corners of age and hours.
# The smaller the corner, the larger its error: over age alone, and over hours alone, they cancel.
young, short = X["age"] < 37, X["hours-per-week"] < 40
rate = p.copy()
for corner, sign in ((young & short, -1), (young & ~short, 1), (~young & short, 1)):
    rate[corner] += sign * 150 / corner.sum()
rate[~young & ~short] -= 150 / (~young & ~short).sum()
y = rng.random(len(p)) < rate

# %% [markdown]
# ## One column at a time

# %%
for row in vc.audit(y, p, X):
    print(f"{row.variable:15} {row.verdict:13} at most {100 * row.high:.1f} points")

# %% [markdown]
# Nothing is surely off by more than two points.

# %% [markdown]
# ## All slices of up to three columns
#
# `slices` searches all ranges of one column, all rectangles of two, and the best of three. Its p-values are
# valid for the whole search: outcomes drawn from the model's own probabilities are searched in the same
# way.

# %%
found = vc.slices(y, p, X, max_depth=2, draws=99)
print(found)

# %% [markdown]
# ## The surface of two columns

# %%
surface = vc.surface(y, p, {"age": X["age"], "hours": X["hours-per-week"]})
_ = surface.plot()

# %% [markdown]
# ## One number
#
# How much of the error can be predicted from these columns at all? At least this much, as a root mean
# square:

# %%
gap = vc.predictable_gap(y, p, X)
print(gap)

# %% [markdown]
# ## Repair it
#
# `VariableCalibrator` looks for interactions by itself. It learns from half of the rows, and is judged by
# the others.

# %%
learn = np.arange(len(p)) < 6_000
judge = ~learn


def part(rows):
    return {name: column[rows] for name, column in X.items()}


repair = vc.VariableCalibrator().fit(p[learn], y[learn], part(learn))
q = repair.predict_proba(p[judge], part(judge))[:, 1]
for name, corner in {
    "young, short hours": young & short,
    "older, short hours": ~young & short,
}.items():
    rows = corner[judge]
    before, after = (100 * (score[rows].mean() - y[judge][rows].mean()) for score in (p[judge], q))
    print(f"{name}: off by {before:+.0f} points before, {after:+.0f} after")

# %% [markdown]
# A little is left in both corners: 6,000 rows show most of the error, not all of it.
#
# ## Next
#
# - [Slices](../slices.md), and [surfaces and the predictable gap](../surface.md)
# - [Fairness review](../guides/fairness.md)
