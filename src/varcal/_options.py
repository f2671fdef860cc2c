"""Options: what each one may be, in one table, and the decorator that checks a call against it.

An option has the same meaning in every public function that has it, so that `OPTIONS` lists each
one once. `checked` is put on a public function: it checks the arguments that the table knows and
passes them on as plain Python values, a numpy integer as an int. Estimators check nothing in their
constructors, as scikit-learn asks; their class attribute `_parameters` is such a table, and `fit`
calls `check_parameters`.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar, cast

from varcal.exceptions import InputError, arguments_named, shown

#: The default distance that calibrators keep scores from 0 and 1 before they take a logarithm.
EPS = sys.float_info.epsilon
#: The most bins along one variable. A bin has a row of a table, so that this is a table of 10
#: megabytes; with more bins than rows nothing can be learned about any of them.
MOST_BINS = 100_000
#: The most rows of a list: 1,000 times as many as a page can show.
MOST_LISTED = 1_000_000
#: The largest penalty. Much smaller ones already shrink every coefficient to 0.
MOST_PENALTY = 1e100

#: Takes the name of an argument and its value; returns the value to use or raises an InputError.
Check = Callable[[str, Any], Any]
P = ParamSpec("P")
R = TypeVar("R")


def check_choice(argument: str, value: object, allowed: Sequence[object]) -> None:
    """Refuse a value that is not among the allowed ones.

    >>> check_choice("side", "over", ["both", "over", "under"])
    """
    if not _is_among(value, allowed):
        raise InputError.choice(argument, value, allowed)


def _is_among(value: object, allowed: Sequence[object]) -> bool:
    try:
        return isinstance(value, Hashable) and value in allowed
    except Exception:  # a comparison with an object that refuses it
        return False


def refusal(argument: str, must: str, value: object, hint: str) -> InputError:
    """Return the error that an argument must be something else."""
    return InputError(f"{argument} must {must}; got {shown(value)}", hint, argument)


def check_level(level: object) -> float:
    """Refuse a confidence level outside (0, 1).

    >>> check_level(0.95)
    0.95
    """
    found: float = number(0, 1, hint="try 0.95")("level", level)
    return found


def check_n_bins(n_bins: object) -> int:
    """Refuse a number of bins that is not a whole number from 1 to `MOST_BINS`.

    >>> check_n_bins(10)
    10
    """
    if not _is_whole(n_bins) or int(cast(int, n_bins)) < 1:
        raise refusal("n_bins", "be a whole number of at least 1", n_bins, "try 10")
    if int(cast(int, n_bins)) > MOST_BINS:
        problem = f"n_bins is {shown(n_bins)}, more than {MOST_BINS:,} bins"
        raise InputError(problem, "try 10", "n_bins")
    return int(cast(int, n_bins))


def check_count(argument: str, value: object, least: int, most: int | None = None) -> int:
    """Refuse a value that is not a whole number from `least` to `most`.

    >>> check_count("degree", 2, 1)
    2
    """
    if not _is_whole(value) or int(cast(int, value)) < least:
        raise refusal(argument, f"be an integer of at least {least}", value, f"try {least}")
    if most is not None and int(cast(int, value)) > most:
        problem = f"{argument} is at most {most:,}; got {shown(value)}"
        raise InputError(problem, f"try {min(most, max(least, 10))}", argument)
    return int(cast(int, value))


def number(
    low: float,
    high: float = math.inf,
    *,
    ends: str = "()",
    must: str = "",
    hint: str = "give a number",
) -> Check:
    """Return a check of a number between two others; `ends` are brackets, as in "[)".

    >>> number(0, 1, ends="[)")("threshold", 0)
    0.0
    """
    place = f"lie in {ends[0]}{low:g}, {high:g}{ends[1]}"
    if ends in ("()", "[]"):
        place = f"lie between {low:g} and {high:g}"
    if (low, high) == (0, math.inf):
        place = "be positive"

    def check(argument: str, value: object) -> float:
        found = float(cast(Real, value)) if _is_real(value) else math.nan
        above = found >= low if ends[0] == "[" else found > low
        below = found <= high if ends[1] == "]" else found < high
        if not (above and below):
            raise refusal(argument, must or place, value, hint)
        return value if type(value) is float else found

    return check


#: The checks of any number, and of a distance from 0 and 1.
check_finite = number(-math.inf, must="be a finite number")
check_eps = number(0, 0.5, hint="try 1e-12")


def check_not_negative(argument: str, value: object) -> float:
    """Refuse a penalty that is not a number from 0 to `MOST_PENALTY`.

    >>> check_not_negative("l2", 0.5)
    0.5
    """
    positive = number(0, ends="[)", must="be a number of at least 0", hint="try 0")
    found: float = positive(argument, value)
    if found > MOST_PENALTY:
        problem = f"{argument} is at most {MOST_PENALTY:g}; got {shown(value)}"
        raise InputError(problem, "try 1", argument)
    return found


def check_share(argument: str, value: object, most: float = 1.0) -> float:
    """Refuse a value that is not a number from 0 to `most`.

    >>> check_share("max_shift", 0.1)
    0.1
    """
    hint = "try 0.02, which is 2 points" if argument == "limit" else f"try {most / 10:g}"
    found: float = number(0, most, ends="[]", hint=hint)(argument, value)
    return found


def check_flag(argument: str, value: object) -> bool:
    """Refuse a value that is neither True nor False.

    >>> check_flag("bands", True)
    True
    """
    if not _is_flag(value):
        raise refusal(argument, "be True or False", value, "give one of them")
    return bool(value)


def check_text(argument: str, value: object) -> str:
    """Refuse a value that is not a string which can be written to a file.

    >>> check_text("title", "Before and after")
    'Before and after'
    """
    if not isinstance(value, str):
        raise refusal(argument, "be a string", value, "give a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        problem = f"{argument} holds a character that cannot be encoded: {shown(value)}"
        raise InputError(problem, "remove it", argument) from None
    return value


def check_path(argument: str, value: object) -> str | os.PathLike[str]:
    """Refuse a value that cannot be the path of a file.

    >>> check_path("path", "report.html")
    'report.html'
    """
    try:
        held = os.fspath(cast(str, value))
        fine = isinstance(held, str) and "\0" not in os.fsencode(held).decode("latin-1")
    except Exception:  # not a path, or an object whose own __fspath__ raises anything
        fine = False
    if not fine or not held:
        problem = f"{argument} is not the path of a file: {shown(value)}"
        raise InputError(problem, "give a string or a pathlib.Path", argument)
    return cast(str, value)


def check_seed(argument: str, value: object) -> int:
    """Refuse a value that is not a whole number from 0 to 2**32 − 1.

    >>> check_seed("random_state", 0)
    0
    """
    return check_count(argument, value, 0, 2**32 - 1)  # as in scikit-learn


def check_names(argument: str, value: object) -> str | tuple[str, ...]:
    """Refuse a value that is neither a string nor a list of strings.

    >>> check_names("protected", ["sex", "race"])
    ('sex', 'race')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1:
        names = tuple(cast("list[object]", value))
        if all(isinstance(name, str) for name in names):
            return cast("tuple[str, ...]", names)
    raise refusal(argument, "be a name or a list of names", value, "give strings")


