# %% [markdown]
# # Monitoring
#
# A repaired network is in use. Outcomes arrive day by day, and somebody looks every day. On day 11
# something breaks: 40 % of the high incomes of married people get lost on their way into the labels.

# %%
import matplotlib.pyplot as plt
import numpy as np

import varcal as vc

plt.rcParams["figure.dpi"] = 80

income = vc.datasets.load_income()
past, new = income.part("audit"), income.part("test")
names = ["age", "marital-status", "education-num", "hours-per-week", "sex"]
model = vc.VariableCalibrator().fit(past.p, past.y, {name: past[name] for name in names})
columns = {name: new[name] for name in names}
p, y = model.predict_proba(new.p, columns)[:, 1], new.y.copy()

rng = np.random.default_rng(0)
day = rng.permutation(np.repeat(np.arange(1, 25), 250))
married = new["marital-status"] == "Married-civ-spouse"
y[(day > 10) & married & (rng.random(len(y)) < 0.4)] = 0


def rows_of(which):
    return {"y": y[which], "p": p[which]} | {name: columns[name][which] for name in names}


# %% [markdown]
# ## Bins, chosen beforehand
#
# They come from past rows, whose outcomes play no part. The monitor ignores gaps within three points.

# %%
before = {"y": past.y, "p": past.p} | {name: past[name] for name in names}
bins = vc.make_bins("y", "p", data=before, monitor=0.03)
monitor = vc.Monitor(bins, alpha=0.05)

# %% [markdown]
# ## Day by day
#
# With `alpha=0.05` the probability of *ever* raising a false alarm is at most 5 %, however often we look.

# %%
for k in range(1, 15):
    status = monitor.update(rows_of(day == k), id=f"day {k}")
    if k in (5, 10) or status.alarm:
        print(f"day {k:2}: {status}")
    if status.alarm:
        break

# %%
_ = monitor.plot()

# %% [markdown]
# ## What happened?
#
# The alarm names the place and the start of the change. Its interval allows for the search of both, so it
# is wide at first and may include 0. Look at the rows since then:

# %%
since = int(status.where.since.split()[1])
for group, which in {"married": married, "others": ~married}.items():
    rows = (day >= since) & (day <= k) & which
    print(f"{group:8} says {p[rows].mean():.0%}, happens {y[rows].mean():.0%}, {rows.sum()} rows")

# %% [markdown]
# Here the labels are wrong, not the model. Once they are corrected, `monitor.reset("labels corrected")`
# starts over and keeps the history. If the model were wrong, we would repair it on the rows since the
# change, and start a new monitor.
#
# ## Next
#
# - [Watch a model in production](../monitor.md): limit, late labels, guarantees
# - [Monitoring on a schedule](../guides/monitoring.md): cron, Airflow, exit codes
