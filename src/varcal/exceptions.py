"""Errors and warnings: each says what is wrong, where, and the way out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

__all__ = [
    "CorrelatedRowsWarning",
    "InSampleWarning",
    "InputError",
    "MissingDependencyError",
    "VarcalError",
    "VarcalWarning",
]

#: Of the rows that are being read: the number of the first, None if it is not known, and whether
#: they are all rows and not a batch of them.
_ROWS: ContextVar[tuple[int | None, bool]] = ContextVar("_ROWS", default=(0, True))


#: What the user calls an argument in the call that is running, by its usual name.
_NAMES: ContextVar[Mapping[str, str]] = ContextVar("_NAMES", default=MappingProxyType({}))


@contextmanager
def arguments_named(**names: str) -> Iterator[None]:
    """Name arguments in errors as the function does that the user has called.

    >>> with arguments_named(v="X"):
    ...     print(InputError("v names a column twice", argument="v").message)
    X names a column twice
    """
    token = _NAMES.set({**_NAMES.get(), **names})
    try:
        yield
    finally:
        _NAMES.reset(token)


def called(argument: str) -> str:
    """Return what the user calls an argument."""
    return _NAMES.get().get(argument, argument)


@contextmanager
def rows_numbered_from(start: int | None) -> Iterator[None]:
    """Read a batch of rows: errors number its rows from `start`, or not at all if it is None.

    >>> with rows_numbered_from(1000):
    ...     print(InputError.at_row("p", "is missing", None, 5, 2, "fill it in").message)
    p is missing: None at row 1005
    """
    token = _ROWS.set((start, False))
    try:
        yield
    finally:
        _ROWS.reset(token)


def row_text(row: int, count: int = 1) -> str:
    """Return where something is, such as " at row 7 (3 such rows)"; of a batch, only its row."""
    start, is_all = _ROWS.get()
    more = f" ({count:,} such rows)" if is_all and count > 1 else ""
    return "" if start is None else f" at row {row + start}{more}"


class VarcalError(Exception):
    """The base class of all errors that varcal raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong: the argument, the offending value and where it is.
    hint : str, optional
        The way out.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\nhint: {hint}" if hint else message)

    def __reduce__(self) -> tuple[type[VarcalError], tuple[Any, ...]]:
        return type(self), (self.message, self.hint)


