"""Errors with the names of Python and of the command line."""

import pickle

import numpy as np
import pytest

import varcal as vc
from varcal.cli import main
from varcal.cli._spelling import option_text
from varcal.exceptions import InputError


def test_an_error_keeps_its_argument_and_settings():
    error = InputError("y has no label", "pass {unlabelled}", "y", {"unlabelled": "drop"})
    assert str(error) == 'y has no label\nhint: pass unlabelled="drop"'
    for one in (pickle.loads(pickle.dumps(error)), error.reworded(error.message)):
        assert (str(one), one.argument, one.settings) == (str(error), "y", {"unlabelled": "drop"})
        assert one.spelled({"y": "--label"}, option_text) == (
            "--label has no label",
            "pass --drop-unlabelled",
        )


def test_the_usual_errors_know_their_argument():
    for error in (
        InputError.at_row("p", "is odd", 3.0, 4, 1, "even it", column=1),
        InputError.choice("p", "x", ["y"]),
        InputError.no_column("x", ["y"], "p"),
    ):
        assert error.argument == "p"
    y, p, v = [0, 1] * 50, np.linspace(0.1, 0.9, 100), np.arange(100)
    for call, argument in (
        (lambda: vc.vece(y, p * 3, v), "p"),
        (lambda: vc.vece([None, *y[1:]], p, v), "y"),
        (lambda: vc.vece(y, p, v, sample_weight=-p), "sample_weight"),
        (lambda: vc.vece(y, p, v, classes=[1]), "classes"),
        (lambda: vc.audit(y, p, {"v": v}, level=2), "level"),
        (lambda: vc.curve(y, p, {"v": v}, event="classwise"), "event"),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.argument == argument
        assert caught.value.message.startswith(argument)


CASES = [
    (
        "y,p,v\na,0.1,1\nb,0.2,2\nc,0.7,3\n",
        [],
        "error: the label column 'y' holds 3 distinct labels ('a', 'b', 'c'), but there are "
        "probabilities for 2 classes\n"
        "hint: list every label in the order of the probability columns with --classes …\n",
    ),
    (
        "y,p,v\n0,-3.1,1\n1,2.2,2\n",
        [],
        "error: --prob 'p' is outside [0, 1]: -3.1 at row 0 (2 such rows)\n"
        "hint: if these are logits, pass --from-logits; divide percentages by 100\n",
    ),
    (
        "y,p,v\n0,low,1\n1,high,2\n",
        [],
        "error: --prob 'p' holds levels, not numbers\n"
        "hint: give real numbers; labels go in --label\n",
    ),
    (
        "y,p,v\n0.2,0,1\n0.7,1,2\n",
        [],
        "error: the label column 'y' is not a label: 0.2 at row 0 (2 such rows)\n"
        "hint: --label and --prob look swapped: --label is the outcome, --prob the probability\n",
    ),
    (
        "y,p,v\n0,0.1,1\n1,0.2,2\n",
        ["--level", "2"],
        "error: --level must lie between 0 and 1; got 2.0\nhint: try 0.95\n",
    ),
    ("y,p,v\n", [], "error: the file has no rows\nhint: at least one row is needed\n"),
]


@pytest.mark.parametrize(("rows", "options", "shown"), CASES)
def test_the_command_line_names_options(rows, options, shown, tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_text(rows)
    with pytest.raises(SystemExit) as left:
        main(["audit", str(path), "--label", "y", "--prob", "p", *options])
    assert left.value.code == 2
    assert capsys.readouterr().err == shown
