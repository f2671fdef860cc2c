"""Errors and warnings: each says what is wrong, where, and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

__all__ = [
    "DownloadError",
    "InputError",
    "MissingDependencyError",
    "VarcalError",
    "VarcalWarning",
]


class VarcalError(Exception):
    """The root of all errors that varcal raises on purpose.

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

    def __reduce__(self) -> tuple[type[VarcalError], tuple[str, str]]:
        return type(self), (self.message, self.hint)


class InputError(VarcalError, ValueError):
    """An argument that cannot be used as it is."""

    @classmethod
    def at_row(
        cls, argument: str, problem: str, value: object, row: int, count: int, hint: str
    ) -> InputError:
        """Name the first offending row and how many there are."""
        more = f" ({count:,} such rows)" if count > 1 else ""
        return cls(f"{argument} {problem}: {value!r} at row {row}{more}", hint)

    @classmethod
    def choice(cls, argument: str, value: object, allowed: Iterable[object]) -> InputError:
        """Name the values that an option takes."""
        options = list(allowed)
        texts = [str(option) for option in options]
        near = nearest(str(value), texts)
        if near == str(value):
            kind = type(options[texts.index(near)]).__name__
            hint = f"the type differs: give the {kind}, not a {type(value).__name__}"
        else:
            hint = f"did you mean {near!r}?" if near else "use one of the values above"
        return cls(
            f"{argument} must be one of {', '.join(map(repr, options))}; got {value!r}", hint
        )

    @classmethod
    def no_column(cls, name: str, columns: Iterable[str], argument: str) -> InputError:
        """Name the column that is not there and the nearest that is."""
        known = [str(column) for column in columns]
        near = nearest(name, known)
        shown = ", ".join(map(repr, known[:12])) + (" …" if len(known) > 12 else "")
        hint = f"did you mean {near!r}?" if near else f"the columns are {shown}"
        return cls(f"{argument}: no column {name!r} in data", hint)


#: The extra of varcal that installs an optional library.
EXTRAS = {
    "pyarrow": "files",
    "matplotlib": "plot",
    "plotly": "plotly",
    "pooch": "reproduce",
    "duckdb": "duckdb",
    "polars": "polars",
    "pyspark": "spark",
    "numba": "fast",
}


class MissingDependencyError(VarcalError, ImportError):
    """An optional library is needed and is not installed."""

    @classmethod
    def of(cls, library: str, purpose: str, extra: str = "") -> MissingDependencyError:
        """Name the library, what it is needed for, and the extra that installs it.

        >>> print(MissingDependencyError.of("pyarrow", "reading 'rows.csv'"))
        reading 'rows.csv' needs pyarrow
        hint: pip install pyarrow, or the extra 'files': pip install ".[files]" in a checkout
        """
        hint = f"pip install {library}"
        if extra := extra or EXTRAS.get(library, ""):
            hint += f""", or the extra {extra!r}: pip install ".[{extra}]" in a checkout"""
        return cls(f"{purpose} needs {library}", hint)


def import_library(library: str, purpose: str, extra: str = "") -> ModuleType:
    """Import an optional library, or say what it is needed for and how to install it.

    Parameters
    ----------
    library : str
        Its name.
    purpose : str
        What needs it, as the beginning of a sentence that goes on with "needs".
    extra : str, optional
        The extra to recommend, if it is not the usual one of the library.

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
        raise MissingDependencyError.of(library, purpose, extra) from None


class DownloadError(VarcalError, OSError):
    """A file cannot be had whole from where it is kept."""


class VarcalWarning(UserWarning):
    """Something that a careful user wants to know of, though the answer stands."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a mistyped one.

    >>> nearest("agee", ["age", "hours"])
    'age'
    """
    known = list(known)
    folded = {option.casefold(): option for option in reversed(known)}
    match = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[match[0]] if match else None
