"""How the command line spells the arguments of the library in messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from varcal.exceptions import InputError, python_setting

#: The options, by the arguments of the library that they set.
OPTIONS = {
    "y": "--label",
    "p": "--prob",
    "v": "--variables",
    "X": "--variables",
    "sample_weight": "--weight",
    "groups": "--group",
    "classes": "--classes",
    "event": "--event",
    "pos_label": "--pos-label",
    "level": "--level",
    "limit": "--limit",
    "column": "--column",
    "data": "the file",
    "include": "--include",
    "protected": "--protected",
    "out": "--output",
    "format": "--format",
    "sep": "--sep",
    "decimal": "--decimal",
    "encoding": "--encoding",
    "tolerance": "--limit",
    "monitor": "--limit",
    "alpha": "--alpha",
    "arl": "--arl",
    "weight_cap": "--weight-cap",
    "id": "--id",
    "max_depth": "--max-depth",
    "uneven": "--after",
    "draws": "--draws",
}
#: Options that take no value, by the argument that they set.
FLAGS = {"unlabelled": "--drop-unlabelled", "from_logits": "--from-logits", "slices": "--slices"}


def option_text(name: str, value: object) -> str:
    """Write a setting as it is given on the command line.

    >>> option_text("unlabelled", "drop"), option_text("classes", ["a", "b"])
    ('--drop-unlabelled', '--classes a,b')
    """
    if name in FLAGS:
        return FLAGS[name]
    if name not in OPTIONS:
        return python_setting(name, value)
    if value is None:
        return OPTIONS[name]
    if value is ...:
        return f"{OPTIONS[name]} …"
    several = isinstance(value, list | tuple)
    return f"{OPTIONS[name]} {','.join(map(str, value)) if several else value}"  # type: ignore[call-overload]


@contextmanager
def naming_columns(given: Mapping[str, Any], prob: Sequence[str] | None = None) -> Iterator[None]:
    """Add to the options in messages the columns that they name.

    Parameters
    ----------
    given : mapping
        The options.
    prob : sequence of str, optional
        The names of sets of probabilities, if --prob does not give columns alone.
    """
    try:
        yield
    except InputError as error:
        names = OPTIONS | {"y": f"the label column {given['label']!r}"}
        if not error.message.startswith(("p '", 'p "')):  # which already names a column
            shown = given["prob"] if prob is None else prob
            names["p"] = f"--prob {', '.join(map(repr, shown))}"
        options = {"sample_weight": "weight", "groups": "group", "time": "time", "blocks": "blocks"}
        for argument, option in options.items():
            names[argument] = f"--{option} {given.get(option)!r}"
        raise InputError(*error.spelled(names, option_text)) from None
