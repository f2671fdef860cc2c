"""Train a model on census rows, and find out along which columns it is wrong.

The model sees the work record only. It is audited along every column, also those that it did not
see. Needs pandas. Writes report.html.
"""

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

import varcal as vc

NUMBERS = ["education-num", "hours-per-week"]
TEXTS = ["workclass", "occupation"]


def main() -> None:
    """Train, audit, and write the report."""
    census = vc.datasets.load_census()
    train, test = pd.DataFrame(census.X_train), pd.DataFrame(census.X_test)
    model = make_pipeline(
        make_column_transformer(
            (SplineTransformer(extrapolation="constant"), NUMBERS),
            (OneHotEncoder(handle_unknown="ignore"), TEXTS),
        ),
        LogisticRegression(max_iter=1000),
    ).fit(train[:10_000], census.y_train[:10_000])

    hidden = test.drop(columns=[*NUMBERS, *TEXTS])
    audit = vc.audit_estimator(model, test[NUMBERS + TEXTS], census.y_test, variables=hidden)
    print(audit.sentence)
    for place in audit.places:
        rates = f"says {place.predicted:.0%}, happens {place.observed:.0%}"
        print(f"  {place.variable} {place.text}: {rates}")
    print(f"Repair it needs: {audit.advice}")
    audit.report("report.html", title="Incomes above $50,000")
    print("wrote report.html")


if __name__ == "__main__":
    main()
