# %% [markdown]
# # Audit and repair
#
# A network predicts from work records who earns more than $50,000. It was calibrated by its score.
# This notebook finds out for whom it is wrong, repairs it, and proves the repair on new rows.

# %%
import matplotlib.pyplot as plt

import varcal as vc

plt.rcParams["figure.dpi"] = 80

income = vc.datasets.load_income()
seen, new = income.part("audit"), income.part("test")
print(income)
print(
    f"{seen.y.mean():.1%} earn more than $50,000; the network says {seen.p.mean():.1%} on average"
)

# %% [markdown]
# ## By its score, it is right
#
# A reliability diagram groups people by what the network says. The dots should lie on the diagonal,
# and they do.

# %%
_ = vc.reliability(seen.y, seen.p, event="positive").plot()

# %% [markdown]
# ## Along other columns, it is not
#
# An audit looks along every column and ranks them by their uneven error. The intervals
# hold for all columns at once, so we may look at the worst one.

# %%
audit = vc.audit(seen.y, seen.p, seen.X)
for row in list(audit)[:5]:
    low, high = 100 * row.low, 100 * row.high
    print(f"{row.variable:15} {row.verdict:13} between {low:4.1f} and {high:4.1f} points")

# %%
_ = audit.plot()

# %%
_ = audit["age"].plot()

# %% [markdown]
# Below 30 the network says too much, from 38 to 58 too little. People with the same work record earn
# less when they are young.

# %%
_ = audit["marital-status"].plot()

# %% [markdown]
# ## How much repair does it need?
#
# Each repair is judged on rows that did not fit it. A shift and a curve of the score leave the errors.

# %%
print(audit.ladder)

# %% [markdown]
# ## Repair
#
# `VariableCalibrator` learns a correction from the score and all columns. It takes each column as far
# as the rows give evidence for it.

# %%
repair = vc.VariableCalibrator().fit(seen.p, seen.y, seen.X)
_ = repair.effects().plot("age")

# %% [markdown]
# ## Proof
#
# The second half of the people has played no part so far.

# %%
repaired = repair.predict_proba(new.p, new.X)
columns = {name: new[name] for name in ("age", "marital-status", "sex")}
proof = vc.compare(new.y, {"before": new.p, "repaired": repaired}, columns)
for name in columns:
    before, after = (100 * proof.row(one, "uneven", name).value for one in ("before", "repaired"))
    verdict = proof.row("repaired", "uneven", name).verdict
    print(f"{name:15} {before:4.0f} points before, {after:2.0f} after: {verdict}")

# %%
_ = proof.plot()

# %% [markdown]
# What is left along these columns is a point at most.
#
# ## Next
#
# - The repair reads age and family, which may not be allowed:
#   [which variables may I calibrate on?](../guides/which-variables.md)
# - [Slices](../slices.md): combinations of columns