class InputError(VarcalError, ValueError):
    """An argument that cannot be used as it is.

    Parameters
    ----------
    message : str
        What is wrong. If it is about one argument, it begins with the name of the argument.
    hint : str, optional
        The way out. ``{name}`` stands for a setting.
    argument : str, optional
        The argument that the message is about.
    settings : dict, optional
        The settings that the hint names, with their values: None to name the setting alone, `...`
        for a value that the user has to choose.

    Examples
    --------
    >>> error = InputError("y has no label", "pass {unlabelled}", "y", {"unlabelled": "drop"})
    >>> error.hint
    'pass unlabelled="drop"'
    >>> error.spelled({"y": "--label"}, lambda name, value: f"--{value}-{name}")
    ('--label has no label', 'pass --drop-unlabelled')
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        argument: str = "",
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.argument = _NAMES.get().get(argument, argument)
        if argument and re.match(rf"{argument}\b", message):
            message = self.argument + message.removeprefix(argument)
        self.settings = dict(settings or {})
        self._template = hint
        super().__init__(message, self._hint(python_setting))

    def __reduce__(self) -> tuple[type[InputError], tuple[Any, ...]]:
        return type(self), (self.message, self._template, self.argument, self.settings)

    def reworded(self, message: str = "", more: str = "") -> InputError:
        """Return the same error with another message, or with more at the end of its hint."""
        hint = self._template + more
        return type(self)(message or self.message, hint, self.argument, self.settings)

    def spelled(
        self, arguments: Mapping[str, str], setting: Callable[[str, object], str]
    ) -> tuple[str, str]:
        """Return message and hint with the names that another front end uses.

        Parameters
        ----------
        arguments : mapping
            Names of arguments, by their names in Python.
        setting : callable
            From the name and the value of a setting to its spelling.
        """
        message, name = self.message, self.argument
        first = re.match(r"\w*", message)
        if name in arguments and first is not None and first[0] == name:
            message = arguments[name] + message.removeprefix(name)
        return message, self._hint(setting)

    def _hint(self, setting: Callable[[str, object], str]) -> str:
        hint = self._template
        for name, value in self.settings.items():
            hint = hint.replace(f"{{{name}}}", setting(name, value))
        return hint

    @classmethod
    def at_row(
        cls,
        argument: str,
        problem: str,
        value: object,
        row: int,
        count: int,
        hint: str,
        *,
        column: int | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> InputError:
        """Name the first offending row and how many there are."""
        where = argument if column is None else f"{argument} in column {column}"
        message = f"{where} {problem}: {shown(value)}{row_text(row, count)}"
        return cls(message, hint, argument, settings)

    @classmethod
    def choice(cls, argument: str, value: object, allowed: Iterable[object]) -> InputError:
        """Name the values that are allowed."""
        options = list(allowed)
        texts = [str(option) for option in options]
        given = value if isinstance(value, str) else shown(value)
        near = nearest(given, texts)
        if near == given:
            kind = type(options[texts.index(near)]).__name__
            hint = f"the type differs: give the {kind}, not a {type(value).__name__}"
        else:
            hint = f"did you mean {near!r}?" if near else "use one of the values above"
        listed = ", ".join(map(repr, options))
        return cls(f"{argument} must be one of {listed}; got {shown(value)}", hint, argument)

    @classmethod
    def no_column(
        cls, name: str, columns: Iterable[str], argument: str = "", *, where: str = "data"
    ) -> InputError:
        """Name the column that does not exist and the one with the most similar name."""
        known = [str(column) for column in columns]
        near = nearest(name, known)
        listed = ", ".join(map(repr, known[:12])) + (" …" if len(known) > 12 else "")
        hint = f"did you mean {near!r}?" if near else f"the columns are {listed}"
        prefix = f"{argument}: " if argument else ""
        return cls(f"{prefix}no column {shown(name)} in {where}", hint, argument)


#: The extra of varcal that installs an optional library.
EXTRAS = {
    "evaluate": "evaluate",
    "mlflow": "mlflow",
    "skore": "skore",
    "pyarrow": "files",
    "matplotlib": "plot",
    "duckdb": "duckdb",
    "polars": "polars",
    "pyspark": "spark",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "sqlglot": "sql",
}


class MissingDependencyError(VarcalError, ImportError):
    """An optional library is needed and is not installed."""

    @classmethod
    def of(cls, library: str, purpose: str) -> MissingDependencyError:
        """Name the library, what it is needed for, and the extra that installs it.

        >>> print(MissingDependencyError.of("pyarrow", "reading 'rows.csv'"))
        reading 'rows.csv' needs pyarrow
        hint: pip install pyarrow, or the extra 'files': pip install ".[files]" in a checkout
        """
        hint = f"pip install {library}"
        if extra := EXTRAS.get(library, ""):
            hint += f""", or the extra {extra!r}: pip install ".[{extra}]" in a checkout"""
        return cls(f"{purpose} needs {library}", hint)


def import_library(library: str, purpose: str) -> ModuleType:
    """Import an optional library, or say what it is needed for and how to install it.

    Parameters
    ----------
    library : str
        Its name.
    purpose : str
        What needs it, as the beginning of a sentence that goes on with "needs".

    Examples
    --------
    >>> import_library("json", "saving").__name__
    'json'
    """
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:  # the library is there, and something that it needs is not
            raise
        raise MissingDependencyError.of(library, purpose) from None


class VarcalWarning(UserWarning):
    """Something that a careful user should know, although the result is valid."""


class CorrelatedRowsWarning(VarcalWarning):
    """Calibration rows of the same day, patient or store are not independent of one another."""


class InSampleWarning(VarcalWarning):
    """A calibrator is asked about the very rows that it was fitted on."""


def shown(value: object) -> str:
    """Return how a value is shown in an error: short, and whatever its own `repr` raises.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…"
    """
    try:
        huge = isinstance(value, int) and abs(value) >= 10**60
        text = "a huge integer" if huge else repr(value)
    except Exception:  # an object's own method may raise anything
        text = f"a {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def python_setting(name: str, value: object) -> str:
    """Write a setting as a keyword argument.

    >>> python_setting("event", "positive"), python_setting("classes", ...)
    ('event="positive"', 'classes=…')
    """
    if value is None:
        return name
    if value is ...:
        return f"{name}=…"
    return f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a mistyped one.

    >>> nearest("agee", ["age", "hours"])
    'age'
    """
    import difflib  # noqa: PLC0415  only an error needs it

    known = list(known)
    folded = {option.casefold(): option for option in reversed(known)}
    match = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[match[0]] if match else None
