"""Rows that would crash PyArrow are refused before it sees them, and lines are named."""

import gzip
import io
import json
import re

import numpy as np
import pyarrow as pa
import pytest

import varcal as vc
from cases.command_line import run
from varcal.exceptions import InputError

DEEP_LIST = b'{"y": 1, "p": 0.5, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DEEP_OBJECT = b'{"x": ' * 100_000 + b"1" + b"}" * 100_000
#: Each ends the process inside PyArrow if it is let in, with what the message says instead.
CRASHES = {
    "null alone": (b"null\n", "line 1 of .* is not a JSON object: 'null'"),
    "null first": (b'null\n{"y": 1, "p": 0.5}\n', "line 1 of .* is not a JSON object: 'null'"),
    "null after spaces": (b'\n  \t null\n{"y": 1}\n', "line 2 of .* is not a JSON object"),
    "deep list": (DEEP_LIST, "line 1 of .* is nested more than 100 levels deep"),
    "deep object": (DEEP_OBJECT + b"\n", "line 1 of .* is nested more than 100 levels deep"),
    "deep and unfinished": (b'{"y": 1}\n' + b'{"x":' * 100_000 + b"}", "line 2 .* is nested more"),
}


@pytest.mark.parametrize("name", CRASHES)
def test_lines_that_crash_pyarrow_are_refused(name, tmp_path, applied):
    content, message = CRASHES[name]
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match=message):
        vc.vece("y", "p", "x", data=str(path))
    with pytest.raises(InputError, match=message):
        applied(content)
    assert not (tmp_path / "out.jsonl").exists()
    for given in (path, "-"):
        columns = ("--format", "jsonl", "--label", "y", "--prob", "p")
        done = run("audit", given, *columns, given=content)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert re.search(message, done.stderr)


@pytest.fixture
def applied(tmp_path):
    """Calibrate a file of JSON lines, and return the number of its rows."""
    sim = vc.datasets.make_gap(100)
    fitted = vc.calibrators.BetaCalibrator().fit(sim.p, sim.y)

    def read(content):
        path = tmp_path / "rows.jsonl"
        path.write_bytes(content)
        return vc.apply(fitted, path, tmp_path / "out.jsonl", p="p").n_rows

    return read


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"1", "line 40,002 of .* is not a JSON object: '1'"),
        (b"[1]", "line 40,002 of .* is not a JSON object"),
        (b'"x"', "line 40,002 of .* is not a JSON object"),
        (b'{"p": [1}', "changed from number to array in line 40,002"),
        (b'{"p": {"b": 1}', "changed from number to object in line 40,002"),
        (b'{"p: {1}', "in line 40,002"),
        (b'{"p": "x"}', "changed from number to string in line 40,002"),
        (b'{"p": 1', "Missing a comma or '}' .* in line 40,002"),
    ],
)
def test_faults_are_named_with_the_line(line, fault, applied):
    with pytest.raises(InputError, match=fault):
        applied(b"\n" + b'{"p": 0.5, "text": "some text"}\n' * 40_000 + line + b"\n")


def test_depth_is_allowed_up_to_the_limit(applied):
    def nested(depth):
        return b'{"p": 0.5, "a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}\n"

    assert applied(nested(100) * 2) == 2
    with pytest.raises(InputError, match="nested more than"):
        applied(nested(101))
    # Brackets in texts do not count, nor do many of them side by side.
    texts = {"p": 0.5, "text": '\\"[{' * 200, "tags": ["}]\\"] * 200, "äöü[": "\\"}
    for ascii_only in (True, False):
        assert applied(json.dumps(texts, ensure_ascii=ascii_only).encode()) == 1


def test_a_line_without_end_is_not_collected_forever(tmp_path, monkeypatch):
    monkeypatch.setattr("varcal._files.read_rows.MAX_LINE_BYTES", 1 << 21)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * (1 << 23) + b'"}\n')
    with pytest.raises(InputError, match=r"line 2 of .* is longer than 2 MB"):
        vc.vece("y", "p", "x", data=str(path))


def forged(table, old, new):
    """Return an Arrow file in which some bytes of a buffer are replaced."""
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    content = out.getvalue()
    assert content.count(old) == 1
    return content.replace(old, new)


def test_offsets_and_codes_outside_of_their_buffers_are_refused(tmp_path):
    """PyArrow takes both on trust, and reading the value then ends the process."""
    texts = pa.table({"y": [0, 1], "p": [0.5, 0.5], "x": pa.array(["abc", "defg"])})
    levels = pa.DictionaryArray.from_arrays(pa.array([2, 1], pa.int32()), ["u", "v", "w"])
    coded = pa.table({"y": [0, 1], "p": [0.5, 0.5], "x": levels})
    offsets = np.array([0, 3, 7], "<i4").tobytes()
    codes = np.array([2, 1], "<i4").tobytes()
    for k, content in enumerate(
        [
            forged(texts, offsets, np.array([0, 2**30, 7], "<i4").tobytes()),
            forged(coded, codes, np.array([2, 2**30], "<i4").tobytes()),
        ]
    ):
        path = tmp_path / f"forged-{k}.arrow"
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot read .* as arrow"):
            vc.vece("y", "p", "x", data=str(path))
        done = run("audit", path, "--label", "y", "--prob", "p")
        assert done.returncode == 2 and "cannot read" in done.stderr


def test_names_of_arrow_columns_that_are_not_utf8_are_refused(tmp_path):
    """Found by fuzzing: a raw UnicodeDecodeError."""
    path, rows = tmp_path / "rows.arrow", pa.table({"y": [0, 1], "p": [0.2, 0.7], "length": [1, 2]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    path.write_bytes(path.read_bytes().replace(b"length", b"\xfbength"))
    with pytest.raises(InputError, match=r"cannot read .*rows\.arrow' as arrow: 'utf-8' codec"):
        vc.vece("y", "p", "length", data=path)
