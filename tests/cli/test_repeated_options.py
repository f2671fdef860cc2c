"""An option that takes one value is not given twice; lists and flags may be repeated."""

import click
import pytest

from cases.command_line import run
from varcal.cli import main


def options(command=main, path=()):
    """Yield the path of each command with each of its options."""
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from options(one, (*path, name))
        return
    for option in command.params:
        if isinstance(option, click.Option):
            yield path, option


def of_one_value(option):
    return not (option.multiple or option.is_flag)


ONCE = [
    pytest.param(path, option, id=" ".join((*path, option.opts[0])))
    for path, option in options()
    if of_one_value(option)
]


@pytest.mark.parametrize(("path", "option"), ONCE)
def test_an_option_of_one_value_is_refused_twice(path, option):
    flags = (option.opts[0], option.opts[-1])
    found = run(*path, flags[0], "first", flags[1], "second")
    assert found.returncode == 2
    named = max(option.opts, key=len)
    assert found.stderr.splitlines() == [
        f"error: {named} is given twice: 'first' and 'second'",
        f"hint: give {named} once",
    ]


def test_every_form_of_an_option_counts():
    found = run("audit", "rows.csv", "--label=a", "--prob", "p", "--label", "b", "--label=c")
    assert "error: --label is given 3 times: 'a', 'b' and 'c'" in found.stderr


def test_lists_and_flags_may_be_repeated(tmp_path):
    rows = tmp_path / "rows.csv"
    lines = [f"{k % 2},{0.1 + k / 300},{k},{k * k % 7},{k % 3}" for k in range(200)]
    rows.write_text("\n".join(["y,p,a,b,c", *lines]), encoding="utf-8")
    listed = ["--variables", "a", "--variables", "b", "--json", "--json", "--no-repair"]
    found = run("audit", rows, "--label", "y", "--prob", "p", *listed)
    assert found.returncode == 0, found.stderr
    assert '"c"' not in found.stdout
