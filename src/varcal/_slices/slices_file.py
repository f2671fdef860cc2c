"""Saved slices, read back."""

from __future__ import annotations

from os import PathLike

from varcal._options import checked, or_none
from varcal._saved.document import check_key
from varcal._slices.slices_result import SLICES, Slices


@checked(key=or_none(check_key))
def load_slices(path: str | PathLike[str], *, key: str | bytes | None = None) -> Slices:
    """Read slices that `Slices.save` wrote.

    Parameters
    ----------
    path : path
        The file.
    key : str or bytes, optional
        The key that the file was signed with; a file that is not signed with it is refused.

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
    return SLICES.load(path, key, Slices.from_dict)
