"""Text files in any dialect are read correctly and told about, or the user is asked."""

import gzip
import io
import warnings

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from cases.command_line import run
from varcal.exceptions import InputError, VarcalWarning

N = 400
HEAD_BYTES = 1 << 18  # of which separator and decimal mark are detected


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(8)
    p = rng.random(N).round(4)
    return pd.DataFrame(
        {
            "y": (rng.random(N) < p).astype(int),
            "p": p,
            "größe": rng.normal(170, 9, N).round(1),
            "stadt": np.array(["Köln", "Nîmes", "São; Paulo", 'a "b", c'])[rng.integers(0, 4, N)],
        }
    )


@pytest.fixture(scope="module")
def fitted(frame):
    return vc.calibrators.PlattCalibrator().fit(frame[["p"]], frame["y"])


@pytest.fixture
def as_read(fitted):
    def read(path, p="y", **stated):
        """Return the rows of a file, with types, and what is said about how it is read."""
        out = path.with_name("copy.parquet")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            vc.apply(fitted, path, out, p=p, **stated)
        rows = pd.read_parquet(out).drop(columns="p_calibrated")
        return rows, [str(one.message) for one in caught if one.category is VarcalWarning]

    return read


def write(tmp_path, content, name="in.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# What pandas writes is the reference.
WAYS = [
    (",", ".", "utf-8", ""),
    (";", ",", "utf-8", "semicolon-separated, decimal comma"),
    (";", ",", "cp1252", "semicolon-separated, decimal comma, cp1252"),
    (";", ".", "latin-1", "semicolon-separated, cp1252"),
    ("\t", ",", "utf-16", "tab-separated, decimal comma, UTF-16"),
    ("|", ".", "utf-8-sig", "pipe-separated"),
    (",", ",", "utf-8", "comma-separated, decimal comma"),
    (",", ".", "utf-32", "comma-separated, UTF-32"),
]


@pytest.mark.parametrize(("sep", "decimal", "encoding", "told"), WAYS)
def test_what_pandas_writes_is_read_told_and_written_alike(
    sep, decimal, encoding, told, frame, fitted, tmp_path, as_read
):
    text = frame.to_csv(sep=sep, decimal=decimal, index=False, lineterminator="\r\n")
    for content in (gzip.compress(text.encode(encoding)), text.encode(encoding)):
        path = write(tmp_path, content)
        back, said = as_read(path)
        pd.testing.assert_frame_equal(back, frame)
        assert said == ([f"{str(path)!r} read as {told}"] if told else [])
    stated = {"sep": sep, "decimal": decimal, "encoding": encoding}
    pd.testing.assert_frame_equal(as_read(path, **stated)[0], frame)
    with warnings.catch_warnings(action="ignore"):
        vc.apply(fitted, path, tmp_path / "out.csv")
    expected = frame.assign(p_calibrated=fitted.predict_proba(frame[["p"]])[:, 1])
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "out.csv", **stated), expected)
    # All but the new column has the same bytes.
    lines = (tmp_path / "out.csv").read_bytes().decode(encoding).split("\r\n")
    for line, before in zip(lines, text.split("\r\n"), strict=True):
        assert line.startswith(before)


