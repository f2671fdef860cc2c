"""Loading any saved result, by the kind that its file names."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

from varcal._files.document import HINT, BrokenError, Kind, file_bytes, parsed
from varcal._options import checked
from varcal.exceptions import InputError

#: Where each kind of document is defined, by its name in files; loaded when it is first needed.
KINDS = {
    "audit": "_audit.result.AUDIT",
    "calibrated classifier": "calibrators.saved.CLASSIFIER",
    "calibrator": "calibrators.saved.CALIBRATOR",
    "collected statistics": "_sums.collected_file.COLLECTED",
    "monitor": "_monitor.monitor_file.MONITOR",
    "slices": "_search.slices_result.SLICES",
}


@checked()
def load(path: str | PathLike[str], *, estimator: Any = None) -> Any:
    """Load anything that a `save` of varcal wrote.

    Parameters
    ----------
    path : str or path
        The file: a calibrator, a calibrated classifier, an audit, slices, collected statistics or
        a monitor. Nothing in it is executed.
    estimator : fitted classifier, or a list of them, optional
        Only for a `VariableCalibratedClassifier`, whose file does not hold it: the estimator that
        was calibrated, `estimator_`; with ``ensemble=True`` those of `pairs_`, in that order.

    Returns
    -------
    Calibrator, VariableCalibratedClassifier, Audit, Slices, Collected or Monitor
        The same as what was saved; predictions are equal to the last bit.

    Raises
    ------
    InputError
        If the file cannot be read, was not written by this version of varcal, or is incomplete or
        changed; or if the estimator does not belong to it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import varcal as vc
    >>> fitted = vc.calibrators.PlattCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibrator.json"
    >>> fitted.save(path)
    >>> vc.load(path)
    PlattCalibrator()
    """
    kind, document = _opened(path)
    shown = repr(str(path))
    if kind.name == "calibrated classifier":
        return kind.restored(document, shown).with_estimator(estimator, shown)
    if estimator is not None:
        raise InputError(
            f"estimator is given, but {shown} is {kind.what}",
            "omit it: only calibrated classifiers are saved without their estimator",
            argument="estimator",
        )
    return kind.restored(document, shown)


def load_kind(path: str | PathLike[str], name: str) -> Any:
    """Load a file that must be of one kind, one of `KINDS`."""
    kind, document = _opened(path, name)
    return kind.restored(document, repr(str(path)))


def _opened(path: str | PathLike[str], wanted: str | None = None) -> tuple[Kind, dict[str, Any]]:
    """Return the kind of a file and its entries."""
    data, shown = file_bytes(path), repr(str(path))
    what = "a saved varcal result" if wanted is None else _kind(wanted).what
    try:
        if data[:4] == b"PAR1":
            from varcal._sums.collected_file import parquet_document  # noqa: PLC0415

            document = parquet_document(data, shown)
        else:
            document = parsed(data)
        name = document.get("kind")
        if not isinstance(name, str) or name not in KINDS:
            raise BrokenError("it was not written by varcal")
        if wanted not in (None, name):
            raise BrokenError(f"it is {_kind(name).what}")
    except BrokenError as error:
        raise InputError(f"{shown} is not {what}: {error}", HINT, argument="path") from None
    return _kind(name), document


def _kind(name: str) -> Kind:
    module, _, constant = KINDS[name].rpartition(".")
    found: Kind = getattr(import_module(f"varcal.{module}"), constant)
    return found
