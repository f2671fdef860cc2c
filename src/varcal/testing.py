"""An assertion for test suites: a model whose probabilities need repair fails the test."""

from __future__ import annotations

from typing import Any

from varcal.exceptions import InputError

__all__ = ["assert_calibrated"]


def assert_calibrated(y: object, p: object = None, X: object = None, **options: Any) -> None:
    """Fail with the first screen of an audit if its verdict is "repair".

    That is the case if the average, the error by score or the uneven error along a variable is
    surely above the limit. It is the decision of ``varcal audit --gate``.

    Parameters
    ----------
    y, p, X : array-like, frame or column names
        Labels, probabilities and variables, as in `varcal.audit`; X may be left out with `data`.
    **options
        Passed on to `varcal.audit`, such as `limit`, `data` or `include`.

    Raises
    ------
    AssertionError
        If the verdict is "repair", or if no variable can be judged.

    Examples
    --------
    >>> import varcal as vc
    >>> from varcal.testing import assert_calibrated
    >>> sim = vc.datasets.make_gap(20_000, "none")
    >>> assert_calibrated(sim.y, sim.p, {"v": sim.v}, limit=0.05)
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    from varcal._audit.audit import audit  # noqa: PLC0415  keeps the import light

    if options.get("ladder", "none") != "none":
        raise InputError(
            f"ladder is {options['ladder']!r}; an assertion needs none",
            "omit it, and ask vc.audit(…).ladder which repair is needed",
            argument="ladder",
        )
    given = () if X is None else (X,)
    found = audit(y, p, *given, **{**options, "ladder": "none"})
    if not len(found):
        raise AssertionError("No variable could be judged.\n\n" + str(found))
    if found.verdict == "repair":
        raise AssertionError(f"The probabilities are not calibrated.\n\n{found}")