def check_one_line(argument: str, value: object) -> str:
    """Refuse a value that is not a string of one line, such as the name of a new column.

    >>> check_one_line("column", "p_calibrated")
    'p_calibrated'
    """
    text = check_text(argument, value)
    if not text or any(mark in text for mark in "\0\r\n"):
        hint = "give a string of visible characters"
        raise refusal(argument, "be a name in one line", value, hint)
    return text


def check_renamed(argument: str, value: object) -> dict[str, str]:
    """Refuse a value that is not a mapping of names to names.

    >>> check_renamed("v", {"age": "AGE"})
    {'age': 'AGE'}
    """
    if not isinstance(value, Mapping):
        raise refusal(argument, "be a dict of names", value, 'for example {"age": "AGE"}')
    return {
        check_text(argument, name): check_one_line(argument, other) for name, other in value.items()
    }


def whole(least: int, most: int | None = None) -> Check:
    """Return a check of a whole number."""
    return lambda argument, value: check_count(argument, value, least, most)


def one_of(*allowed: object) -> Check:
    """Return a check of a choice.

    >>> one_of("both", "over")("side", "over")
    'over'
    """

    def check(argument: str, value: object) -> object:
        if isinstance(value, bool) and not any(isinstance(one, bool) for one in allowed):
            raise InputError.choice(argument, value, allowed)
        check_choice(argument, value, allowed)
        return value if isinstance(value, str) else allowed[allowed.index(value)]

    return check