def test_output_dialect_follows_the_extension(frame, fitted, tmp_path):
    frame.to_csv(tmp_path / "in.tsv", sep="\t", decimal=",", index=False)
    with pytest.warns(VarcalWarning, match="tab-separated, decimal comma"):
        vc.apply(fitted, tmp_path / "in.tsv", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").startswith("y;p;größe;")
    with pytest.warns(VarcalWarning, match="decimal comma"):
        vc.apply(fitted, tmp_path / "out.csv", tmp_path / "b.tsv", column="b")
    assert (tmp_path / "b.tsv").read_text(encoding="utf-8").startswith("y\tp\tgröße\t")
    # Parts with different decimal marks cannot be one text file, but one table.
    frame.to_csv(tmp_path / "dots.tsv", sep="\t", index=False)
    both = [tmp_path / "dots.tsv", tmp_path / "in.tsv"]
    with (
        pytest.warns(VarcalWarning),
        pytest.raises(InputError, match=r"dots\.tsv' is tab-separated, but .*decimal comma"),
    ):
        vc.apply(fitted, both, tmp_path / "both.csv")
    with pytest.warns(VarcalWarning):
        assert vc.apply(fitted, both, tmp_path / "both.parquet").n_rows == 2 * N


@pytest.mark.parametrize(
    ("text", "last"),
    [
        # a semicolon inside a text column of a comma file
        ("y,p,note\n1,0.5,a;b;c\n0,0.25,d;e;f\n", ["a;b;c", "d;e;f"]),
        ('y,p,"a;b"\n1,0.5,c;d\n', ["c;d"]),
        # commas in texts and names of a semicolon file
        ("y;p;income, USD\n1;0,5;3,25\n", [3.25]),
        ("y;p;note\n1;0.5;well, yes\n0;0.25;no\n", ["well, yes", "no"]),
        ('y;p;"a;b"\n1;0.5;"c;d"\n', ["c;d"]),
        # one column
        ("p\n0.5\n0.25\n", [0.5, 0.25]),
        # blank lines first, quoted line breaks, old line ends
        ('\n\ny;p;t\n1;0,5;"a\nb;c"\n', ["a\nb;c"]),
        ("y;p\r1;0,5\r0;0,25\r", [0.5, 0.25]),
        # lists of codes, dates and codes such as E10 are not numbers
        ('y,p,codes\n1,0.5,"1,3"\n0,0.25,"1,3,7"\n', ["1,3", "1,3,7"]),
        ("y;p;d\n1;0,5;31.12.2024\n0;0,25;01.02.2025\n", ["31.12.2024", "01.02.2025"]),
        ("y;p;c\n1;0,5;E10\n0;0,25;1.5\n", ["E10", "1.5"]),
        # missing values and signs
        ("y;p;v\n1;0,5;NA\n0;0,25;-1,5\n1;0,5;+2,5e-3\n", [None, -1.5, 0.0025]),
        # a thousands separator beside unmistakable decimals
        ('y,p,v\n1,0.5,"1,234"\n0,0.25,"12,345"\n', ["1,234", "12,345"]),
        ("y;p;v\n1;0,5;1.234\n0;0,25;12.345\n", ["1.234", "12.345"]),
    ],
)
def test_what_is_certain(text, last, tmp_path, as_read):
    back, _ = as_read(write(tmp_path, text), p="p")
    assert back["p"].iloc[0] == 0.5
    assert back.iloc[:, -1].astype(object).where(back.iloc[:, -1].notna(), None).tolist() == last


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        (
            "y;p;a,b\n1;0.5;3,4\n",
            "may be separated by ',' (2 columns) or ';' (3 columns): 'y;p;a,b'",
            "sep=…",
        ),
        ("a;b,c\n", "may be separated by ',' (2 columns) or ';' (2 columns)", "sep=…"),
        ("y\n0,83\n", "Expected 1 columns, got 2: 0,83", "decimal comma"),
        ("y,p,v\n1,0,83,4\n", "Expected 3 columns, got 4", "must be in quotes, also numbers"),
        ("Report of May\ny,p\n1,0.5\n", "Expected 1 columns, got 2: y,p", "sep=…"),
        (
            "y;p;v\n1;0,5;0.25\n0;0,25;0.5\n",
            "has '0,5' in column 'p' and '0.25' in column 'v'",
            "decimal=…",
        ),
        ("y;v\n1;1,234\n0;2,345\n", "'1,234' in column 'v' of", "decimal=…"),
        (b"y,p\n1,M\x81nchen\n", "is neither in UTF-8 nor in cp1252", "encoding=…"),
        (b"y,p\n1,\0\0\0a\n", "contains zero bytes", "encoding=…"),
        (b"PAR1\x15\0\x15....PAR1", "contains zero bytes", "format=…"),
        # Found by fuzzing: the header has a separator, but not outside of quotes.
        ('y,p"g\n16024\n', "Expected 2 columns, got 1", "sep=…"),
        # Only header rows, split as the user meant.
        ("y;p;v\n", "has no rows", "at least one row"),
        ("y,p,v\n", "has no rows", "at least one row"),
    ],
)
def test_what_is_not_certain_is_asked_for(text, said, hint, tmp_path, as_read):
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        as_read(path)
    assert said in caught.value.message and str(path) in caught.value.message
    assert hint in caught.value.hint


def test_answers_settle_what_is_not_certain(tmp_path, as_read):
    path = write(tmp_path, "y;v\n1;1,234\n0;2,345\n")
    assert as_read(path, decimal=",")[0]["v"].tolist() == [1.234, 2.345]
    back, said = as_read(path, decimal=".")
    assert back["v"].tolist() == ["1,234", "2,345"]
    assert said[1].startswith("column 'v' is read as text, because of values such as '1,234'")
    path = write(tmp_path, "y;b,c\n1;2,3\n", "b.csv")
    assert list(as_read(path, sep="semicolon")[0]) == ["y", "b,c"]
    assert list(as_read(write(tmp_path, "y;b,c\n1;2,1\n"), "c", sep=",")[0]) == ["y;b", "c"]
    path = write(tmp_path, "y p v\n1 0.5 3\n", "c.txt")
    assert list(as_read(path, sep="space")[0]) == ["y", "p", "v"]
    path = write(tmp_path, "y,näme\n1,é\n".encode("mac-roman"), "d.csv")
    assert as_read(path, encoding="mac-roman")[0]["näme"].tolist() == ["é"]


