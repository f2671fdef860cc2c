"""Every parser that sees bytes or texts of strangers: how a case is made, and what uses it.

A target takes the random numbers of a case. It returns normally, or raises a `VarcalError`; all
else is a failure. Targets with `bytes` in their name also take bytes, for guided fuzzing.
"""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import click
import numpy as np
import pyarrow as pa
from pyarrow import parquet

import varcal as vc
from torture.forged_files import forged
from torture.mutate import TOKENS, mutated, text
from torture.saved_results import SavedResult, saved_results
from varcal.cli import main
from varcal.exceptions import InputError

Target = Callable[[Random], None]


@cache
def folder() -> Path:
    """Return a folder in memory, if there is one, for the files of this process."""
    home = "/dev/shm" if os.path.isdir("/dev/shm") else None
    kept = tempfile.TemporaryDirectory(prefix="varcal-torture-", dir=home)
    globals()["_kept"] = kept  # removed with the process
    return Path(kept.name)


# ------------------------------------------------------------------ text files

CSV = [
    b"id,y,p,age,city\n1,0,0.25,31,Rome\n2,1,0.75,54,Paris\n3,1,0.5,,\n",
    b"y;p;name\n1;0,83;\"a;b\"\n0;0,17;'x'\n",
    b"y\tp\tday\r\n1\t0.5\t2024-01-31\r\n0\t.25\t2024-02-29 10:00:00\r\n",
    b'y|p|t\n1|1e-3|"two\nlines"\n0|-0|"say ""hi"""\n',
    "y,p,größe\n1,0.5,weiß\n".encode(),
    "y,p,größe\n1,0.5,weiß\n".encode("cp1252"),
    "y,p\n1,0.5\n".encode("utf-16"),
    b"y,p\n" + b"1,0.5\n" * 50,
]
JSON_LINES = [
    b'{"y": 1, "p": 0.5, "age": 31}\n{"y": 0, "p": 0.25, "age": null}\n',
    b'{"y": 1, "p": 0.5, "tags": ["a", {"b": [1, 2]}]}\n{"y": 0, "p": 1, "tags": []}\n',
    b'{"y": true, "p": 1e-3, "day": "2024-01-31"}\n{"y": false, "p": 0.9, "day": "x\\"y"}\n',
    b'{"a": {"b": {"c": null}}}\n{"a": null}\n{}\n',
]


def _apply(data: bytes, kind: str, **stated: str | None) -> int:
    """Calibrate the rows of a file of some format, every column copied; return how many."""
    path = folder() / "rows"
    path.write_bytes(data)
    out = folder() / "calibrated.parquet"
    done = vc.apply(_beta(), path, out, p="p", format=kind, **stated)
    _look_at(parquet.read_table(out))
    return done.n_rows


@cache
def _beta() -> vc.calibrators.BetaCalibrator:
    return vc.calibrators.BetaCalibrator().fit(*_few_rows())


def csv_bytes(data: bytes) -> None:
    """Read CSV, however it is written."""
    _apply(data, "csv")


def json_bytes(data: bytes) -> None:
    """Read JSON lines."""
    _apply(data, "jsonl")


def text_file(random: Random) -> None:
    """Read forged CSV and JSON lines from a file, gzipped or not."""
    jsonl = random.random() < 0.4
    data = mutated(random, random.choice(JSON_LINES if jsonl else CSV))
    if random.random() < 0.2:
        data = gzip.compress(data, 1)
        data = mutated(random, data) if random.random() < 0.5 else data
    stated = {}
    if random.random() < 0.2 and not jsonl:
        stated = {
            "sep": random.choice((None, ";", "tab", ",")),
            "decimal": random.choice((None, ".", ",")),
            "encoding": random.choice((None, "latin-1", "utf-16", "cp1252", "utf-8")),
        }
    _apply(data, "jsonl" if jsonl else "csv", **stated)


# ------------------------------------------------------------------ binary files