def or_none(check: Check) -> Check:
    """Return a check that also allows None.

    >>> or_none(check_path)("path", None)
    """
    return lambda argument, value: None if value is None else check(argument, value)


def of_type(kind: type, what: str) -> Check:
    """Return a check of the type of a value."""

    def check(argument: str, value: object) -> object:
        if not isinstance(value, kind):
            raise InputError(f"{argument} is a {type(value).__name__}", f"give {what}", argument)
        return value

    return check


#: What an option may be wherever a public function has one of this name, unless the function
#: says otherwise. Columns and rows are checked by `varcal._input`.
OPTIONS: dict[str, Check] = {
    "event": check_text,
    "level": lambda _, value: check_level(value),
    "n_bins": lambda _, value: check_n_bins(value),
    "limit": number(0, 1, ends="[)", hint="try 0.02"),
    "random_state": check_seed,
    "from_logits": check_flag,
    "unlabelled": one_of("raise", "drop"),
    "title": check_text,
    "note": check_text,
    "path": check_path,
    "top": whole(1, MOST_LISTED),
    "outcome": or_none(one_of("mean")),
    "gap": or_none(one_of("relative", "difference")),
}


def checked(**own: Check) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that checks the arguments of a function.

    Parameters
    ----------
    **own
        The checks of options that `OPTIONS` does not know, or that mean something else here.

    Examples
    --------
    >>> import numpy as np
    >>> @checked(side=one_of("over", "under"))
    ... def rate(y, *, level=0.95, side="over"):
    ...     return level, side
    >>> rate([0, 1], level=np.float32(0.5))
    (0.5, 'over')
    >>> rate([0, 1], side="left")
    Traceback (most recent call last):
    varcal.exceptions.InputError: side must be one of 'over', 'under'; got 'left'
    hint: use one of the values above
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        names = tuple(inspect.signature(function).parameters)
        table = {name: (OPTIONS | own)[name] for name in names if name in OPTIONS or name in own}
        unknown = set(own) - set(names)
        assert not unknown, f"{function.__qualname__} has no option {unknown}"
        by_position = tuple((k, name) for k, name in enumerate(names) if name in table)

        variables = {"v": "X"} if "X" in names else {}

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if args:
                given = list(args)
                for k, name in by_position:
                    if k < len(given):
                        given[k] = table[name](name, given[k])
                args = tuple(given)
            if "outcome" not in names and _is_among(options.get("outcome"), ["mean"]):
                raise no_means(f"{function.__name__}()")
            for name, value in options.items():
                if name in table:
                    options[name] = table[name](name, value)
            if not variables:
                return function(*args, **options)
            with arguments_named(**variables):
                return function(*args, **options)

        call.checks = table  # type: ignore[attr-defined]  # the tests read it
        return cast(Callable[P, R], call)

    return decorate


def no_means(what: str) -> InputError:
    """Return the error that something is not available for predictions of a mean."""
    hint = "for amounts and counts use bin_table(), estimate() or audit() on rows in memory"
    return InputError(f'outcome is "mean": {what} is for probabilities only', hint, "outcome")


def only_means(**given: object) -> None:
    """Refuse options that only predictions of a mean have."""
    for name, value in given.items():
        if value is not None:
            hint = "for amounts or counts pass {outcome}"
            problem = f"{name} belongs to predictions of a mean"
            raise InputError(problem, hint, name, {"outcome": "mean"})


def check_arguments(table: Mapping[str, Check], given: Mapping[str, Any]) -> None:
    """Check arguments by name, where a decorator would stand between a warning and its cause."""
    for name, check in table.items():
        check(name, given[name])


def check_parameters(table: Mapping[str, Check], values: object) -> None:
    """Check the attributes of an object, such as the parameters of an estimator."""
    for name, check in table.items():
        check(name, getattr(values, name))


def _is_flag(value: object) -> bool:
    """Tell whether a value is True or False, also of numpy, which is not loaded for this."""
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not _is_flag(value)


def _is_real(value: object) -> bool:
    """Tell whether a value is a real number that fits into a float."""
    if not isinstance(value, Real) or _is_flag(value):
        return False
    try:
        float(value)
    except Exception:  # too large, or a number of another library that refuses
        return False
    return True
