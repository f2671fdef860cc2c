"""Saved slices, read back."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from varcal._slices.slices_result import FORMAT, Slices
from varcal.exceptions import InputError


def load_slices(path: str | PathLike[str]) -> Slices:
    """Read slices that `Slices.save` wrote.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(2000, "tilt", vece=0.1, random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "slices.json"
    >>> found = vc.slices(sim.y, sim.p, {"v": sim.v}, draws=99)
    >>> found.save(path)
    >>> vc.load_slices(path) == found
    True
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error.strerror}",
            "give a file that slices.save() wrote",
            argument="path",
        ) from None
    except UnicodeDecodeError:
        text = ""  # not JSON, so refused below
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise InputError(
                f"{str(path)!r} was written by another version of varcal ({data['varcal']})",
                "search the rows again and save the result",
                argument="path",
            )
        return Slices.from_dict(data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{str(path)!r} does not hold saved slices",
            "give a file that slices.save() wrote",
            argument="path",
        ) from None
