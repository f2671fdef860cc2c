"""What calibrators are built on: scikit-learn's estimators, but not in the program `varcal apply`.

Loading scikit-learn takes several times as long as calibrating a small file. In a process that only
reads a saved calibrator and applies it, nobody can tell the difference.
"""

from __future__ import annotations

__all__ = ["estimator_class", "leave_out_sklearn"]

_settings = {"sklearn": True}


class PlainEstimator:
    """A class without scikit-learn's methods, which applying a saved calibrator does not need."""


def leave_out_sklearn() -> None:
    """Build calibrators without scikit-learn, in a process that runs nothing else.

    To be called before the first calibrator is loaded; afterwards it has no effect.
    """
    _settings["sklearn"] = False


def estimator_class() -> type:
    """Return the class that calibrators inherit from."""
    if not _settings["sklearn"]:
        return PlainEstimator
    from sklearn.base import BaseEstimator  # noqa: PLC0415  slow to load

    found: type = BaseEstimator
    return found