@cache
def _binary(kind: str) -> bytes:
    table = pa.table(
        {
            "y": [0, 1, 1] * 5,
            "p": [0.1, 0.5, 0.9] * 5,
            "text": ["a", "bb", None] * 5,
            "level": pa.array(["x", "yy", "x"] * 5).dictionary_encode(),
            "list": [[1], [2, 3], None] * 5,
            "day": pa.array([0, 1, 2] * 5, pa.timestamp("us", "UTC")),
        }
    )
    out = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(table, out)
    else:
        maker = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with maker(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


def binary_bytes(data: bytes, kind: str = "arrow") -> None:
    """Read a binary file: all of its columns in chunks, and two for a table."""
    _apply(data, "parquet" if kind == "parquet" else "arrow")
    path = folder() / f"rows.{'parquet' if kind == 'parquet' else 'arrow'}"
    path.write_bytes(data)
    vc.bin_table("y", "p", "level", data=str(path), n_bins=2)


def _look_at(rows: pa.Table | pa.RecordBatch) -> None:
    """Read every value; Python has no dates after the year 9999."""
    for column in rows.columns:
        with suppress(OverflowError, ValueError):
            column.to_pylist()


def arrow(random: Random) -> None:
    """Read a forged Arrow file, in the file format or the stream format."""
    kind = random.choice(("arrow", "stream"))
    binary_bytes(mutated(random, _binary(kind)), kind)


def parquet_file(random: Random) -> None:
    """Read a forged Parquet file."""
    binary_bytes(mutated(random, _binary("parquet")), "parquet")


def column_names(random: Random) -> None:
    """Audit along columns with odd names, from a Parquet file."""
    letters = "ab\0\n\"'\\{}[]<>&;%$é日\u202e \t=.,"
    names = {text(random, letters, 8) for _ in range(3)} - {"y", "p"}
    columns = {"y": [0, 1] * 4, "p": [0.2, 0.7] * 4} | {n: list(range(8)) for n in sorted(names)}
    path = folder() / "names.parquet"
    parquet.write_table(pa.table(columns), path)
    found = vc.bin_table("y", "p", sorted(names)[0] if names else None, data=str(path), n_bins=2)
    assert found.to_frame is not None


# ------------------------------------------------------------------ texts

LETTERS = "0123456789.,%-+eE xnaif∞=;:'\"\\\t\0é[]{}"


def option_text(random: Random) -> None:
    """Read texts of options: sizes, names, separators, encodings."""
    given = text(random, LETTERS, 8)
    if random.random() < 0.3:
        given = random.choice(TOKENS).decode("utf-8", "replace")
    flag = random.choice(("--limit", "--level", "--variables", "--sep", "--encoding"))
    command = main.commands["audit"]
    try:
        with command.make_context("audit", ["rows.csv", "-y", "y", "-p", "p", f"{flag}={given}"]):
            pass
    except click.ClickException:
        pass


CALIBRATORS = [
    *(
        vc.VariableCalibrator,
        vc.calibrators.TreeCalibrator,
        vc.calibrators.AugmentedCalibrator,
        vc.calibrators.BetaCalibrator,
    ),
    *(
        vc.calibrators.HistogramCalibrator,
        vc.calibrators.ScalingBinningCalibrator,
        vc.calibrators.TemperatureCalibrator,
    ),
]


def parameter_text(random: Random) -> None:
    """Fit calibrators with odd parameters, as ``--param NAME=VALUE`` gives them."""
    made = random.choice(CALIBRATORS)
    known = [name for name in made().get_params(deep=False) if name != "calibrator"]
    values = [None, True, -1, 0, 1, 3, 0.5, 1e9, "x", [], {}, float("nan"), ""]
    given = {random.choice(known): random.choice(values)} if known else {}
    p, y = _few_rows()
    v = {"a": np.arange(40.0)} if made in CALIBRATORS[:3] else None
    q = made(**given).fit(p, y, v).predict_proba(p, v)
    assert np.isfinite(q).all() and np.allclose(q.sum(1), 1)


@cache
def _few_rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=40)
    return p, (rng.uniform(size=40) < p).astype(int)


DATES = [
    *("2024-01-31", "31.01.2024", "01/31/2024", "31/01/2024", "31-Jan-2024", "January 31, 2024"),
    *("2024-01-31T23:59:59.999999Z", "2024-01-31 10:00+02:00", "1/2/2024", "0001-01-01"),
    *("9999-12-31T23:59:59", "2024-02-30", "2024-13-01", "24:00", "٢٠٢٤-٠١-٣١", ""),
]


def dates_bytes(data: bytes) -> None:
    """Bin a column of texts that may be dates."""
    texts = np.array(data.decode("utf-8", "replace").split("\n"), dtype=object)
    y = np.arange(len(texts)) % 2
    vc.bin_table(y, np.full(len(texts), 0.5), texts, n_bins=2, classes=(0, 1))


def date_texts(random: Random) -> None:
    """Read forged texts as dates."""
    texts = random.choices(DATES, k=random.choice((1, 1, 2, 3)))
    forged = [mutated(random, one.encode()).decode("utf-8", "replace") for one in texts]
    dates_bytes("\n".join(forged * random.choice((1, 3))).encode())


# ------------------------------------------------------------------ saved files


@cache
def _saved() -> list[SavedResult]:
    """Return a saved file of every kind."""
    return list(saved_results(folder()))


def saved_file(random: Random) -> None:
    """Load a forged file of every saved kind, and use what was loaded."""
    one = random.choice(_saved())
    # Half of the forgeries keep the form of the document, change a value in it, and seal it anew.
    if random.random() < 0.5:
        one.path.write_bytes(forged(one.text, random)[1])
    else:
        one.path.write_bytes(mutated(random, one.text.encode()))
    one.use(one.load(one.path))


def path_text(random: Random) -> None:
    """Find and write files under odd names."""
    # Not from the root: a glob there would walk the whole disk.
    name = text(random, "ab./*?[]~\0\n é\udc80-", 12).lstrip("/")
    with suppress(InputError):
        vc.bin_table("y", "p", data=name)
    if "/" not in name and name not in ("", ".", "..", "~"):
        try:
            _beta().save(folder() / name)
            (folder() / name).unlink()
        except InputError:
            assert "\0" in name


#: Each target with its share of all cases; shares go by the time that a case takes.
TARGETS: dict[str, tuple[Target, int]] = {
    "option texts": (option_text, 300),
    "dates": (date_texts, 150),
    "text files": (text_file, 100),
    "Arrow files": (arrow, 40),
    "Parquet files": (parquet_file, 25),
    "saved files": (saved_file, 10),
    "paths": (path_text, 40),
    "column names": (column_names, 2),
    "parameters": (parameter_text, 3),
}
#: Targets for guided fuzzing, with examples to begin with.
GUIDED = {
    "csv": (csv_bytes, CSV),
    "json": (json_bytes, JSON_LINES),
    "dates": (dates_bytes, [one.encode() for one in DATES]),
}
