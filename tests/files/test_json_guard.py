"""Lines that would crash PyArrow are refused before it sees them, from wherever they come."""

import gzip
import io
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc
from cases.command_line import run
from varcal._files import json_guard
from varcal._files.json_guard import MAX_DEPTH, check_lines
from varcal._files.open_files import read_json
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
    "deep and unfinished": (b'{"y": 1}\n' + b'{"x":' * 100_000 + b"}", "line 2 .* nested"),
}


@pytest.mark.parametrize("name", CRASHES)
@pytest.mark.parametrize("how", ["plain", "gz", "stdin", "apply", "data"])
def test_lines_that_crash_pyarrow_are_refused(name, how, tmp_path):
    content, message = CRASHES[name]
    path = tmp_path / ("rows.jsonl.gz" if how == "gz" else "rows.jsonl")
    path.write_bytes(gzip.compress(content) if how == "gz" else content)
    if how == "data":
        with pytest.raises(InputError, match=message):
            vc.vece("y", "p", "x", data=str(path))
    elif how == "apply":
        sim = vc.datasets.make_gap(100)
        fitted = vc.BetaCalibrator().fit(sim.p, sim.y)
        with pytest.raises(InputError, match=message):
            vc.apply(fitted, path, tmp_path / "out.csv", p="p")
        assert not (tmp_path / "out.csv").exists()
    else:
        source = "-" if how == "stdin" else path
        done = run(
            *("audit", source, "--format", "jsonl", "--label", "y", "--prob", "p"), given=content
        )
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert re.search(message, done.stderr)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"1", "is not a JSON object"),
        (b"[1]", "is not a JSON object"),
        (b'"x"', "is not a JSON object"),
        (b'{"a": 1} null {"a": 2}', "has more than one JSON object"),
        (b'{"a": 1}{"a": 2}', "has more than one JSON object"),
        (b'{"a": [1}', "is not a JSON object"),
        (b'{"a": {"b": 1}', "is not a complete JSON object"),
        (b'{"a: {1}', "is not a JSON object"),
        (b'{"a": 1', "is not a JSON object"),
    ],
)
def test_faults_are_named_with_the_line(line, fault):
    with pytest.raises(InputError, match=rf"line 1,235 of 'x' {fault}"):
        check_lines(b'{"a": 1}\n' + line + b"\n", 1_234, "'x'")


def test_depth_is_allowed_up_to_the_limit():
    def nested(depth):
        return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}\n"

    check_lines(nested(MAX_DEPTH), 1, "'x'")
    assert read_json(nested(MAX_DEPTH)).num_rows == 1
    with pytest.raises(InputError, match="nested more than"):
        check_lines(nested(MAX_DEPTH + 1), 1, "'x'")


def test_a_line_without_end_is_not_collected_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(json_guard, "MAX_LINE_BYTES", 1 << 21)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * (1 << 23) + b'"}\n')
    with pytest.raises(InputError, match=r"line 2 of .* is longer than 2 MB"):
        vc.vece("y", "p", "x", data=str(path))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('{}[]"\\\n ä', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.text('a{"\\', max_size=4), VALUES, max_size=4), max_size=4))
def test_every_object_that_json_writes_is_let_in(rows):
    for ascii_only in (True, False):
        lines = [json.dumps(row, ensure_ascii=ascii_only) for row in rows]
        check_lines("\n".join(lines).encode(), 1, "'x'")


@given(st.text('{}[]"\\,:1n \n', max_size=30).map(str.encode))
def test_what_is_let_in_is_one_object_per_line_if_it_is_json_at_all(block):
    try:
        check_lines(block, 1, "'x'")
    except InputError:
        return
    for line in block.split(b"\n"):
        if not line.strip():
            continue
        try:
            value, end = json.JSONDecoder().raw_decode(line.decode().strip())
        except ValueError:
            continue
        assert isinstance(value, dict) and end == len(line.strip())


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