def test_a_letter_may_come_late(tmp_path, as_read):
    """The first letter beyond ASCII may be anywhere in the file, also across two blocks."""
    row = b"0,0.25,abcdefgh\n"
    many = row * (HEAD_BYTES // len(row) + 1)
    for encoding, told in (("cp1252", 1), ("utf-8", 0)):
        path = write(tmp_path, b"y,p,t\n" + 3 * many + "1,0.5,Köln\n".encode(encoding))
        back, said = as_read(path)
        assert back["t"].iloc[-1] == "Köln" and len(said) == told
    head = b"y,p,t\n1,0.5," + b"a" * (HEAD_BYTES - 13)
    assert not as_read(write(tmp_path, head + "é\n".encode()))[1]  # cut inside the é
    assert as_read(write(tmp_path, b"y,p,t\n1,0.5,Caf\xe9"))[1][0].endswith("cp1252")
    # Two encodings in one file are refused by name, however far apart.
    first, second = "1,0.5,é\n".encode(), "0,0.5,é\n".encode("cp1252")
    for between, said in ((b"", "is in UTF-8 in some places"), (many, "cannot read .*in.csv' as")):
        path = write(tmp_path, b"y,p,t\n" + first + between + second)
        with pytest.raises(InputError, match=said) as caught:
            as_read(path)
        assert "encoding=…" in caught.value.hint


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"sep": ";;"}, "sep must be one character or one of comma, semicolon, tab, pipe, space"),
        ({"sep": '"'}, "sep must be one character"),
        ({"decimal": "'"}, "decimal must be '.' or ','"),
        ({"encoding": "klingon"}, "encoding 'klingon' is not known"),
        ({"encoding": "base64"}, "encoding 'base64' is not known"),
        ({"encoding": "rot13"}, "encoding 'rot13' is not known"),
        ({"encoding": "utf\0"}, "encoding 'utf\\x00' is not known"),
    ],
)
def test_wrong_answers(stated, said, tmp_path, as_read):
    with pytest.raises(InputError) as caught:
        as_read(write(tmp_path, "y,p\n1,0.5\n"), **stated)
    assert caught.value.message.startswith(said)


def test_an_encoding_that_the_file_contradicts(tmp_path, as_read):
    path = write(tmp_path, "y,p\n1,0.5\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"encoding is 'cp1252', but .* mark of UTF-16"):
        as_read(path, encoding="cp1252")
    assert as_read(path, encoding="utf-16-le")[0]["p"].tolist() == [0.5]
    path = write(tmp_path, "y,p\n1,0.5\n")
    assert as_read(path, encoding="utf-8-sig")[0]["y"].tolist() == [1]  # it has no mark
    with pytest.raises(InputError, match="position 6: invalid continuation byte\nhint: the file"):
        as_read(write(tmp_path, b"y,p\n1,\xe9\n"), encoding="utf-8")


def test_json_lines_in_other_encodings(tmp_path, as_read):
    text = '{"y": 1, "p": 0.5, "t": "é"}\n{"y": 0, "p": 0.25, "t": "ü"}\n'
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        back, _ = as_read(write(tmp_path, text.encode(encoding), "in.jsonl"))
        assert back["t"].tolist() == ["é", "ü"]


# ------------------------------------------------------------------ the command line

COLUMNS = ["--label", "y", "--prob", "p", "--variables", "v"]


def rows_text(sep=",", decimal="."):
    rng = np.random.default_rng(1)
    p = rng.random(300).round(3)
    frame = pd.DataFrame({"y": (rng.random(300) < p) * 1, "p": p, "v": rng.normal(size=300)})
    return frame.to_csv(sep=sep, decimal=decimal, index=False)


def test_answers_on_the_command_line(tmp_path):
    path = write(tmp_path, rows_text(" ", "."))
    header = "hint: all of the header is one column, 'y p v'; name the separator with --sep …"
    assert header in run("audit", path, *COLUMNS).stderr
    done = run("audit", path, *COLUMNS, "--sep", "space")
    assert done.returncode == 0 and done.stderr == f"note: {str(path)!r} read as separated by ' '\n"
    for option, said in {
        ("--sep", "ab"): "error: --sep must be one character",
        ("--decimal", ";"): "Invalid value for '--decimal'",
    }.items():
        done = run("audit", path, *COLUMNS, *option)
        assert done.returncode == 2 and said in done.stderr
    done = run("audit", write(tmp_path, "y;p\n1;1,234\n"), *COLUMNS)
    assert "hint: say which is the decimal mark with --decimal …" in done.stderr


KINDS = {
    "comma-separated": lambda frame, path: frame.to_csv(path, index=False),
    "semicolon-separated": lambda frame, path: frame.to_csv(path, index=False, sep=";"),
    "JSON lines": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "Parquet": lambda frame, path: frame.to_parquet(path),
    "Arrow": lambda frame, path: frame.to_feather(path),
}


@pytest.mark.parametrize("kind", KINDS)
def test_standard_input_needs_no_format(kind, tmp_path):
    KINDS[kind](pd.read_csv(io.StringIO(rows_text())), tmp_path / "rows")
    content = (tmp_path / "rows").read_bytes()
    for given in (content, gzip.compress(content))[: 1 if kind in ("Parquet", "Arrow") else 2]:
        done = run("audit", "-", *COLUMNS, given=given)
        assert done.returncode == 0
        assert done.stderr == f"note: standard input read as {kind}\n"
